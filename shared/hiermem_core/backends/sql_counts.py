"""Counting a tenant's entries and vectors in a database: one statement a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import LargeBinary, cast, func, select

from hiermem_core.backends.records import EntryCounts
from hiermem_core.backends.sql_restrictions import living
from hiermem_core.storage.tables import memory_entries, vectors

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

_E, _V = memory_entries.c, vectors.c


def entry_counts(connection: Connection, tenant: str, now: datetime) -> EntryCounts:
    """Return what a tenant keeps."""
    mine = _E.tenant == tenant
    size = func.sum(_bytes(_E.value) + _bytes(_E.metadata))
    grouped = (
        select(_E.namespace, _E.type, func.count(), size)
        .where(mine, living(now))
        .group_by(_E.namespace, _E.type)
        .order_by(_E.namespace, _E.type)
    )
    by_namespace: dict[str, int] = {}
    by_type: dict[str, int] = {}
    total = 0
    for namespace, kind, count, size_of_group in connection.execute(grouped):
        by_namespace[namespace] = by_namespace.get(namespace, 0) + count
        by_type[kind] = by_type.get(kind, 0) + count
        total += size_of_group
    expired = select(func.count()).where(mine, ~living(now))
    return EntryCounts(by_namespace, by_type, total, connection.execute(expired).scalar_one())


def vectors_made(connection: Connection, tenant: str, embedder: str) -> tuple[int, int]:
    """Return how many rows of a tenant have a vector, and how many of only a part of their text."""
    mine = (_V.tenant == tenant, _V.embedder == embedder)
    made = connection.execute(select(func.count()).where(*mine)).scalar_one()
    parts = connection.execute(select(func.count()).where(*mine, ~_V.is_whole)).scalar_one()
    return made, parts


def _bytes(text: ColumnElement[str]) -> ColumnElement[int]:
    return func.length(cast(text, LargeBinary))
