"""The database: connections, transactions, and errors in HierMem's words."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import create_engine, delete, event, insert, select
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from hiermem_core.errors import (
    BackendError,
    BackendUnavailableError,
    ClosedError,
    ConfigurationError,
    InvalidInputError,
)
from hiermem_core.faults import reach
from hiermem_core.forks import renewed_after_fork
from hiermem_core.models.health import ComponentHealth, Health
from hiermem_core.storage import tables
from hiermem_core.storage.forking import gate
from hiermem_core.storage.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from hiermem_core.storage.location import Location

Durability = Literal["process", "power"]

_SYNCHRONOUS: dict[Durability, str] = {"process": "NORMAL", "power": "FULL"}
_POOL_SIZE = 8
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1
_VARIABLES = 500

_CHECKPOINT_PAGES = 4000
"""16 MB of log: a page written again and again, as those of indexes are, is copied back once."""


class Database:
    """SQLite behind SQLAlchemy: write-ahead log, immediate write transactions, a busy wait.

    Safe to share between threads; a forked child opens connections of its own.

    Args:
        durability: `"process"`: a killed process loses nothing acknowledged. `"power"`: a power
            cut loses nothing either, at about a third of the single-write rate.
        busy_seconds: How long to wait for other writers.

    Attributes:
        before_commit: Called with every write transaction at its end.
    """

    def __init__(
        self, location: Location, *, durability: Durability = "process", busy_seconds: float = 30.0
    ) -> None:
        self.location = location
        self._busy_seconds = busy_seconds
        self._closed = False
        self._idle = threading.Condition()
        self._running = 0
        self._reading = threading.local()
        self._last_error: str | None = None
        self.before_commit: Callable[[Connection], None] | None = None
        self._engine = _engine(location, _SYNCHRONOUS[durability], busy_seconds)
        self._watch = None if location.database is None else Watch(location.database)
        renewed_after_fork(self)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Run reads on one snapshot; inside another read of this thread, on its snapshot."""
        outer = getattr(self._reading, "connection", None)
        if outer is not None:
            yield outer
            return
        with self._transaction("reading", "BEGIN") as connection:
            self._reading.connection = connection
            try:
                yield connection
            finally:
                self._reading.connection = None

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Run a write transaction: committed when the block ends, undone when it raises."""
        try:
            with self._transaction("writing", "BEGIN IMMEDIATE") as connection:
                yield connection
                if self.before_commit is not None:
                    self.before_commit(connection)
                reach("rows.before_commit")
        except BackendError as error:
            self._last_error = str(error)
            raise
        self._last_error = None
        reach("rows.after_commit")

    def fact(
        self, statement: str, parameters: Sequence[str] = (), *, inside: Connection | None = None
    ) -> Any:
        """Return the first value of a statement, kept while nothing is committed, by whomever.

        Args:
            statement: Plain SQL that every dialect takes, with `?` for each parameter.
            inside: The open transaction of the caller, where there is one.
        """
        if self._watch is not None:
            with _mapped("reading"):
                self.check_open()
                return self._watch.value(statement, parameters)
        if inside is not None:
            return inside.exec_driver_sql(statement, tuple(parameters)).scalar()
        with self.read() as connection:
            return connection.exec_driver_sql(statement, tuple(parameters)).scalar()

    def health(self) -> Health:
        """Write, read and delete a canary, and report; `degraded` after a failed write."""
        started = time.perf_counter()
        message = ""
        try:
            self._canary()
        except BackendError as error:
            message = str(error)
        latency = (time.perf_counter() - started) * 1000
        rows = ComponentHealth("unhealthy" if message else "healthy", latency, message)
        last_error = self._last_error or message or None
        if message:
            return Health("unhealthy", rows, last_error)
        return Health("degraded" if last_error else "healthy", rows, last_error)

    def _canary(self) -> None:
        key = f"canary-{os.getpid()}-{threading.get_ident()}"
        row = {"key": key, "value": "1", "updated_at": 0}
        mine = tables.metadata.c.key == key
        with self._transaction("health", "BEGIN IMMEDIATE") as connection:
            connection.execute(insert(tables.metadata).values(row))
            connection.execute(select(tables.metadata).where(mine)).one()
            connection.execute(delete(tables.metadata).where(mine))

    def prepare_file(self) -> None:
        """Switch the file to its write-ahead log."""
        if self.location.is_memory:
            return
        with _mapped("opening"):
            self._patiently(self._set_wal)

    def clean(self, patience: float | None = None) -> None:
        """Rewrite the file without the bytes of what was removed, and empty the write-ahead log.

        Takes room for a second copy of the database while it runs; other writers wait for it.

        Args:
            patience: Seconds to wait for other writers, and for readers of older snapshots, which
                need the old bytes; `None`: as long as a write waits. No lock is held meanwhile.

        Raises:
            BackendUnavailableError: Somebody still needs the old bytes; repeat it.
            BackendError: The disk fails, or is full. Nothing is lost.
        """
        deadline = time.monotonic() + (self._busy_seconds if patience is None else patience)
        with self._counted(), _mapped("cleaning"), self._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout=0")
            try:
                self._in_turns(lambda: connection.exec_driver_sql("VACUUM"), deadline)
                self._in_turns(lambda: _empty_log(connection), deadline)
            finally:
                milliseconds = round(self._busy_seconds * 1000)
                connection.exec_driver_sql(f"PRAGMA busy_timeout={milliseconds}")

    def close(self, timeout: float | None = None) -> None:
        """Take no new transaction, let the open ones end, and close all files. Idempotent.

        Args:
            timeout: Seconds to wait for open transactions; `None`: until they end.
        """
        with self._idle:
            self._closed = True
            self._idle.wait_for(lambda: not self._running, timeout)
        self._engine.dispose()
        if self._watch is not None:
            self._watch.close()

    def after_fork(self) -> None:
        """Leave the parent's connections alone after a fork."""
        self._idle = threading.Condition()
        self._running = 0
        if not self.location.is_memory:
            self._engine.dispose(close=False)

    @property
    def is_closed(self) -> bool:
        """Tell whether `close` was called."""
        return self._closed

    def check_open(self) -> None:
        """Raise `ClosedError` after `close`."""
        if self._closed:
            raise ClosedError

    @contextmanager
    def _transaction(self, operation: str, begin: str) -> Iterator[Connection]:
        with (
            self._counted(),
            gate.passing(),
            _mapped(operation),
            self._engine.connect() as connection,
        ):
            self._patiently(lambda: connection.exec_driver_sql(begin))
            yield connection
            _commit(connection)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._idle:
            self.check_open()
            self._running += 1
        try:
            yield
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    def _set_wal(self) -> None:
        with self._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    def _in_turns(self, action: Callable[[], object], deadline: float) -> None:
        """Run an action until the database is free for it; a fork waits for a try, not for all."""

        def attempt() -> None:
            with gate.passing():
                action()

        self._patiently(attempt, deadline)

    def _patiently(self, action: Callable[[], object], deadline: float | None = None) -> None:
        if deadline is None:
            deadline = time.monotonic() + self._busy_seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                action()
            except OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                return


