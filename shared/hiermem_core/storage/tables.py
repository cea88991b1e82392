"""The tables. Times are UTC milliseconds; JSON is text, so that key order survives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    event,
    false,
    literal_column,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

schema = MetaData()

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
"""FTS5's tokenizer. The marks are part of words, as the vowel signs of Indic scripts are."""

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
    Column("answered_seq", Integer, nullable=False, server_default="0"),
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
    Column("reset_seq", Integer, nullable=False, server_default="0"),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("failed_seq", Integer, nullable=False, server_default="0"),
)
"""What is remembered about a thread; `turn_count` and `epoch` are the mark it was made from."""

tenants = Table(
    "tenants",
    schema,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("tenant", Text, nullable=False, unique=True),
    Column("generation", BigInteger, nullable=False),
    Column("turn_generation", BigInteger, nullable=False, server_default="0"),
    Column("is_indexed", Boolean, nullable=False, server_default=false()),
    Column("entries", BigInteger, nullable=False, server_default="0"),
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Column("minute_ms", BigInteger, nullable=False, server_default="0"),
    Column("minute_writes", BigInteger, nullable=False, server_default="0"),
    sqlite_autoincrement=True,
)
"""What is known of a tenant: `generation` grows with every committed change of its entries, and
`turn_generation` with every one of the turns that are searched;
`is_indexed` tells that its vectors are kept in a collection of the vector index; `entries` and
`bytes` (of its entries and turns) and the writes of the current minute are what quotas count."""

searchable = Table(
    "searchable",
    schema,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("tenant", Text, nullable=False),
    Column("thread", ForeignKey("threads.number", ondelete="CASCADE")),
    Column("seq", Integer),
    Column("position", Integer),
    Column("part", Integer),
    Column("author", Text),
    Column("words", Integer),
    Column("is_question", Boolean),
    Column("caption", Text),
    Column("created_at", BigInteger),
    UniqueConstraint("thread", "seq"),
    UniqueConstraint("thread", "position"),
    sqlite_autoincrement=True,
)
"""What recall searches, under one numbering: an entry (`thread` is null; the entry has the same
number) or a turn. `position` counts a thread's rows; `part` is a stretch without a long pause."""

Index("searchable_by_tenant", searchable.c.tenant, searchable.c.number)

