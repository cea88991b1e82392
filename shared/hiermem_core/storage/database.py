"""The database: connections, transactions, and errors in HierMem's words."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hiermem_core.errors import (
    BackendError,
    BackendUnavailableError,
    ClosedError,
    InvalidInputError,
)
from hiermem_core.faults import reach
from hiermem_core.forks import renewed_after_fork
from hiermem_core.models.health import ComponentHealth, Health
from hiermem_core.storage import tables
from hiermem_core.storage.forking import gate
from hiermem_core.storage.postgres import Postgres
from hiermem_core.storage.sealing import Seal, seal_of, sealed_by
from hiermem_core.storage.sqlite import Sqlite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection

    from hiermem_core.storage.dialect import Dialect, Hold
    from hiermem_core.storage.location import Location
    from hiermem_core.storage.sqlite import Durability

_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1
_VARIABLES = 500


class Database:
    """The rows behind SQLAlchemy: snapshots to read, exclusive transactions to write, a busy wait.

    Safe to share between threads; a forked child opens connections of its own.

    Args:
        durability: `"process"`: a killed process loses nothing acknowledged. `"power"`: a power
            cut loses nothing either, at about a third of SQLite's single-write rate; a server's
            own settings decide there.
        busy_seconds: How long to wait for other writers.
        check_seconds: How long a server's facts are taken for valid that others may change.
        pool_size: Connections held at most.

    Attributes:
        before_commit: Called with every write transaction at its end.
    """

    def __init__(
        self,
        location: Location,
        *,
        durability: Durability = "process",
        busy_seconds: float = 30.0,
        check_seconds: float = 1.0,
        pool_size: int = 8,
    ) -> None:
        self.location = location
        self._busy_seconds = busy_seconds
        self._closed = False
        self._idle = threading.Condition()
        self._running = 0
        self._reading = threading.local()
        self._last_error: str | None = None
        self.before_commit: Callable[[Connection], None] | None = None
        self._dialect: Dialect = (
            Sqlite(location, durability=durability, busy_seconds=busy_seconds)
            if location.server is None
            else Postgres(location.server, busy_seconds=busy_seconds, check_seconds=check_seconds)
        )
        self._engine = self._dialect.engine(pool_size)
        self._facts = self._dialect.facts
        self._failures: tuple[type[Exception], ...] = (DBAPIError, *self._dialect.errors)
        renewed_after_fork(self)

    @property
    def is_sealed(self) -> bool:
        """Tell whether a codec encodes what is kept."""
        return seal_of(self._engine.dialect) is not None

    def seal(self, seal: Seal) -> None:
        """Have content sealed, and opened again. Call it before any of it is read or written."""
        sealed_by(self._engine.dialect, seal)

    @property
    def dialect_name(self) -> str:
        """SQLAlchemy's name of the engine beneath."""
        return self._engine.dialect.name

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Run reads on one snapshot; inside another read of this thread, on its snapshot."""
        outer = getattr(self._reading, "connection", None)
        if outer is not None:
            yield outer
            return
        with self._transaction("reading", self._dialect.begin_read) as connection:
            self._reading.connection = connection
            try:
                yield connection
            finally:
                self._reading.connection = None

    @contextmanager
    def write(self, tenant: str | None = None) -> Iterator[Connection]:
        """Run a write transaction: committed when the block ends, undone when it raises.

        Args:
            tenant: The one tenant whose rows are written, so that a server may let others write
                theirs meanwhile; `None`: no other transaction writes anything.
        """
        try:
            with self._writing("writing", tenant) as connection:
                yield connection
                if self.before_commit is not None:
                    self.before_commit(connection)
                reach("rows.before_commit")
        except BackendError as error:
            self._last_error = str(error)
            raise
        self._last_error = None
        if self._facts is not None:
            self._facts.written()
        reach("rows.after_commit")

    def fact(
        self, statement: str, parameters: Sequence[str] = (), *, inside: Connection | None = None
    ) -> Any:
        """Return the first value of a statement, kept while nothing is committed, by whomever.

        Args:
            statement: Plain SQL that every dialect takes, with `?` for each parameter.
            inside: The open transaction of the caller, where there is one.
        """
        if self._facts is not None and (inside is None or self._facts.is_exact):
            with self._mapped("reading"):
                self.check_open()
                return self._facts.value(statement, parameters)
        if inside is not None:
            return self._dialect.first(inside, statement, parameters)
        with self.read() as connection:
            return self._dialect.first(connection, statement, parameters)

    def hold(self, name: str) -> Hold | None:
        """Hold a lock of the location until it is released, or this process ends; never waits.

        Returns:
            `None`: another session holds it, or the engine has no such locks.

        Raises:
            BackendUnavailableError: The server cannot be reached.
        """
        with self._mapped("locking"):
            self.check_open()
            return self._dialect.hold(name)

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
        with self._writing("health", None) as connection:
            connection.execute(insert(tables.metadata).values(row))
            connection.execute(select(tables.metadata).where(mine)).one()
            connection.execute(delete(tables.metadata).where(mine))

    def prepare(self) -> None:
        """Make ready what the tables are created in. Idempotent."""
        with self._mapped("opening"):
            self._patiently(lambda: self._dialect.prepare(self._engine))

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
        with (
            self._counted(),
            self._mapped("cleaning"),
            self._engine.connect() as connection,
            self._dialect.cleaning(connection) as steps,
        ):
            for step in steps:
                self._in_turns(step, deadline)

    def close(self, timeout: float | None = None) -> None:
        """Take no new transaction, let the open ones end, and close all files. Idempotent.

        Args:
            timeout: Seconds to wait for open transactions; `None`: until they end.
        """
        with self._idle:
            self._closed = True
            self._idle.wait_for(lambda: not self._running, timeout)
        self._engine.dispose()
        if self._facts is not None:
            self._facts.close()

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

    def _writing(self, operation: str, tenant: str | None) -> AbstractContextManager[Connection]:
        return self._transaction(
            operation, lambda connection: self._dialect.begin_write(connection, tenant)
        )

    @contextmanager
    def _transaction(
        self, operation: str, begin: Callable[[Connection], None]
    ) -> Iterator[Connection]:
        with (
            self._counted(),
            gate.passing(),
            self._mapped(operation),
            self._engine.connect() as connection,
        ):
            self._patiently(lambda: begin(connection))
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
            except self._failures as error:
                if not self._dialect.is_busy(error) or time.monotonic() >= deadline:
                    raise
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                return

    @contextmanager
    def _mapped(self, operation: str) -> Iterator[None]:
        dialect = self._dialect
        try:
            yield
        except PoolTimeoutError as error:
            reason = "all connections stay in use; let transactions end, and retry later"
            raise BackendUnavailableError(operation, reason) from error
        except self._failures as error:
            cause = getattr(error, "orig", None) or error
            if dialect.is_busy(error):
                reason = "the database stays locked; retry later"
                raise BackendUnavailableError(operation, reason) from cause
            if dialect.is_unavailable(cause):
                raise BackendUnavailableError(operation, dialect.reason(cause)) from cause
            raise BackendError(operation, dialect.reason(cause)) from cause
        except SQLAlchemyError as error:
            raise BackendError(operation, type(error).__name__) from error
        except OverflowError as error:
            raise InvalidInputError("figure", "does not fit 64 bits; give a smaller one") from error


def slices(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield `items` in pieces that fit the variables of one statement."""
    for start in range(0, len(items), _VARIABLES):
        yield items[start : start + _VARIABLES]


def _commit(connection: Connection) -> None:
    try:
        connection.commit()
    except BaseException:  # the connection is given back clean, whatever it is
        with suppress(Exception):  # SQLAlchemy takes a failed commit for the transaction's end
            connection.connection.rollback()
        raise
