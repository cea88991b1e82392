"""The formats of a hive's own memories: `claude-flow/hive-memories` and `hive-memory`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from hiermem_core.importing.names import namespace_of
from hiermem_core.importing.reading import Facts, entry_record, expiry, json_column, read_each
from hiermem_core.importing.records import SQLITE
from hiermem_core.importing.times import in_milliseconds, sql_or_seconds
from hiermem_core.importing.values import structured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

MEMORIES = "claude-flow/hive-memories"
MEMORY = "claude-flow/hive-memory"

MEMORIES_COLUMNS = frozenset({"namespace", "key", "value", "type", "timestamp"})
MEMORY_COLUMNS = frozenset({"key", "namespace", "value", "ttl", "created_at", "expires_at"})


def read_memories(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of the table `memories`."""

    def read(row: Row) -> Record:
        facts = Facts(
            format=MEMORIES,
            value=structured(row.given("value")),
            namespace=namespace_of(row.text("namespace") or ""),
            key=row.needed("key"),
            id=row.get("id") if isinstance(row.get("id"), str) else None,
            type=row.text("type"),
            created_at=in_milliseconds(row.get("timestamp")),
            precedence=SQLITE,
        )
        return entry_record(facts, reading)

    yield from read_each(rows, read)


def read_memory(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of the table `memory`."""

    def read(row: Row) -> Record:
        created_at = sql_or_seconds(row.get("created_at"))
        facts = Facts(
            format=MEMORY,
            value=structured(row.given("value")),
            namespace=namespace_of(row.text("namespace") or ""),
            key=row.needed("key"),
            metadata=json_column(row.text("metadata")),
            created_at=created_at,
            expires_at=_expiry(row, created_at, reading),
            precedence=SQLITE,
        )
        return entry_record(facts, reading)

    yield from read_each(rows, read)


def after(created_at: datetime | None, seconds: object) -> datetime | None:
    """Return the end of a time to live that counts from a moment; `None` where one is missing."""
    if created_at is None or isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return created_at + timedelta(seconds=seconds) if seconds else None
    except OverflowError:
        return None


def _expiry(row: Row, created_at: datetime | None, reading: Reading) -> datetime | None:
    said = expiry(row.get("expires_at"), sql_or_seconds, reading)
    return said or after(created_at, row.get("ttl"))