participants = Table(
    "participants",
    schema,
    Column("tenant", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("thread", ForeignKey("threads.number", ondelete="CASCADE"), nullable=False),
    PrimaryKeyConstraint("tenant", "author", "thread"),
    sqlite_with_rowid=False,
)
"""By whom the turns of a thread are said, where turns have names."""

Index("participants_by_thread", participants.c.thread)

memory_entries = Table(
    "memory_entries",
    schema,
    Column(
        "number",
        ForeignKey("searchable.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("key", Text),
    Column("value", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("ttl", Double),
    Column("expires_at", BigInteger),
    Column("version", Integer, nullable=False),
    Column("times_stored", Integer, nullable=False),
    Column("source", Text, nullable=False),
    Column("trust", Double, nullable=False),
    Column("derived_from", Text, nullable=False),
    Column("user_id", Text),
    Column("digest", Text),
    Column("passages", Text),
    Column("is_stale", Boolean, nullable=False, server_default=false()),
    CheckConstraint("type IN ('episodic', 'semantic', 'procedural', 'working')", name="known_type"),
    UniqueConstraint("tenant", "id"),
)
"""One row an entry. Rows are deleted, never flagged, so that a key is free again. `digest` is what
two entries share that say the same; null where an entry is never merged. `passages` are the texts
that are embedded, each apart, in place of the content; null where the content is. `is_stale` ones
lost a source, and are not found by what they say until they are written anew."""

_E = memory_entries.c
Index(
    "memory_entries_by_key",
    _E.tenant,
    _E.namespace,
    _E.key,
    unique=True,
    sqlite_where=_E.key.is_not(None),
    postgresql_where=_E.key.is_not(None),
)
Index("memory_entries_by_namespace", _E.tenant, _E.namespace, _E.updated_at, _E.expires_at)
Index("memory_entries_by_update", _E.tenant, _E.updated_at)
Index("memory_entries_by_creation", _E.tenant, _E.created_at)
Index("memory_entries_by_type", _E.tenant, _E.type)
Index(
    "memory_entries_by_digest",
    _E.tenant,
    _E.digest,
    sqlite_where=_E.digest.is_not(None),
    postgresql_where=_E.digest.is_not(None),
)
Index(
    "memory_entries_by_user",
    _E.tenant,
    _E.user_id,
    sqlite_where=_E.user_id.is_not(None),
    postgresql_where=_E.user_id.is_not(None),
)
Index(
    "memory_entries_by_expiry",
    _E.tenant,
    _E.expires_at,
    sqlite_where=_E.expires_at.is_not(None),
    postgresql_where=_E.expires_at.is_not(None),
)

is_derived = _E.derived_from != literal_column("'[]'")
"""Says that an entry was derived, in words that its index is found by, which holds all asked."""

Index(
    "memory_entries_by_derivation",
    _E.tenant,
    _E.id,
    _E.number,
    _E.derived_from,
    sqlite_where=is_derived,
    postgresql_where=is_derived,
)

entry_tags = Table(
    "entry_tags",
    schema,
    Column("tenant", Text, nullable=False),
    Column("tag", Text, nullable=False),
    Column("entry", Integer, nullable=False),
    PrimaryKeyConstraint("tenant", "tag", "entry"),
    sqlite_with_rowid=False,
)
"""Which entries bear a tag; the entry's own `tags` keep their order."""

vectors = Table(
    "vectors",
    schema,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("tenant", Text, nullable=False),
    Column("row", ForeignKey("searchable.number", ondelete="CASCADE"), nullable=False),
    Column("embedder", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("embedding", LargeBinary, nullable=False),
    Column("norm", Double, nullable=False),
    Column("is_whole", Boolean, nullable=False),
    Column("part", Integer, nullable=False, server_default="0"),
    UniqueConstraint("row", "embedder", "part"),
    sqlite_autoincrement=True,
)
"""One row a vector: float32, little endian, as given. A vector's number is never used again, so
that a number in the vector index stands for one vector for good. `is_whole` is false where only a
prefix of the text was embedded; `part` is the place of its passage, 0 where there are none."""

Index(
    "vectors_by_tenant",
    vectors.c.tenant,
    vectors.c.embedder,
    vectors.c.number,
    vectors.c.part,
)

outbox = Table(
    "outbox",
    schema,
    Column("change", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("due_at", BigInteger, nullable=False, server_default="0"),
    Column("error", Text),
    PrimaryKeyConstraint("change", "number"),
    sqlite_with_rowid=False,
)
"""What is still to be done outside a transaction, one row each: `embed` a searchable row, `add` a
vector to the vector index, `remove` one from it. After five failed attempts a row stays, failed."""

Index("outbox_by_tenant", outbox.c.tenant, outbox.c.change, outbox.c.attempts, outbox.c.due_at)


audit = Table(
    "audit",
    schema,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("actor", Text),
    Column("operation", Text, nullable=False),
    Column("thread_id", Text),
    Column("ids", Text, nullable=False),
    Column("touched", Integer, nullable=False),
    Column("outcome", Text, nullable=False),
    sqlite_autoincrement=True,
)
"""One row an operation, or a transaction of it; rows are only ever added. No content."""

Index("audit_by_tenant", audit.c.tenant, audit.c.number)


@event.listens_for(schema, "after_create")
def _create_keywords(_: object, connection: Connection, **__: object) -> None:
    """Create the keyword index: a row a searchable row, under its number.

    `scope` holds tokens of what the row belongs to and has no weight in its rank; `body` its words.
    """
    tokenizer = TOKENIZER.replace('"', '""')
    columns = f'scope, body, tokenize="{tokenizer}"'
    connection.exec_driver_sql(f"CREATE VIRTUAL TABLE IF NOT EXISTS keywords USING fts5({columns})")
    connection.exec_driver_sql(
        "INSERT INTO keywords(keywords, rank) VALUES ('rank', 'bm25(0.0, 1.0)')"
    )
