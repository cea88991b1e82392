"""Restoring a backup, and starting anew: a location gets another content, in one step.

What is there is kept first, as a backup beside it. Then SQLite puts the new content in the place of
the old as one transaction, so that a process killed at any moment leaves the one or the other. The
location must not be in use: a running program knows things of it that would not be so any more.
"""

from __future__ import annotations

import glob
import hashlib
import os
import secrets
import shutil
import sqlite3
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import (
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    HierMemError,
    InvalidInputError,
)
from hiermem_core.exporting.backups import (
    ON_A_SERVER,
    BackupReport,
    back_up_connection,
    check_backup,
    counts_of,
)
from hiermem_core.exporting.files import kept_name, mapped, sync_folder
from hiermem_core.exporting.report import told
from hiermem_core.models.displayed import Displayed
from hiermem_core.storage.database import Database
from hiermem_core.storage.location import DATABASE_NAME, Location, resolve
from hiermem_core.storage.migrations import prepare
from hiermem_core.vector_index.facts import generations, remove_generation
from hiermem_core.vector_index.ownership import Ownership

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hiermem_core.protocols import Codec

_CHUNK = 1024 * 1024
_PATIENCE = 1.0
_BESIDE = ("-wal", "-shm", "-journal")
_OURS = frozenset({"metadata", "threads"})


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands at a location.

    Attributes:
        counts: What it holds; `None`: it is damaged.
    """

    counts: Mapping[str, int] | None

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing would be lost with it."""
        return self.counts is not None and not any(self.counts.values())

    def __str__(self) -> str:
        """Say it in words."""
        return "a damaged database" if self.counts is None else told(self.counts)


@dataclass(frozen=True, slots=True)
class RestoreReport(Displayed):
    """What was put where.

    Attributes:
        counts: What the location holds now.
        replaced: What it held before; `None`: nothing.
        kept: Where that is kept: a backup, or the files as they were, of a damaged database.
    """

    location: Path
    counts: Mapping[str, int]
    replaced: str | None
    kept: Path | None
    dry_run: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        paths = {name: getattr(self, name) for name in ("location", "kept")}
        return asdict(self) | {k: None if v is None else str(v) for k, v in paths.items()}

    def __str__(self) -> str:
        """Say it in one line, and in another what became of what was there."""
        lines = [f"{self.location}: {told(self.counts)}"]
        if self.replaced is not None:
            where = f", kept at {self.kept}" if self.kept is not None else ""
            lines.append(f"in the place of {self.replaced}{where}")
        return "\n".join(lines)


def restore_backup(
    backup: str | os.PathLike[str],
    location: str | os.PathLike[str],
    *,
    replace: bool = False,
    dry_run: bool = False,
) -> RestoreReport:
    """Put a backup at a location, once its checksum is right.

    The vector index is built anew when it is needed; no embedder is called. An older schema is
    migrated at the next open.

    Args:
        replace: What the location holds is replaced, and kept beside it as a backup. Not needed
            where it holds nothing.
        dry_run: Check everything, report the same, and change nothing.

    Raises:
        InvalidInputError: It is no backup, or was changed or cut.
        ConfigurationError: Something is stored there and is not to be replaced, or what is there
            is no memory.
        BackendUnavailableError: The location is in use.
        MigrationError: The backup was written by a newer version.
    """
    source = Path(backup)
    place, database = _place(location)
    manifest = check_backup(source)
    standing = look_at(place)
    _check_free(place, standing, replace=replace)
    if dry_run:
        return _report(database, manifest.counts, standing, None, dry_run=True)
    with _draft_beside(database) as draft:
        _copy_checked(source / DATABASE_NAME, draft, manifest)
        kept = _put(draft, place, database, standing, "before-restore")
    return _report(database, manifest.counts, standing, kept)


def start_anew(
    location: str | os.PathLike[str],
    *,
    now_ms: int,
    codec: Codec | None = None,
    dry_run: bool = False,
) -> RestoreReport:
    """Give a location an empty memory; what it holds is kept beside it as a backup.

    Args:
        codec: Encodes what is kept from now on.

    Raises:
        ConfigurationError: What is there is no memory.
        BackendUnavailableError: The location is in use.
    """
    place, database = _place(location)
    standing = look_at(place)
    if dry_run:
        return _report(database, {}, standing, None, dry_run=True)
    with _draft_beside(database) as draft:
        fresh = Database(Location(draft))
        try:
            prepare(fresh, now_ms=now_ms, codec=codec)
        finally:
            fresh.close()
        kept = _put(draft, place, database, standing, "before-init")
    return _report(database, {}, standing, kept)


def look_at(place: Location) -> Standing | None:
    """Return what stands at a location; `None`: nothing.

    Raises:
        ConfigurationError: It is another program's database, or a folder.
        BackendUnavailableError: It is locked, or cannot be opened.
    """
    path = place.database
    if path is None or not path.exists():
        return None
    if not path.is_file():
        raise ConfigurationError("location", f"{path} is no file; name another location")
    if not path.stat().st_size:
        return Standing({})
    try:
        with closing(sqlite3.connect(path, timeout=_PATIENCE)) as connection:
            names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            if names and not names >= _OURS:
                raise ConfigurationError(
                    "location", f"{path} is another program's database; name another location"
                )
            is_whole = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
            return Standing(counts_of(connection) if is_whole else None)
    except sqlite3.OperationalError as error:
        raise _in_use(path) if _is_busy(error) else _unreadable(path, error) from error
    except sqlite3.DatabaseError:
        return Standing(None)