def slices(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield `items` in pieces that fit the variables of one statement."""
    for start in range(0, len(items), _VARIABLES):
        yield items[start : start + _VARIABLES]


def _engine(location: Location, synchronous: str, busy_seconds: float) -> Engine:
    if location.database is not None:
        _make_folder(location.database.parent)
    size = 1 if location.is_memory else _POOL_SIZE
    engine = create_engine(
        location.url,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        pool_timeout=max(busy_seconds, 1.0) * 2,
        connect_args={"check_same_thread": False, "timeout": busy_seconds},
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, record: object) -> None:
        del record
        connection.isolation_level = None
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")

    return engine


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


def _commit(connection: Connection) -> None:
    try:
        connection.commit()
    except BaseException:  # the connection is given back clean, whatever it is
        with suppress(Exception):  # SQLAlchemy takes a failed commit for the transaction's end
            connection.connection.rollback()
        raise


@contextmanager
def _mapped(operation: str) -> Iterator[None]:
    try:
        yield
    except (OperationalError, PoolTimeoutError, sqlite3.OperationalError) as error:
        cause = getattr(error, "orig", None) or error
        reason = "the database stays locked; retry later" if _is_busy(error) else _reason(cause)
        raise BackendUnavailableError(operation, reason) from cause
    except DBAPIError as error:
        raise BackendError(operation, _reason(error.orig)) from error.orig
    except SQLAlchemyError as error:
        raise BackendError(operation, type(error).__name__) from error
    except sqlite3.Error as error:
        raise BackendError(operation, _reason(error)) from error
    except OverflowError as error:
        raise InvalidInputError("figure", "does not fit 64 bits; give a smaller one") from error


def _reason(cause: BaseException | None) -> str:
    name = getattr(cause, "sqlite_errorname", type(cause).__name__)
    return f"{name}; {_REMEDIES.get(name, 'check the disk and try again')}"


_REMEDIES = {
    "SQLITE_NOTADB": "the file is no database; name another location",
    "SQLITE_CANTOPEN": "the location cannot be opened for writing; check its permissions",
    "SQLITE_READONLY": "the location cannot be written; check its permissions",
    "SQLITE_FULL": "the disk is full; make room and try again",
}


def _is_busy(error: BaseException) -> bool:
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0) or 0
    return code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
