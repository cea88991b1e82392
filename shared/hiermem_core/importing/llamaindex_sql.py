"""The format `llamaindex/sql`: tables of messages by key.

`SQLAlchemyChatStore` has a column for each fact, and archives; `SQLiteChatStore` a row, and
`PostgresChatStore` an array, of messages as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.importing.llamaindex_chat import stored_message
from hiermem_core.importing.messages import Place
from hiermem_core.importing.reading import read_each
from hiermem_core.importing.records import RecordError, failed
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

VALUE_COLUMNS = frozenset({"id", "key", "value"})
VALUE_TABLES = "data_"
"""How the older stores' tables begin, whose columns alone would not tell them."""

_ARCHIVED = "archived"


def read_rows(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of the table, a thread a key."""
    counts: dict[str, int] = {}

    def read(numbered: tuple[str, Row]) -> Record:
        position, row = numbered
        key = row.needed("key")
        counts[key] = counts.get(key, -1) + 1
        number = row.get("id") if isinstance(row.get("id"), int) else counts[key]
        value = _json(row, "data")
        moment = in_nanoseconds(row.get("timestamp"))
        return stored_message(
            value,
            Place(FORMAT, reading.thread or key, number, position),
            created_at=None if moment is None else moment.isoformat(),
            is_archived=row.text("status") == _ARCHIVED,
        )

    yield from read_each(rows, read, kind="turn", named=True)


def read_values(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of a table of JSON messages, one a row or many, a thread a key."""
    for position, row in rows:
        try:
            key, value = row.needed("key"), _json(row, "value")
        except RecordError as error:
            yield failed(error, ref=position, position=position, kind="turn")
            continue
        thread = reading.thread or key
        if not isinstance(value, list):
            yield stored_message(value, Place(FORMAT, thread, row.get("id"), position))
            continue
        for index, one in enumerate(value):
            yield stored_message(one, Place(FORMAT, thread, index, f"{position}[{index}]"))


def _json(row: Row, name: str) -> Any:
    try:
        return load_json(row.needed(name))
    except ValueError:
        raise RecordError("invalid_json", f"its {name} is no JSON; mend it") from None
