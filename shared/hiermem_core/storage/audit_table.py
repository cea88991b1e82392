"""The table of the audit log."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from hiermem_core.storage.tables import NUMBER, TEXT, schema

audit = Table(
    "audit",
    schema,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("tenant", TEXT, nullable=False),
    Column("actor", TEXT),
    Column("operation", TEXT, nullable=False),
    Column("thread_id", TEXT),
    Column("ids", TEXT, nullable=False),
    Column("touched", Integer, nullable=False),
    Column("outcome", TEXT, nullable=False),
    sqlite_autoincrement=True,
)
"""One row an operation, or a transaction of it; rows are only ever added. No content."""

Index("audit_by_tenant", audit.c.tenant, audit.c.number)
