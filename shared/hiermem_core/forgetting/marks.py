"""What is erased from the rows and still in the files: content-free rows of the metadata."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sqlalchemy import delete, insert, select

from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.storage.tables import metadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

Part = Literal["files", "index"]

_PREFIX = "forget:"
_M = metadata.c


@dataclass(frozen=True, slots=True)
class Due:
    """The cleaning that is due for one selector.

    Attributes:
        digest: Of the selector.
        files: Rows whose bytes may still be in the database's files.
        index: Vectors whose bytes may still be in the vector index's.
    """

    digest: str
    files: int
    index: int

    @property
    def remaining(self) -> int:
        """All of them."""
        return self.files + self.index


def all_due(connection: Connection) -> list[Due]:
    """Return every cleaning that is due."""
    query = select(_M.key, _M.value).where(_M.key.startswith(_PREFIX)).order_by(_M.key)
    return [_due(key, value) for key, value in connection.execute(query)]


def due_of(connection: Connection, digest: str) -> Due:
    """Return what is due for a selector."""
    value = connection.execute(select(_M.value).where(_M.key == _PREFIX + digest)).scalar()
    return Due(digest, 0, 0) if value is None else _due(_PREFIX + digest, value)


def mark(connection: Connection, due: Due, *, now_ms: int) -> None:
    """Note a cleaning, in the transaction that makes it due; it adds to what is due already."""
    before = due_of(connection, due.digest)
    both = Due(due.digest, before.files + due.files, before.index + due.index)
    _write(connection, both, now_ms)


def settle(connection: Connection, part: Part, seen: Iterable[Due], *, now_ms: int) -> list[Due]:
    """Note that a part was cleaned, for what was due before; return what is due by now.

    What became due meanwhile stays.
    """
    known = {due.digest: due for due in seen}
    for due in all_due(connection):
        if due == known.get(due.digest):
            left = replace(due, index=0) if part == "index" else replace(due, files=0)
            _write(connection, left, now_ms)
    return all_due(connection)


def _write(connection: Connection, due: Due, now_ms: int) -> None:
    key = _PREFIX + due.digest
    connection.execute(delete(metadata).where(_M.key == key))
    if due.remaining:
        value = dump_json([due.files, due.index])
        connection.execute(insert(metadata).values(key=key, value=value, updated_at=now_ms))


def _due(key: str, value: str) -> Due:
    files, index = load_json(value)
    return Due(key.removeprefix(_PREFIX), files, index)
