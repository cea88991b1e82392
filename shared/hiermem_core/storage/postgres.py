"""PostgreSQL: a server that many processes and hosts share."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary
from zlib import crc32

from sqlalchemy import create_engine, event
from sqlalchemy.exc import DisconnectionError, ProgrammingError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from hiermem_core.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from sqlalchemy import Connection, Engine

    from hiermem_core.storage.dialect import Facts
    from hiermem_core.storage.location import Server

_MOST_FACTS = 10_000
_CONNECT_SECONDS = 10

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_LOCK = "SELECT pg_advisory_xact_lock(%s::bigint)"
_LOCK_TENANT = (
    "SELECT pg_advisory_xact_lock_shared(%s::bigint), pg_advisory_xact_lock(%s::int, %s::int)"
)

_DENIED = "42501"
"""SQLSTATE of insufficient_privilege."""

_NAMESPACE = "SELECT to_regnamespace(%s)"

_begins: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""By connection of the driver: how the transaction begins that its next statement is first in."""

_TRY = "SELECT pg_try_advisory_lock(%s::int, %s::int)"

_TABLES = (
    "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables"
    " WHERE schemaname = current_schema()"
)

_BUSY = frozenset({"55P03", "40P01", "40001"})
"""SQLSTATE of lock_not_available, deadlock_detected and serialization_failure."""


class Postgres:
    """PostgreSQL by psycopg, the tables in a schema of their own; see `Dialect`.

    Who writes what is one tenant's holds that tenant's advisory lock until its transaction ends,
    so that numbers, counts and comparisons inside it are as exact as behind SQLite's one lock, and
    tenants do not wait for each other. Who writes anything else waits for all of them.

    Args:
        check_seconds: How long a fact is kept that other processes may change meanwhile.
    """

    def __init__(self, server: Server, *, busy_seconds: float, check_seconds: float) -> None:
        if find_spec("psycopg") is None:
            raise MissingExtraError("postgres", feature="a PostgreSQL location")
        import psycopg  # noqa: PLC0415 - an extra

        self.errors: tuple[type[Exception], ...] = (psycopg.Error,)
        self._lost = (psycopg.OperationalError, psycopg.InterfaceError)
        self._server = server
        self._busy_seconds = busy_seconds
        self._whole = crc32(f"hiermem {server.schema}".encode())
        milliseconds = max(1, round(busy_seconds * 1000))
        self._connect_args = {
            "options": f"-c search_path={server.schema} -c lock_timeout={milliseconds}",
            "connect_timeout": _CONNECT_SECONDS,
            **server.url.query,
        }
        self._engine: Engine | None = None
        self.facts: Facts | None = TimedFacts(self._fact, seconds=check_seconds)

    def engine(self, pool_size: int) -> Engine:
        """Return a new engine; nothing is connected yet."""
        self._engine = create_engine(
            self._server.url,
            poolclass=QueuePool,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=max(self._busy_seconds, 1.0) * 2,
            isolation_level="AUTOCOMMIT",  # transactions begin where this module says
            connect_args=self._connect_args,
        )
        event.listen(self._engine, "checkout", _refuse_cut)
        event.listen(self._engine, "checkin", _forget_begin)
        event.listen(self._engine, "do_execute", _begin_first)
        return self._engine

    def begin_read(self, connection: Connection) -> None:
        """Begin a transaction that reads on one snapshot, with its first statement."""
        _begins[connection.connection.driver_connection] = _READ

    def begin_write(self, connection: Connection, tenant: str | None) -> None:
        """Begin a transaction, and wait for the tenant's lock, or for all of them."""
        _begins[connection.connection.driver_connection] = _WRITE
        if tenant is None:
            connection.exec_driver_sql(_LOCK, (self._whole,))
        else:
            place = _signed(self._whole), _signed(crc32(tenant.encode()))
            connection.exec_driver_sql(_LOCK_TENANT, (self._whole, *place))

    def prepare(self, engine: Engine) -> None:
        """Create the schema, unless it is there.

        Raises:
            ConfigurationError: The database is not in UTF-8, or the user may not create it.
        """
        with engine.connect() as connection:
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
            if encoding != "UTF8":
                reason = f"the database is in {encoding}; create one with ENCODING 'UTF8'"
                raise ConfigurationError("location", reason)
            self.begin_write(connection, None)
            name = self._server.schema
            if connection.exec_driver_sql(_NAMESPACE, (name,)).scalar() is None:
                try:
                    connection.exec_driver_sql(f"CREATE SCHEMA {name}")
                except ProgrammingError as error:
                    if getattr(error.orig, "sqlstate", None) != _DENIED:
                        raise
                    reason = f"the user may not create the schema {name}; grant it, or create it"
                    raise ConfigurationError("location", reason) from error.orig
            connection.commit()

    @contextmanager
    def cleaning(self, connection: Connection) -> Iterator[Sequence[Callable[[], object]]]:
        """Give the step that frees the room of removed rows in our tables.

        The server writes over it in time; its log and its backups are its own.
        """
        names = connection.exec_driver_sql(_TABLES).scalar()
        yield (lambda: connection.exec_driver_sql(f"VACUUM {names}"),)

    def hold(self, name: str) -> SessionLock | None:
        """Hold an advisory lock in a session of its own, unless another session does."""
        engine = create_engine(
            self._server.url,
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args=self._connect_args,
        )
        connection = engine.connect()
        key = _signed(self._whole), _signed(crc32(name.encode()))
        if connection.exec_driver_sql(_TRY, key).scalar():
            return SessionLock(connection)
        connection.close()
        return None

    def first(self, connection: Connection, statement: str, parameters: Sequence[Hashable]) -> Any:
        """Return the first value of a statement."""
        return connection.exec_driver_sql(statement.replace("?", "%s"), tuple(parameters)).scalar()

    def is_busy(self, error: BaseException) -> bool:
        """Tell whether another holds a lock too long, or two waited for each other."""
        return getattr(getattr(error, "orig", error), "sqlstate", None) in _BUSY

    def is_unavailable(self, cause: BaseException) -> bool:
        """Tell whether the server cannot be reached, or has ended the connection."""
        return isinstance(cause, self._lost)

    def reason(self, cause: BaseException | None) -> str:
        """Return the kind of an error, and what to do about it; never the server's own text."""
        state = getattr(cause, "sqlstate", None)
        name = type(cause).__name__ + (f" ({state})" if state else "")
        if cause is not None and self.is_unavailable(cause):
            return f"{name}; check that the server runs and takes connections, and retry"
        return f"{name}; see the server's log"

    def _fact(self, statement: str, parameters: Sequence[Hashable]) -> Any:
        if self._engine is None:
            raise AssertionError("facts are asked of an engine")
        with self._engine.connect() as connection:
            return self.first(connection, statement, parameters)


