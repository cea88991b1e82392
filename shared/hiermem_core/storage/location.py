"""Where a memory lives: a folder, a database file, this process, or a database server."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from hiermem_core.errors import ConfigurationError

MEMORY = ":memory:"
DATABASE_NAME = "memory.db"
INDEX_NAME = "chroma"
SCHEMA = "hiermem"
"""The PostgreSQL schema that holds the tables, unless the URL says `?schema=name`."""

_FILE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})
_HOST = re.compile(r"[^\s\[\]@/]*|\[[0-9a-fA-F:.%]+\]")
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")

_OF_LIBPQ = frozenset(
    {
        *("application_name", "channel_binding", "connect_timeout", "gssencmode", "host"),
        *("keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "passfile"),
        *("port", "service", "sslcert", "sslcrl", "sslkey", "sslmode", "sslrootcert"),
        *("target_session_attrs", "tcp_user_timeout"),
    }
)
"""What a URL may say of the connection, by libpq's names."""


@dataclass(frozen=True, slots=True)
class Server:
    """A database of a PostgreSQL server, and the schema that holds the tables.

    Attributes:
        url: The SQLAlchemy URL, password included, without the schema.
    """

    url: URL
    schema: str = SCHEMA

    @property
    def without_password(self) -> Server:
        """The same, as it may be shown."""
        return Server(self.url._replace(password=None), self.schema)

    def __str__(self) -> str:
        """Name both; a password is never in it."""
        url = self.without_password.url
        if self.schema != SCHEMA:
            url = url.update_query_dict({"schema": self.schema})
        return url.render_as_string()


@dataclass(frozen=True, slots=True)
class Location:
    """A resolved location.

    Attributes:
        database: The SQLite file; `None`: a server, or a memory inside this process.
        server: The PostgreSQL database, and the schema in it that holds the tables.
    """

    database: Path | None
    server: Server | None = None

    @property
    def url(self) -> URL:
        """The SQLAlchemy URL of SQLite's database."""
        return URL.create("sqlite", database=str(self.database) if self.database else MEMORY)

    @property
    def is_memory(self) -> bool:
        """Tell whether the location ends with this process."""
        return self.database is None and self.server is None

    def is_named_by(self, other: Location) -> bool:
        """Tell whether `other` is this one, or this one with the password left out."""
        if self.server is None or other.server is None:
            return self == other
        return other.server in {self.server, self.server.without_password}

    @property
    def index_folder(self) -> Path | None:
        """Where the vector index lives, beside the database; `None` where there is none."""
        if self.database is None:
            return None
        if self.database.name == DATABASE_NAME:
            return self.database.parent / INDEX_NAME
        return self.database.with_name(f"{self.database.name}.{INDEX_NAME}")

    @property
    def exists(self) -> bool:
        """Tell whether something is stored there; a server is only asked when it is opened."""
        return self.server is not None or (self.database is not None and self.database.is_file())

    def __str__(self) -> str:
        """Name the location; a password is never in it."""
        if self.server is not None:
            return str(self.server)
        return MEMORY if self.database is None else str(self.database)


def resolve(location: str | os.PathLike[str]) -> Location:
    """Return what `location` means.

    A path that ends in `.db`, `.sqlite` or `.sqlite3`, or that is a file, is the database file
    itself; any other path is a folder that holds `memory.db`. A URL names a database of a
    PostgreSQL server, `postgresql+psycopg://user:password@host/database`, or an SQLite file.

    Raises:
        ConfigurationError: It is empty, a URL of an unsupported kind, or has unknown parameters.
    """
    text = os.fspath(location)
    if text == MEMORY:
        return Location(None)
    if not text:
        raise ConfigurationError("location", "is empty; name a folder, a .db file or :memory:")
    if "://" in text:
        return _from_url(text)
    return Location(_database_at(text))


def _database_at(text: str) -> Path:
    try:
        path = Path(os.path.realpath(Path(text).expanduser()))
        is_file = path.is_file() or (path.suffix in _FILE_SUFFIXES and not path.is_dir())
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigurationError("location", f"is no path ({type(error).__name__})") from None
    return path if is_file else path / DATABASE_NAME


def _from_url(text: str) -> Location:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ConfigurationError("location", "is not a valid database URL") from None
    if url.get_backend_name() == "postgresql":
        return Location(None, _server(url))
    if url.get_backend_name() != "sqlite":
        kind = url.get_backend_name()
        raise ConfigurationError("location", f"{kind} is not supported; use a folder or postgresql")
    _check_query(url, frozenset())
    if url.database in {None, "", MEMORY}:
        return Location(None)
    return Location(Path(os.path.realpath(str(url.database))))


def _server(url: URL) -> Server:
    _check_query(url, _OF_LIBPQ | {"schema"})
    if url.drivername not in {"postgresql", "postgresql+psycopg"}:
        raise ConfigurationError("location", f"{url.drivername}: write postgresql+psycopg://...")
    if not url.database or not _HOST.fullmatch(url.host or ""):
        reason = "a server's URL is postgresql+psycopg://user:password@host:port/database"
        raise ConfigurationError("location", reason)
    schema = url.query.get("schema", SCHEMA)
    if not isinstance(schema, str) or not _SCHEMA_NAME.fullmatch(schema):
        reason = "a schema has small letters, digits and underscores; name another"
        raise ConfigurationError("location", reason)
    plain = url.set(drivername="postgresql+psycopg").difference_update_query(["schema"])
    return Server(plain, schema)


def _check_query(url: URL, known: frozenset[str]) -> None:
    unknown = ", ".join(sorted(url.query.keys() - known))
    if unknown:
        raise ConfigurationError("location", f"unknown parameter {unknown}; remove it")
