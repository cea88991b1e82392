"""The tables of what agents do: patterns, and sessions with their steps."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
)

from hiermem_core.storage.sealing import Sealed
from hiermem_core.storage.tables import TEXT, schema

patterns = Table(
    "patterns",
    schema,
    Column("tenant", TEXT, nullable=False),
    Column("id", TEXT, nullable=False),
    Column("name", TEXT, nullable=False),
    Column("pattern_data", Sealed, nullable=False),
    Column("confidence", Double, nullable=False, server_default="0.5"),
    Column("uses", BigInteger, nullable=False, server_default="0"),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("user_id", TEXT),
    CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence_within"),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "name"),
    ForeignKeyConstraint(
        ["tenant", "id"], ["memory_entries.tenant", "memory_entries.id"], ondelete="CASCADE"
    ),
)
"""What is known of a way of doing things beside the text that search finds, which is the entry of
the same id. `pattern_data` is a JSON object."""

sessions = Table(
    "sessions",
    schema,
    Column("tenant", TEXT, nullable=False),
    Column("id", TEXT, nullable=False),
    Column("session_data", Sealed, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("status", TEXT, nullable=False),
    Column("user_id", TEXT),
    CheckConstraint(
        "status IN ('active', 'paused', 'completed', 'failed', 'abandoned', 'expired')",
        name="known_status",
    ),
    PrimaryKeyConstraint("tenant", "id"),
)
"""One row a run of an agent. `session_data` is a JSON object."""

Index("sessions_by_start", sessions.c.tenant, sessions.c.started_at)
Index(
    "sessions_by_user",
    sessions.c.tenant,
    sessions.c.user_id,
    sqlite_where=sessions.c.user_id.is_not(None),
    postgresql_where=sessions.c.user_id.is_not(None),
)

trajectories = Table(
    "trajectories",
    schema,
    Column("tenant", TEXT, nullable=False),
    Column("id", TEXT, nullable=False),
    Column("session_id", TEXT, nullable=False),
    Column("step", Integer, nullable=False),
    Column("state", Sealed),
    Column("action", Sealed, nullable=False),
    Column("reward", Double),
    Column("next_state", Sealed),
    Column("created_at", BigInteger, nullable=False),
    CheckConstraint("step >= 1", name="step_counts"),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "session_id", "step"),
    ForeignKeyConstraint(
        ["tenant", "session_id"], ["sessions.tenant", "sessions.id"], ondelete="CASCADE"
    ),
)
"""One row a step of a session: what was seen, done and got. `state` and `next_state` are JSON."""