def _place(location: str | os.PathLike[str]) -> tuple[Location, Path]:
    place = resolve(location)
    if place.server is not None:
        raise ConfigurationError("location", ON_A_SERVER)
    if place.database is None:
        raise ConfigurationError("location", "is in memory; name a folder or a .db file")
    return place, place.database


def _check_free(place: Location, standing: Standing | None, *, replace: bool) -> None:
    if standing is None or standing.is_empty or replace:
        return
    reason = f"{place} holds {standing}; add --force (replace=True) to replace it and keep a backup"
    raise ConfigurationError("location", reason)


def _report(
    database: Path,
    counts: Mapping[str, int],
    standing: Standing | None,
    kept: Path | None,
    *,
    dry_run: bool = False,
) -> RestoreReport:
    replaced = None if standing is None or standing.is_empty else str(standing)
    return RestoreReport(database, counts, replaced, kept, dry_run)


@contextmanager
def _draft_beside(database: Path) -> Iterator[Path]:
    """Give the path of a new file in the database's folder; what is left of it goes at the end."""
    folder = database.parent
    with mapped(folder):
        folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{database.name}.{secrets.token_hex(4)}.partial"
    try:
        yield draft
    finally:
        for ending in ("", *_BESIDE):
            with suppress(OSError):
                draft.with_name(draft.name + ending).unlink()


def _copy_checked(source: Path, draft: Path, manifest: BackupReport) -> None:
    """Copy a file, and check what was copied.

    Raises:
        InvalidInputError: It is not what the backup's checksum says.
    """
    digest = hashlib.sha256()
    with mapped(draft), source.open("rb") as read:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as copy:
            while chunk := read.read(_CHUNK):
                digest.update(chunk)
                copy.write(chunk)
            copy.flush()
            os.fsync(copy.fileno())
    if digest.hexdigest() != manifest.sha256:
        raise InvalidInputError("backup", f"{source} changed while it was read; try again")


def _put(
    draft: Path, place: Location, database: Path, standing: Standing | None, word: str
) -> Path | None:
    """Put a database in the place of what stands there; return where that is kept."""
    kept = None
    with mapped(database):
        if standing is None or standing.counts is None:
            _check_unused(database)
            kept = _move_away(database, word)
            draft.rename(database)
            sync_folder(database.parent)
        else:
            kept = _put_inside(draft, database, standing, word)
    _remove_index(place)
    _remove_left_over(database, draft)
    return kept


def _put_inside(draft: Path, database: Path, standing: Standing, word: str) -> Path | None:
    kept = None
    try:
        with closing(_alone(database)) as connection:
            if not standing.is_empty:
                kept = kept_name(database, word)
                back_up_connection(connection, kept)
            with closing(sqlite3.connect(f"{draft.as_uri()}?immutable=1", uri=True)) as source:
                source.backup(connection)
    except sqlite3.Error as error:
        if _is_busy(error):
            raise _in_use(database) from error
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        raise BackendError("restoring", f"{database}: {name}; check the disk") from error
    return kept


def _alone(database: Path) -> sqlite3.Connection:
    """Return a connection beside which there is no other, nor can be.

    Raises:
        BackendUnavailableError: There is another.
    """
    connection = sqlite3.connect(database, isolation_level=None, timeout=_PATIENCE)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        connection.close()
        if _is_busy(error):
            raise _in_use(database) from error
        raise
    return connection


def _check_unused(database: Path) -> None:
    """Raise where a database that is damaged, or only its log, is open elsewhere, if that shows.

    Raises:
        BackendUnavailableError: It is.
    """
    if database.exists():
        with suppress(sqlite3.Error):
            _alone(database).close()


def _move_away(database: Path, word: str) -> Path | None:
    """Move files that SQLite would take for the database's, or that are damaged, into a folder."""
    paths = [database.with_name(database.name + ending) for ending in ("", *_BESIDE)]
    there = [path for path in paths if path.exists()]
    if not there:
        return None
    folder = kept_name(database, word)
    folder.mkdir(mode=0o700)
    for path in there:
        shutil.move(path, folder / path.name)
    sync_folder(folder)
    return folder


def _remove_left_over(database: Path, draft: Path) -> None:
    """Remove the drafts of killed runs; they hold copies of what was stored."""
    for path in database.parent.glob(f".{glob.escape(database.name)}.*.partial*"):
        if path.name.startswith(draft.name):
            continue
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _remove_index(place: Location) -> None:
    """Remove an index of what was there before; it would not be trusted, and takes room."""
    folder = place.index_folder
    if folder is None or not folder.is_dir():
        return
    ownership = Ownership(folder)
    if not ownership.try_own():
        return
    try:
        for generation in generations(folder):
            with suppress(HierMemError):
                remove_generation(folder, generation)
    finally:
        ownership.release()


def _in_use(database: Path) -> BackendUnavailableError:
    reason = f"{database} is in use; end the programs that have it open, and repeat it"
    return BackendUnavailableError("restoring", reason)


def _unreadable(database: Path, error: sqlite3.Error) -> BackendUnavailableError:
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    reason = f"{database} cannot be opened ({name}); check its permissions"
    return BackendUnavailableError("restoring", reason)


def _is_busy(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
