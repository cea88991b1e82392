"""Counting a tenant's entries and vectors in a database: one statement a figure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from hiermem_core.backends.records import EntryCounts
from hiermem_core.backends.sql_restrictions import living
from hiermem_core.backends.vector_rows import EMBED
from hiermem_core.storage.portable import ByteLength
from hiermem_core.storage.run_tables import patterns
from hiermem_core.storage.tables import memory_entries, outbox, vectors
from hiermem_core.vector_index.retrying import MOST_ATTEMPTS

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

_E, _O, _V = memory_entries.c, outbox.c, vectors.c


def entry_counts(connection: Connection, tenant: str, now: datetime) -> EntryCounts:
    """Return what a tenant keeps."""
    mine = _E.tenant == tenant
    size = func.sum(ByteLength(_E.value) + ByteLength(_E.metadata))
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
        total += int(size_of_group)
    expired = select(func.count()).where(mine, ~living(now))
    is_its = (_E.tenant == patterns.c.tenant) & (_E.id == patterns.c.id)
    learnt = select(func.count()).select_from(patterns).join(memory_entries, is_its)
    return EntryCounts(
        by_namespace,
        by_type,
        total,
        expired=connection.execute(expired).scalar_one(),
        patterns=connection.execute(learnt.where(mine, living(now))).scalar_one(),
    )


def vectors_made(connection: Connection, tenant: str, embedder: str) -> tuple[int, int]:
    """Return how many rows of a tenant have a vector, and how many of only a part of their text."""
    mine = (_V.tenant == tenant, _V.embedder == embedder, _V.part == 0)
    made = connection.execute(select(func.count()).where(*mine)).scalar_one()
    parts = connection.execute(select(func.count()).where(*mine, ~_V.is_whole)).scalar_one()
    return made, parts


@dataclass(frozen=True, slots=True)
class OutboxState:
    """What is still to be done about vectors.

    Attributes:
        rows: Those that wait for their vector.
        changes: Those that wait for the vector index.
        failing: Of both, those that failed before.
        failed: Of both, those that wait no more.
        error: The type's name of one of their errors.
    """

    rows: int = 0
    changes: int = 0
    failing: int = 0
    failed: int = 0
    error: str = ""

    def plus(self, rows: int, failing: int, failed: int) -> OutboxState:
        """Return this with rows that are kept elsewhere."""
        return replace(
            self,
            rows=self.rows + rows,
            failing=self.failing + failing,
            failed=self.failed + failed,
        )


def outbox_state(connection: Connection, tenant: str | None, *, with_changes: bool) -> OutboxState:
    """Return what is still to be done, for one tenant or for all.

    Args:
        with_changes: There is a vector index, so that its changes count.
    """
    kinds = (
        (_O.change == EMBED).label("is_row"),
        (_O.attempts >= MOST_ATTEMPTS).label("is_lost"),
        (_O.attempts == 0).label("is_new"),
    )
    query = select(*kinds, func.count(), func.max(_O.error)).group_by(*kinds)
    if tenant is not None:
        query = query.where(_O.tenant == tenant)
    if not with_changes:
        query = query.where(_O.change == EMBED)
    state = OutboxState()
    for is_row, failed, new, count, error in connection.execute(query):
        state = OutboxState(
            rows=state.rows + (count if is_row and not failed else 0),
            changes=state.changes + (count if not is_row and not failed else 0),
            failing=state.failing + (count if not new and not failed else 0),
            failed=state.failed + (count if failed else 0),
            error=error or state.error,
        )
    return state
