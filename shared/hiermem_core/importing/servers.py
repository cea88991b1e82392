"""Databases on a server as sources: PostgreSQL, read in one transaction that cannot write."""

from __future__ import annotations

from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, cast, column, create_engine, func, literal, select, table, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from hiermem_core.errors import InvalidInputError, MissingExtraError
from hiermem_core.importing.databases import DamagedError, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import ColumnElement, Connection
    from sqlalchemy.engine import URL

_KINDS = ("postgresql", "postgres")
_DRIVER = "postgresql+psycopg"
_CONNECT_SECONDS = "10"
_PAGE = 1000
_FIGURES, _ARRAY = ("N", "B"), "A"
_COLUMNS = """
SELECT c.relname, a.attname, t.typname, t.typcategory FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relnamespace = to_regnamespace(current_schema()) AND c.relkind IN ('r', 'p', 'f')
AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum
"""
_SETTINGS = {"TimeZone": "UTC", "DateStyle": "ISO", "synchronize_seqscans": "off"}
_UNPREPARED: dict[str, Any] = {"prepare_threshold": None}
"""Poolers that hand a connection on with each transaction know no prepared statements."""


class ServerAddress:
    """Where a database on a server is; no password is shown of it."""

    def __init__(self, url: URL) -> None:
        self.url = url.set(drivername=_DRIVER)

    def __str__(self) -> str:
        """Name it, with the password masked, and without parameters, which may hold another."""
        return self.url.set(query={}).render_as_string(hide_password=True)

    __repr__ = __str__


def address_of(url: str) -> ServerAddress | Path:
    """Return what a database URL means: a server, or the file of an SQLite database.

    Raises:
        InvalidInputError: It is no URL of a database that can be read.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidInputError("source", "is not a valid database URL") from None
    if "@" in (parsed.host or ""):
        reason = "is not a valid database URL; write an @ in a password as %40"
        raise InvalidInputError("source", reason)
    kind = parsed.get_backend_name()
    if kind in _KINDS:
        return ServerAddress(parsed)
    if kind != "sqlite":
        raise InvalidInputError("source", f"{kind} cannot be read; use postgresql or sqlite")
    if parsed.query or parsed.database in {None, "", ":memory:"}:
        reason = "names no file that can be read; give sqlite:/// and the path of one"
        raise InvalidInputError("source", reason)
    return Path(str(parsed.database))


class ServerDatabase:
    """The tables of a database's schema, within one transaction.

    Attributes:
        is_cut: No server gives a part of a table as if it were the whole.
    """

    is_cut = False

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._columns: dict[str, dict[str, ColumnElement[Any]]] = {}

    def tables(self) -> dict[str, frozenset[str]]:
        """Return the columns of each table, by the tables' names.

        Raises:
            DamagedError: They cannot be read.
        """
        with _in_our_words():
            for name, one, kind, category in self._connection.execute(text(_COLUMNS)):
                self._columns.setdefault(name, {})[one] = _read_as(one, kind, category)
        return {name: frozenset(columns) for name, columns in self._columns.items()}

    def has_rows(self, name: str) -> bool:
        """Tell whether a table has a row; one that cannot be read may have."""
        query = select(literal(1)).select_from(table(name)).limit(1)
        try:
            with self._connection.begin_nested():
                return self._connection.execute(query).first() is not None
        except SQLAlchemyError:
            return True

    def rows(self, name: str, *, order: str = "") -> Iterator[Row]:
        """Yield the rows of a table, which need not fit into memory.

        Args:
            order: Columns to sort by, those of them that there are.

        Raises:
            DamagedError: After those that can be read.
        """
        columns = self._columns[name]
        by: list[ColumnElement[Any]] = [column(one) for one in order.split(", ") if one in columns]
        query = (
            select(*(read.label(one) for one, read in columns.items()))
            .select_from(table(name))
            .order_by(*by)
            .execution_options(yield_per=_PAGE)
        )
        with _in_our_words():
            for values in self._connection.execute(query).mappings():
                yield Row({one: _plain(value) for one, value in values.items()})


@contextmanager
def connected(address: ServerAddress) -> Iterator[ServerDatabase]:
    """Read a database in one transaction, as of its first moment. Never writes.

    Raises:
        InvalidInputError: It cannot be reached.
        MissingExtraError: The driver is not installed.
        DamagedError: It goes away at once.
    """
    try:
        engine = create_engine(
            _with_limits(address.url), poolclass=NullPool, connect_args=_UNPREPARED
        )
    except ModuleNotFoundError:
        raise MissingExtraError("postgres", feature="reading PostgreSQL") from None
    try:
        connection = engine.connect().execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
    except (SQLAlchemyError, UnicodeError) as error:  # a host that no name can be
        reason = f"{address} cannot be reached: {_reason(error)}"
        raise InvalidInputError("source", reason) from None
    with connection:  # its end rolls the transaction back, on a server that is gone too
        with _in_our_words():
            for name, value in _SETTINGS.items():
                connection.execute(text(f"SET LOCAL {name} TO '{value}'"))
        yield ServerDatabase(connection)


def _with_limits(url: URL) -> URL:
    return url.update_query_dict({"connect_timeout": _CONNECT_SECONDS} | dict(url.query))


def _read_as(name: str, kind: str, category: str) -> ColumnElement[Any]:
    """Return how a column is read: numbers and bytes as they are, all else as its text."""
    if category in _FIGURES or kind == "bytea":
        return column(name)
    return cast(func.to_json(column(name)) if category == _ARRAY else column(name), Text)


def _plain(value: Any) -> Any:
    """Return a value as an SQLite database would hold it."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bool):
        return int(value)
    return bytes(value) if isinstance(value, memoryview) else value


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise DamagedError(_reason(error)) from error


def _reason(error: Exception) -> str:
    """Return the first line of what the server or its driver says; it names no password."""
    said = str(getattr(error, "orig", None) or error).strip()
    return said.splitlines()[0] if said else type(error).__name__
