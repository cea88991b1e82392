"""The tables. Times are UTC milliseconds; JSON is text, so that key order survives."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    false,
)

schema = MetaData()

metadata = Table(
    "metadata",
    schema,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)
"""Facts of the whole location: `schema_version`, `created_at`."""

threads = Table(
    "threads",
    schema,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("tenant", Text, nullable=False),
    Column("thread_id", Text, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("tally", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    UniqueConstraint("tenant", "thread_id"),
    sqlite_autoincrement=True,
)
"""One row a thread. `tally` counts its active turns, so that no reader has to."""

turns = Table(
    "turns",
    schema,
    Column("thread", ForeignKey("threads.number", ondelete="CASCADE"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("id", Text, nullable=False),
    Column("archived", Boolean, nullable=False, server_default=false()),
    Column("standing", Boolean, nullable=False),
    Column("call_seq", Integer),
    Column("revision", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("content", Text),
    Column("body", Text),
    Column("dump", Text),
    Column("tokens", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("thread", "archived", "seq"),
    sqlite_with_rowid=False,
)
"""One row a turn, the active ones of a thread side by side, so that archived ones cost no reader.
`standing` turns stay in every context; `call_seq` is where a result's call is;
`body` holds what plain text turns do not have; `dump` is the source framework's own form."""

_active = ~turns.c.archived

Index(
    "turns_by_id",
    turns.c.thread,
    turns.c.id,
    unique=True,
    sqlite_where=_active,
    postgresql_where=_active,
)
Index(
    "turns_by_call",
    turns.c.thread,
    turns.c.call_seq,
    sqlite_where=turns.c.call_seq.is_not(None),
    postgresql_where=turns.c.call_seq.is_not(None),
)

calls = Table(
    "calls",
    schema,
    Column("thread", ForeignKey("threads.number", ondelete="CASCADE"), nullable=False),
    Column("call_id", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    PrimaryKeyConstraint("thread", "call_id", "seq"),
    sqlite_with_rowid=False,
)
"""Where each tool call stands, so that a late result finds it without reading the thread."""

notes = Table(
    "notes",
    schema,
    Column(
        "thread",
        ForeignKey("threads.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("summary", Text, nullable=False),
    Column("facts", Text, nullable=False),
    Column("turn_count", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
)
"""What is remembered about a thread; `turn_count` and `epoch` are the mark it was made from."""
