"""The format `claude-flow/collective`: what a swarm remembers together, as JSON text.

Where the table has no time to live, an entry's kind says how long it lasts from the last access.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from hiermem_core.importing.claude_flow.hive import after
from hiermem_core.importing.names import segment_of
from hiermem_core.importing.reading import Facts, entry_record, json_column, read_each
from hiermem_core.importing.records import SQLITE
from hiermem_core.importing.times import sql_or_seconds
from hiermem_core.importing.values import decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "claude-flow/collective"

COLUMNS = frozenset({"swarm_id", "key", "value", "type"})
"""By which its table is known."""

_LIFETIMES = {
    "context": timedelta(hours=1),
    "metric": timedelta(hours=1),
    "task": timedelta(minutes=30),
    "error": timedelta(hours=24),
}


def read_rows(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of the table."""
    yield from read_each(rows, lambda row: _record(row, reading))


def _record(row: Row, reading: Reading) -> Record:
    swarm, created_at = row.text("swarm_id") or "", sql_or_seconds(row.get("created_at"))
    facts = Facts(
        format=FORMAT,
        value=decoded(row.given("value")),
        namespace=f"swarms/{segment_of(swarm)}",
        key=row.needed("key"),
        id=row.text("id"),
        type=row.text("type"),
        metadata=json_column(row.text("metadata")),
        created_at=created_at,
        expires_at=_expiry(row, created_at),
        fields={
            "swarm_id": swarm,
            "confidence": row.get("confidence"),
            "created_by": row.text("created_by"),
        },
        precedence=SQLITE,
    )
    return entry_record(facts, reading)


def _expiry(row: Row, created_at: datetime | None) -> datetime | None:
    if "ttl" in row:
        return after(created_at, row.get("ttl"))
    lifetime = _LIFETIMES.get((row.text("type") or "").lower())
    used_at = sql_or_seconds(row.get("accessed_at")) or created_at
    return None if lifetime is None or used_at is None else used_at + lifetime
