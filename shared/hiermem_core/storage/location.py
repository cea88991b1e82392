"""Where a memory lives: a folder, a database file, this process, or a database server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from hiermem_core.errors import ConfigurationError

MEMORY = ":memory:"
DATABASE_NAME = "memory.db"
INDEX_NAME = "chroma"
_FILE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})


@dataclass(frozen=True, slots=True)
class Location:
    """A resolved location.

    Attributes:
        database: The SQLite file, or `None` for a memory inside this process.
    """

    database: Path | None

    @property
    def url(self) -> URL:
        """The SQLAlchemy URL."""
        return URL.create("sqlite", database=str(self.database) if self.database else MEMORY)

    @property
    def is_memory(self) -> bool:
        """Tell whether the location ends with this process."""
        return self.database is None

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
        """Tell whether something is stored there."""
        return self.database is not None and self.database.is_file()

    def __str__(self) -> str:
        """Name the location; a password is never in it."""
        return MEMORY if self.database is None else str(self.database)


def resolve(location: str | os.PathLike[str]) -> Location:
    """Return what `location` means.

    A path that ends in `.db`, `.sqlite` or `.sqlite3`, or that is a file, is the database file
    itself; any other path is a folder that holds `memory.db`.

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
    if url.query:
        unknown = ", ".join(sorted(url.query))
        raise ConfigurationError("location", f"unknown parameter {unknown}; remove it")
    if url.get_backend_name() != "sqlite":
        kind = url.get_backend_name()
        raise ConfigurationError("location", f"{kind} is not supported yet; use a folder")
    if url.database in {None, "", MEMORY}:
        return Location(None)
    return Location(Path(os.path.realpath(str(url.database))))
