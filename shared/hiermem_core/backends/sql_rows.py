"""Entries as rows of `memory_entries`, and back. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.backends.records import Kept
from hiermem_core.models.entries import MemoryEntry
from hiermem_core.models.moments import from_milliseconds, to_milliseconds
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.storage.tables import memory_entries

if TYPE_CHECKING:
    from collections.abc import Sequence

_E = memory_entries.c

COLUMNS = (
    _E.number,
    _E.id,
    _E.namespace,
    _E.key,
    _E.value,
    _E.type,
    _E.tags,
    _E.metadata,
    _E.created_at,
    _E.updated_at,
    _E.ttl,
    _E.expires_at,
    _E.version,
    _E.times_stored,
    _E.source,
    _E.trust,
    _E.derived_from,
    _E.user_id,
    _E.passages,
)
"""What `entry_of` reads, in its order."""

NAMES = tuple(memory_entries.c.keys())
"""What `entry_row` returns, in its order."""


def entry_row(
    entry: MemoryEntry, *, tenant: str, number: int, digest: str | None
) -> tuple[Any, ...]:
    """Return the row of an entry, a value for each of `NAMES`."""
    return (
        number,
        tenant,
        entry.id,
        entry.namespace,
        entry.key,
        entry.content,
        entry.type,
        dump_json(entry.tags) if entry.tags else "[]",
        dump_json(entry.metadata) if entry.metadata else "{}",
        to_milliseconds(entry.created_at),
        to_milliseconds(entry.updated_at),
        entry.ttl,
        None if entry.expires_at is None else to_milliseconds(entry.expires_at),
        entry.version,
        entry.times_stored,
        entry.source,
        entry.trust,
        dump_json(entry.derived_from) if entry.derived_from else "[]",
        entry.user_id,
        digest,
        None if entry.passages is None else dump_json(entry.passages),
        False,
    )


def entry_of(row: Sequence[Any]) -> MemoryEntry:
    """Return the entry of a row of `COLUMNS`."""
    (
        _,
        entry_id,
        namespace,
        key,
        content,
        kind,
        tags,
        metadata,
        created_at,
        updated_at,
        ttl,
        expires_at,
        version,
        times_stored,
        source,
        trust,
        derived_from,
        user_id,
        passages,
    ) = row
    return MemoryEntry(
        id=entry_id,
        content=content,
        namespace=namespace,
        type=kind,
        key=key,
        tags=() if tags == "[]" else tuple(load_json(tags)),
        metadata={} if metadata == "{}" else load_json(metadata),
        created_at=from_milliseconds(created_at),
        updated_at=from_milliseconds(updated_at),
        ttl=ttl,
        expires_at=None if expires_at is None else from_milliseconds(expires_at),
        version=version,
        times_stored=times_stored,
        source=source,
        trust=trust,
        derived_from=() if derived_from == "[]" else tuple(load_json(derived_from)),
        user_id=user_id,
        passages=None if passages is None else tuple(load_json(passages)),
    )


def kept_of(row: Sequence[Any]) -> Kept:
    """Return the kept entry of a row of `COLUMNS` and, after them, whether it has a vector."""
    return Kept(row[0], entry_of(row[:-1]), bool(row[-1]))
