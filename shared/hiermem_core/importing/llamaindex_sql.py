"""The format `llamaindex/sql`: a table of messages by key, some of them archived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.importing.llamaindex_chat import stored_message
from hiermem_core.importing.messages import Place
from hiermem_core.importing.reading import read_each
from hiermem_core.importing.records import RecordError
from hiermem_core.importing.times import in_nanoseconds
from hiermem_core.models.plain import load_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "llamaindex/sql"

COLUMNS = frozenset({"key", "timestamp", "role", "status", "data"})
"""By which a table is known, whatever its name."""

_ARCHIVED = "archived"


def read_rows(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of the table, a thread a key."""
    counts: dict[str, int] = {}

    def read(numbered: tuple[str, Row]) -> Record:
        position, row = numbered
        key = row.needed("key")
        counts[key] = counts.get(key, -1) + 1
        number = row.get("id") if isinstance(row.get("id"), int) else counts[key]
        try:
            value = load_json(row.needed("data"))
        except ValueError:
            raise RecordError("invalid_json", "its data is no JSON; mend it") from None
        moment = in_nanoseconds(row.get("timestamp"))
        return stored_message(
            value,
            Place(FORMAT, reading.thread or key, number, position),
            created_at=None if moment is None else moment.isoformat(),
            is_archived=row.text("status") == _ARCHIVED,
        )

    yield from read_each(rows, read, kind="turn", named=True)
