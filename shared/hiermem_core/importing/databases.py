"""SQLite sources: copied with their logs to a private folder, and read there.

Opening one where it lies is no way: even a read-only connection makes or changes its shared-memory
file and fails in a read-only folder, an immutable one ignores the log, and a copy of the main file
alone loses every row that is still in the log.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tempfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hiermem_core.importing.records import RecordError
from hiermem_core.importing.sources import MAGIC
from hiermem_core.importing.values import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEADER_BYTES = 100
_LOGS = ("-wal", "-journal")
_ATTEMPTS = 5
_CHUNK = 1 << 20
_LARGEST_PAGE = 65_536


class BusyError(Exception):
    """The database changes while it is copied, again and again."""


class DamagedError(Exception):
    """The database cannot be read, or not beyond here."""


class Row:
    """One row of a table; texts are decoded when they are asked for."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        """Tell whether there is such a column."""
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the columns."""
        return iter(self._values)

    def get(self, name: str) -> Any:
        """Return a value: a number, a text, or `None`, for an absent column too.

        Raises:
            RecordError: It is bytes that are no UTF-8.
        """
        value = self._values.get(name)
        if not isinstance(value, bytes):
            return value
        try:
            return value.decode()
        except UnicodeDecodeError:
            detail = f"{name} holds bytes that are no UTF-8; mend it"
            raise RecordError("not_text", detail) from None

    def raw(self, name: str) -> Any:
        """Return a value as it is stored; a text as bytes."""
        return self._values.get(name)

    def text(self, name: str) -> str | None:
        """Return a text, a number as text, `None` of none.

        Raises:
            RecordError: As `get`.
        """
        value = self.get(name)
        return value if value is None or isinstance(value, str) else compact_json(value)

    def needed(self, name: str) -> str:
        """Return a text that must be there.

        Raises:
            RecordError: It is absent or empty, or as `get`.
        """
        text = self.text(name)
        if not text:
            raise RecordError("missing_field", f"has no {name}; add it")
        return text

    def given(self, name: str) -> str:
        """Return a text that must be there and may be empty.

        Raises:
            RecordError: It is absent, or as `get`.
        """
        text = self.text(name)
        if text is None:
            raise RecordError("missing_field", f"has no {name}; add it")
        return text


class Tables(Protocol):
    """The tables of a database, wherever it is.

    Attributes:
        is_cut: A part of them is missing.
    """

    is_cut: bool

    def tables(self) -> dict[str, frozenset[str]]:
        """Return the columns of each table."""
        ...

    def has_rows(self, table: str, /) -> bool:
        """Tell whether a table has a row; one that cannot be read may have."""
        ...

    def rows(self, table: str, /, *, order: str = ...) -> Iterator[Row]:
        """Yield the rows of a table, sorted by its columns as far as it has those."""
        ...


class DatabaseCopy:
    """A private copy of a database.

    Attributes:
        is_cut: The file is shorter than it says.
    """

    def __init__(self, connection: sqlite3.Connection, *, is_cut: bool = False) -> None:
        self._connection = connection
        self.is_cut = is_cut
        connection.text_factory = bytes

    def tables(self) -> dict[str, frozenset[str]]:
        """Return the columns of each table, in the order the tables were made.

        Raises:
            DamagedError: They cannot be read.
        """
        query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        names = [name.decode("utf-8", "replace") for (name,) in self._all(query)]
        listed = [name for name in names if not name.startswith("sqlite_")]
        return {name: frozenset(self._columns(name)) for name in listed}

    def count(self, table: str) -> int:
        """Return how many rows a table has.

        Raises:
            DamagedError: They cannot be counted.
        """
        ((rows,),) = self._all(f"SELECT count(*) FROM {_quoted(table)}")  # noqa: S608 - quoted
        return int(rows)

    def has_rows(self, table: str) -> bool:
        """Tell whether a table has a row; one that cannot be read may have."""
        try:
            return bool(self._all(f"SELECT 1 FROM {_quoted(table)} LIMIT 1"))  # noqa: S608 - quoted
        except DamagedError:
            return True

    def rows(self, table: str, *, order: str = "rowid", columns: str = "*") -> Iterator[Row]:
        """Yield the rows of a table.

        Args:
            order: Columns of the table to sort by, as SQL.
            columns: What to read, as SQL.

        Raises:
            DamagedError: After those that can be read.
        """
        query = f"SELECT {columns} FROM {_quoted(table)}"  # noqa: S608 - quoted, the rest is ours
        with _damage_told():
            try:
                cursor = self._connection.execute(f"{query} ORDER BY {order}")
            except sqlite3.OperationalError:
                cursor = self._connection.execute(query)
            yield from _rows_of(cursor)

    def select(self, query: str, *facts: Any) -> Iterator[Row]:
        """Yield the rows of a query of ours.

        Raises:
            DamagedError: It cannot be answered, or not to its end.
        """
        with _damage_told():
            yield from _rows_of(self._connection.execute(query, facts))

    def index(self, table: str, column: str) -> None:
        """Have lookups by a column be fast; the source knows nothing of it.

        Raises:
            DamagedError: The table cannot be read.
        """
        self._all(f"CREATE INDEX IF NOT EXISTS hiermem_{table} ON {_quoted(table)} ({column})")

    def _columns(self, table: str) -> list[str]:
        rows = self._all(f"PRAGMA table_info({_quoted(table)})")
        return [row[1].decode("utf-8", "replace") for row in rows]

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        with _damage_told():
            return self._connection.execute(query).fetchall()


