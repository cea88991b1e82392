"""Patterns as rows of `patterns`, beside the entries that search finds them by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select, update

from hiermem_core.models.moments import from_milliseconds, to_milliseconds
from hiermem_core.models.patterns import Pattern, standing
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.storage.database import slices
from hiermem_core.storage.run_tables import patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import ColumnElement, Connection

    from hiermem_core.backends.records import EntryWrite

_P = patterns.c

COLUMNS = (
    _P.id,
    _P.name,
    _P.pattern_data,
    _P.confidence,
    _P.uses,
    _P.created_at,
    _P.updated_at,
    _P.user_id,
)
"""What `pattern_of` reads, in its order."""


def pattern_of(row: Sequence[Any]) -> Pattern:
    """Return the pattern of a row of `COLUMNS`."""
    pattern_id, name, data, confidence, uses, created_at, updated_at, user_id = row
    return Pattern(
        id=pattern_id,
        name=name,
        data=load_json(data),
        confidence=confidence,
        uses=uses,
        created_at=from_milliseconds(created_at),
        updated_at=from_milliseconds(updated_at),
        user_id=user_id,
    )


def patterns_by_id(connection: Connection, tenant: str, ids: Iterable[str]) -> dict[str, Pattern]:
    """Return the patterns of some entries, by their id."""
    found: dict[str, Pattern] = {}
    for some in slices(list(ids)):
        query = select(*COLUMNS).where(_P.tenant == tenant, _P.id.in_(some))
        found |= {row.id: pattern_of(row) for row in connection.execute(query)}
    return found


def pattern_count(connection: Connection, tenant: str) -> int:
    """Return how many patterns a tenant has, expired ones too."""
    query = select(func.count()).select_from(patterns).where(_P.tenant == tenant)
    return connection.execute(query).scalar_one()


def write_patterns(connection: Connection, tenant: str, writes: Sequence[EntryWrite]) -> None:
    """Write the patterns of entries that are written: those given, and what becomes of others."""
    replaced = [write.entry.id for write in writes if write.number is not None]
    known = patterns_by_id(connection, tenant, replaced)
    fresh = []
    for write in writes:
        old = known.get(write.entry.id)
        new = standing(write.pattern or old, write.entry)
        if new == old:
            known.pop(write.entry.id, None)
        elif new is not None:
            fresh.append(new)
    for some in slices(list(known)):
        connection.execute(delete(patterns).where(_P.tenant == tenant, _P.id.in_(some)))
    if fresh:
        connection.execute(insert(patterns), [_row(tenant, pattern) for pattern in fresh])


def rewrite_pattern(connection: Connection, tenant: str, pattern: Pattern) -> None:
    """Write a pattern that is there anew; its entry stays as it is."""
    is_it: ColumnElement[bool] = (_P.tenant == tenant) & (_P.id == pattern.id)
    connection.execute(update(patterns).where(is_it).values(_row(tenant, pattern)))


def _row(tenant: str, pattern: Pattern) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "id": pattern.id,
        "name": pattern.name,
        "pattern_data": dump_json(pattern.data),
        "confidence": pattern.confidence,
        "uses": pattern.uses,
        "created_at": to_milliseconds(pattern.created_at),
        "updated_at": to_milliseconds(pattern.updated_at),
        "user_id": pattern.user_id,
    }
