"""SQLite: a file with a write-ahead log, or a memory of this process."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import QueuePool

from hiermem_core.errors import ConfigurationError
from hiermem_core.storage.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from hiermem_core.storage.dialect import Facts
    from hiermem_core.storage.location import Location

Durability = Literal["process", "power"]

_SYNCHRONOUS: dict[Durability, str] = {"process": "NORMAL", "power": "FULL"}

_CHECKPOINT_PAGES = 4000
"""16 MB of log: a page written again and again, as those of indexes are, is copied back once."""


class Sqlite:
    """SQLite: one writer at a time, whatever it writes; see `Dialect`."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, location: Location, *, durability: Durability, busy_seconds: float) -> None:
        self._location = location
        self._synchronous = _SYNCHRONOUS[durability]
        self._busy_seconds = busy_seconds
        self.facts: Facts | None = None if location.database is None else Watch(location.database)

    def engine(self, pool_size: int) -> Engine:
        """Return a new engine; makes the file's folder."""
        if self._location.database is not None:
            _make_folder(self._location.database.parent)
        engine = create_engine(
            self._location.url,
            poolclass=QueuePool,
            pool_size=1 if self._location.is_memory else pool_size,
            max_overflow=0,
            pool_timeout=max(self._busy_seconds, 1.0) * 2,
            connect_args={"check_same_thread": False, "timeout": self._busy_seconds},
        )

        @event.listens_for(engine, "connect")
        def _configure(connection: Any, record: object) -> None:
            del record
            connection.isolation_level = None
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")

        return engine

    def begin_read(self, connection: Connection) -> None:
        """Begin a transaction that reads on one snapshot."""
        connection.exec_driver_sql("BEGIN")

    def begin_write(self, connection: Connection, tenant: str | None) -> None:
        """Begin a transaction that no other one writes beside."""
        del tenant
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def prepare(self, engine: Engine) -> None:
        """Switch the file to its write-ahead log."""
        if not self._location.is_memory:
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    @contextmanager
    def cleaning(self, connection: Connection) -> Iterator[Sequence[Callable[[], object]]]:
        """Give the steps that leave no byte of what was removed in the file and its log."""
        connection.exec_driver_sql("PRAGMA busy_timeout=0")
        try:
            yield (
                lambda: connection.exec_driver_sql("VACUUM"),
                lambda: _empty_log(connection),
            )
        finally:
            milliseconds = round(self._busy_seconds * 1000)
            connection.exec_driver_sql(f"PRAGMA busy_timeout={milliseconds}")

    def hold(self, name: str) -> None:
        """Hold nothing: whoever shares a file locks files."""
        del name

    def first(self, connection: Connection, statement: str, parameters: Sequence[Hashable]) -> Any:
        """Return the first value of a statement."""
        return connection.exec_driver_sql(statement, tuple(parameters)).scalar()

    def is_busy(self, error: BaseException) -> bool:
        """Tell whether others hold the file's locks."""
        code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0) or 0
        return code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

    def is_unavailable(self, cause: BaseException) -> bool:
        """Tell whether the file cannot be opened, locked or written."""
        return isinstance(cause, sqlite3.OperationalError)

    def reason(self, cause: BaseException | None) -> str:
        """Return SQLite's name of an error, and what to do about it."""
        name = getattr(cause, "sqlite_errorname", type(cause).__name__)
        return f"{name}; {_REMEDIES.get(name, 'check the disk and try again')}"


_REMEDIES = {
    "SQLITE_NOTADB": "the file is no database; name another location",
    "SQLITE_CANTOPEN": "the location cannot be opened for writing; check its permissions",
    "SQLITE_READONLY": "the location cannot be written; check its permissions",
    "SQLITE_FULL": "the disk is full; make room and try again",
}


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot create {folder}: {error.strerror}; choose another location"
        raise ConfigurationError("location", reason) from error


def _empty_log(connection: Connection) -> None:
    """Move the write-ahead log into the file, and empty it.

    Raises:
        OperationalError: A reader or writer keeps it from that.
    """
    statement = "PRAGMA wal_checkpoint(TRUNCATE)"
    is_blocked = connection.exec_driver_sql(statement).one()[0]
    if is_blocked:
        cause = sqlite3.OperationalError("the write-ahead log is in use")
        cause.sqlite_errorcode = sqlite3.SQLITE_BUSY
        cause.sqlite_errorname = "SQLITE_BUSY"
        raise OperationalError(statement, None, cause)
