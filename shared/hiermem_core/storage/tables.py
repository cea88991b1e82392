"""The tables. Times are UTC milliseconds; JSON is text, so that key order survives."""

from __future__ import annotations

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
    false,
    literal_column,
)

from hiermem_core.storage.sealing import Blinded, Sealed

schema = MetaData()

TEXT = Text().with_variant(Text(collation="C"), "postgresql")
"""Ordered by code points on every engine, since namespaces are found as ranges."""

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""Of a row; SQLite numbers rows by itself only where the type is `INTEGER`."""

metadata = Table(
    "metadata",
    schema,
    Column("key", TEXT, primary_key=True),
    Column("value", TEXT, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)
"""Facts of the whole location: `schema_version`, `created_at`."""

threads = Table(
    "threads",
    schema,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("tenant", TEXT, nullable=False),
    Column("thread_id", TEXT, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("tally", TEXT, nullable=False),
    Column("answered_seq", Integer, nullable=False, server_default="0"),
    Column("changes", Integer, nullable=False, server_default="0"),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    UniqueConstraint("tenant", "thread_id"),
    sqlite_autoincrement=True,
)
"""One row a thread. `tally` counts its active turns, so that no reader has to;
`changes` counts what was done to stored turns, so that who has read them knows if to read again."""

turns = Table(
    "turns",
    schema,
    Column("thread", ForeignKey("threads.number", ondelete="CASCADE"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("id", TEXT, nullable=False),
    Column("archived", Boolean, nullable=False, server_default=false()),
    Column("standing", Boolean, nullable=False),
    Column("call_seq", Integer),
    Column("revision", Integer, nullable=False),
    Column("role", TEXT, nullable=False),
    Column("content", Sealed(has_placeholder=True)),
    Column("body", Sealed(has_placeholder=True)),
    Column("dump", Sealed(has_placeholder=True)),
    Column("tokens", TEXT, nullable=False),
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
    Column("call_id", TEXT, nullable=False),
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
    Column("summary", Sealed, nullable=False),
    Column("facts", Sealed, nullable=False),
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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("tenant", TEXT, nullable=False, unique=True),
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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("tenant", TEXT, nullable=False),
    Column("thread", ForeignKey("threads.number", ondelete="CASCADE")),
    Column("seq", Integer),
    Column("position", Integer),
    Column("part", Integer),
    Column("author", TEXT),
    Column("words", Integer),
    Column("is_question", Boolean),
    Column("caption", Sealed),
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
    Column("tenant", TEXT, nullable=False),
    Column("author", TEXT, nullable=False),
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
    Column("tenant", TEXT, nullable=False),
    Column("id", TEXT, nullable=False),
    Column("namespace", TEXT, nullable=False),
    Column("key", TEXT),
    Column("value", Sealed, nullable=False),
    Column("type", TEXT, nullable=False),
    Column("tags", TEXT, nullable=False),
    Column("metadata", TEXT, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("ttl", Double),
    Column("expires_at", BigInteger),
    Column("version", Integer, nullable=False),
    Column("times_stored", Integer, nullable=False),
    Column("source", TEXT, nullable=False),
    Column("trust", Double, nullable=False),
    Column("derived_from", TEXT, nullable=False),
    Column("user_id", TEXT),
    Column("digest", Blinded),
    Column("passages", Sealed),
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
"""Says that an entry was derived, in words that its index is found by, which holds all asked on
SQLite."""

Index(
    "memory_entries_by_derivation",
    _E.tenant,
    _E.id,
    _E.number,
    _E.derived_from,
    sqlite_where=is_derived,
).ddl_if(dialect="sqlite")
Index(  # of rows, as a list of sources may be longer than what a B-tree there takes
    "memory_entries_by_derivation",
    _E.tenant,
    _E.number,
    postgresql_where=is_derived,
).ddl_if(dialect="postgresql")

entry_tags = Table(
    "entry_tags",
    schema,
    Column("tenant", TEXT, nullable=False),
    Column("tag", TEXT, nullable=False),
    Column("entry", NUMBER, nullable=False),
    PrimaryKeyConstraint("tenant", "tag", "entry"),
    sqlite_with_rowid=False,
)
"""Which entries bear a tag; the entry's own `tags` keep their order."""

vectors = Table(
    "vectors",
    schema,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("tenant", TEXT, nullable=False),
    Column("row", ForeignKey("searchable.number", ondelete="CASCADE"), nullable=False),
    Column("embedder", TEXT, nullable=False),
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
    Column("change", TEXT, nullable=False),
    Column("number", NUMBER, nullable=False),
    Column("tenant", TEXT, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("due_at", BigInteger, nullable=False, server_default="0"),
    Column("error", TEXT),
    PrimaryKeyConstraint("change", "number"),
    sqlite_with_rowid=False,
)
"""What is still to be done outside a transaction, one row each: `embed` a searchable row, `add` a
vector to the vector index, `remove` one from it. After five failed attempts a row stays, failed."""

Index("outbox_by_tenant", outbox.c.tenant, outbox.c.change, outbox.c.attempts, outbox.c.due_at)