@contextmanager
def _damage_told() -> Iterator[None]:
    """Raise `DamagedError` for what SQLite raises, whose own words may quote damaged names."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DamagedError("a name in it is no UTF-8") from error
    except sqlite3.Error as error:
        raise DamagedError(str(error)) from error


def _rows_of(cursor: sqlite3.Cursor) -> Iterator[Row]:
    try:
        names = [column[0] for column in cursor.description]
        for values in cursor:
            yield Row(dict(zip(names, values, strict=True)))
    finally:
        with suppress(sqlite3.ProgrammingError):  # its connection may be closed by now
            cursor.close()


@contextmanager
def copied(path: Path) -> Iterator[DatabaseCopy]:
    """Copy a database for a block, and open the copy. Never changes the source.

    Raises:
        BusyError: It changes all the time.
    """
    with tempfile.TemporaryDirectory(prefix="hiermem-import-") as folder:
        copy = Path(folder) / "source.db"
        _copy(path, copy)
        is_cut = _mend_length(copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            yield DatabaseCopy(connection, is_cut=is_cut)


def is_database(head: bytes) -> bool:
    """Tell whether a file that begins so is an SQLite database."""
    return head.startswith(MAGIC)


def is_placeholder(path: Path) -> bool:
    """Tell whether a database is a header and nothing but zeros."""
    with path.open("rb") as file:
        file.seek(_HEADER_BYTES)
        while chunk := file.read(_CHUNK):
            if chunk.strip(b"\x00"):
                return False
    return not any(log.exists() and log.stat().st_size for log in _logs(path))


def _copy(path: Path, copy: Path) -> None:
    for _ in range(_ATTEMPTS):
        before = _state(path)
        for suffix in ("", *_LOGS):
            copied_file = copy.with_name(copy.name + suffix)
            copied_file.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(_beside(path, suffix), copied_file)
        if _state(path) == before:
            return
    raise BusyError("it changes while it is copied")


def _mend_length(copy: Path) -> bool:
    """Have a copy that was cut say how long it is, as else nothing of it is read; tell if so."""
    with copy.open("r+b") as file:
        header = file.read(_HEADER_BYTES)
        (page_bytes,) = struct.unpack(">H", header[16:18])
        page_bytes = _LARGEST_PAGE if page_bytes == 1 else page_bytes
        (pages,) = struct.unpack(">I", header[28:32])
        there = copy.stat().st_size // max(1, page_bytes)
        if there >= pages or _beside(copy, "-wal").exists():
            return False
        file.seek(28)
        file.write(struct.pack(">I", there))
    return True


def _state(path: Path) -> list[tuple[int, int] | None]:
    return [_stamp(path), *map(_stamp, _logs(path))]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_size, facts.st_mtime_ns


def _logs(path: Path) -> list[Path]:
    return [_beside(path, suffix) for suffix in _LOGS]


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