def _begin_first(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    """Begin a transaction in the round trip of its first statement; tell whether that was done."""
    del context
    begin = _begins.pop(cursor.connection, None)
    if begin is None:
        return False
    with cursor.connection.pipeline():
        cursor.connection.execute(begin)
        cursor.execute(statement, parameters)
    return True


def _forget_begin(driver: object, record: object) -> None:
    del record
    if driver is not None:  # a connection that was cut comes back without one
        _begins.pop(driver, None)


def _refuse_cut(driver: Any, record: object, proxy: object) -> None:
    """Have a connection made anew that the server has ended while nobody used it.

    A server says nothing to an idle connection but its end.
    """
    del record, proxy
    if _is_cut(driver):
        raise DisconnectionError


def _is_cut(driver: Any) -> bool:
    if driver.closed:
        return True
    with DefaultSelector() as selector:
        selector.register(driver.fileno(), EVENT_READ)
        return bool(selector.select(timeout=0))


class SessionLock:
    """A lock that a session holds as long as it lives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def is_alive(self) -> bool:
        """Tell whether the session is there, as far as can be told without asking."""
        driver: Any = self._connection.connection.driver_connection
        return not (self._connection.closed or _is_cut(driver))

    def release(self) -> None:
        """End the session. Idempotent."""
        with suppress(SQLAlchemyError):  # it has ended, then
            self._connection.close()


class TimedFacts:
    """Facts that are kept for some seconds, unless this process commits something."""

    is_exact = False

    def __init__(self, read: Callable[[str, Sequence[Hashable]], Any], *, seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._lock = threading.Lock()
        self._writes = 0
        self._kept: dict[tuple[Hashable, ...], tuple[float, Any]] = {}

    def value(self, statement: str, parameters: Sequence[Hashable] = ()) -> Any:
        """Return the first column of a statement's first row; `None` without a row."""
        key = (statement, *parameters)
        now = time.monotonic()
        with self._lock:
            writes = self._writes
            until, value = self._kept.get(key, (0.0, None))
        if now < until:
            return value
        value = self._read(statement, parameters)
        with self._lock:
            if writes == self._writes:
                if len(self._kept) >= _MOST_FACTS:
                    self._kept.clear()
                self._kept[key] = (now + self._seconds, value)
        return value

    def written(self) -> None:
        """Forget everything."""
        with self._lock:
            self._writes += 1
            self._kept.clear()

    def close(self) -> None:
        """Do nothing: the engine's connections are the engine's."""

    def after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.Lock()
        self._kept.clear()


def _signed(number: int) -> int:
    """Return 32 bits as PostgreSQL's `int`."""
    return number - (1 << 32) if number >= 1 << 31 else number
