"""The format `langchain/sql`: a table of dumped messages by session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.importing.langchain_messages import dumped_message
from hiermem_core.importing.messages import Place
from hiermem_core.importing.reading import read_each
from hiermem_core.importing.records import RecordError
from hiermem_core.models.plain import load_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "langchain/sql"

COLUMNS = frozenset({"session_id", "message"})
"""By which a table is known, whatever its name."""


def read_rows(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of the table, a thread a session."""
    counts: dict[str, int] = {}

    def read(numbered: tuple[str, Row]) -> Record:
        position, row = numbered
        session = row.needed("session_id")
        counts[session] = counts.get(session, -1) + 1
        number = row.get("id") if isinstance(row.get("id"), int) else counts[session]
        try:
            value = load_json(row.needed("message"))
        except ValueError:
            raise RecordError("invalid_json", "its message is no JSON; mend it") from None
        place = Place(FORMAT, reading.thread or session, number, position)
        return dumped_message(value, place, created_at=row.get("created_at"))

    yield from read_each(rows, read, kind="turn", named=True)
