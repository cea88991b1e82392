"""Backups: a folder with a database as it was at one moment, and what is known of it.

The copy is made by SQLite's online backup, in one step, while others read and write. The vector
index is not in it: it is derived, and is built anew from the rows, which hold the vectors. A backup
is a location that can be opened; but then it is not the backup any more.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import (
    BackendError,
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    MigrationError,
)
from hiermem_core.exporting.fields import moment_text
from hiermem_core.exporting.files import check_free, keep, mapped, sync_folder
from hiermem_core.exporting.report import told
from hiermem_core.models.displayed import Displayed
from hiermem_core.storage.location import DATABASE_NAME
from hiermem_core.storage.migrations import SCHEMA_VERSION
from hiermem_core.vector_index.ownership import LOCK_NAME, Ownership
from hiermem_core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hiermem_core.storage.database import Database

FORMAT = "hiermem/backup"
VERSION = 1
MANIFEST_NAME = "backup.json"

COUNTED = (
    *("memory_entries", "threads", "turns", "vectors"),
    *("patterns", "sessions", "trajectories"),
)
"""Tables whose rows are told."""

_NAMES = {"memory_entries": "entries", "trajectories": "steps"}
ON_A_SERVER = (
    "is on a server; back its database up by pg_dump and put it back by pg_restore, or a tenant by "
    "hiermem export and hiermem import"
)
"""Why a location that is no file has no backup and no restore of ours."""

_DISTRUST = "UPDATE metadata SET value = '' WHERE key = 'index_stamp'"


@dataclass(frozen=True, slots=True)
class BackupReport(Displayed):
    """A backup.

    Attributes:
        schema: The version of its tables.
        sha256: Of the database file.
        counts: Tenants, entries, threads, turns, vectors, patterns, sessions and steps in it.
        kept: Where what bore its name before is kept.
    """

    target: Path
    schema: int
    sha256: str
    bytes: int
    created_at: str
    counts: Mapping[str, int]
    kept: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        paths = {name: getattr(self, name) for name in ("target", "kept")}
        return asdict(self) | {k: None if v is None else str(v) for k, v in paths.items()}

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.target}: {told(self.counts)}; {self.bytes:,} bytes, sha256 {self.sha256}"


def back_up(database: Database, target: Path, *, replace: bool) -> BackupReport:
    """Write a backup of an open location; see `HierMem.backup`."""
    database.check_open()
    if database.location.server is not None:
        raise ConfigurationError("location", ON_A_SERVER)
    with database.read() as connection:
        raw: Any = connection.connection.driver_connection
        return back_up_connection(raw, target, replace=replace)


def back_up_connection(
    source: sqlite3.Connection, target: Path, *, replace: bool = False
) -> BackupReport:
    """Write a backup of what a connection reads; it comes whole or not at all.

    Raises:
        ConfigurationError: The target is there and is not to be replaced.
        ConflictError: Another backup to the same target runs.
        BackendError: It cannot be written, or the copy is not sound.
    """
    check_free(target, replace=replace)
    draft = target.with_name(f".{target.name}.partial")
    ownership = Ownership(draft)
    if not ownership.try_own():
        if not ownership.is_foreign:
            raise BackendError("backup", f"{draft} cannot be written; check its permissions")
        raise ConflictError(f"a backup to {target} is being written; wait for its end")
    try:
        with mapped(target):
            draft.chmod(0o700)
            _clear(draft)
            report = _written(source, draft, target)
            kept = keep(target)
            draft.rename(target)
            sync_folder(target.parent)
            (target / LOCK_NAME).unlink()
    except BaseException:  # no draft stays, whatever it is
        if ownership.is_held:
            with suppress(OSError):
                shutil.rmtree(draft)
        raise
    finally:
        ownership.release()
    facts = {name: getattr(report, name) for name in report.__dataclass_fields__}
    return BackupReport(**facts | {"kept": kept[0] if kept else None})


def check_backup(folder: Path) -> BackupReport:
    """Return what is known of a backup whose file is as it was written.

    Raises:
        InvalidInputError: It is none, or was changed or cut since.
        MigrationError: It was written by a newer version.
    """
    manifest = _read_manifest(folder)
    if manifest.schema > SCHEMA_VERSION:
        reason = "it was written by a newer version; upgrade hiermem-core"
        raise MigrationError(stored=manifest.schema, supported=SCHEMA_VERSION, reason=reason)
    file = folder / DATABASE_NAME
    try:
        size, digest = file.stat().st_size, sha256_of(file)
    except OSError as error:
        raise InvalidInputError("backup", f"{file} cannot be read ({error.strerror})") from error
    if (size, digest) != (manifest.bytes, manifest.sha256):
        fault = f"has {size:,} bytes of {manifest.bytes:,}" if size != manifest.bytes else "differs"
        raise InvalidInputError("backup", f"{file} {fault}; it was changed, take an unchanged copy")
    return manifest


def counts_of(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many tenants, entries, threads, turns and vectors a database holds."""
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    names = [name for name in COUNTED if name in there]
    counts = {name: _one(connection, f"SELECT count(*) FROM {name}") for name in names}  # noqa: S608 - constants
    owners = " UNION ".join(
        f"SELECT DISTINCT tenant FROM {name}"  # noqa: S608 - constants
        for name in ("memory_entries", "threads", "sessions")
        if name in there
    )
    tenants = _one(connection, f"SELECT count(*) FROM ({owners})") if owners else 0  # noqa: S608 - as above
    return {"tenants": tenants} | {_NAMES.get(name, name): n for name, n in counts.items()}


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_database(source: sqlite3.Connection, path: Path) -> None:
    """Copy what a connection reads into a new file, by SQLite's online backup.

    Raises:
        BackendError: It cannot be written.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as copy:
            copy.execute("PRAGMA journal_mode=OFF")
            copy.execute("PRAGMA synchronous=OFF")
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        raise BackendError("backup", f"{path.name}: {name}; check the disk") from error


def _written(source: sqlite3.Connection, draft: Path, target: Path) -> BackupReport:
    file = draft / DATABASE_NAME
    copy_database(source, file)
    counts, schema = _checked(file)
    with file.open("rb") as written:
        os.fsync(written.fileno())
    report = BackupReport(
        target=target,
        schema=schema,
        sha256=sha256_of(file),
        bytes=file.stat().st_size,
        created_at=moment_text(datetime.now(UTC)),
        counts=counts,
    )
    _write_manifest(draft, report)
    return report


def _checked(file: Path) -> tuple[dict[str, int], int]:
    """Return what a copy holds, once it is known to be sound and to trust no index of before.

    Raises:
        BackendError: It is not sound.
    """
    try:
        with closing(sqlite3.connect(file, isolation_level=None)) as copy:
            found = [row[0] for row in copy.execute("PRAGMA quick_check(1)")]
            if found != ["ok"]:
                raise BackendError("backup", "the database is damaged; run: hiermem doctor")
            copy.execute(_DISTRUST)
            version = "SELECT value FROM metadata WHERE key = 'schema_version'"
            return counts_of(copy), int(_one(copy, version))
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        raise BackendError("backup", f"the copy cannot be read ({name})") from error


def _write_manifest(folder: Path, report: BackupReport) -> None:
    value = {
        "format": FORMAT,
        "version": VERSION,
        "created_at": report.created_at,
        "written_by": f"hiermem-core {__version__}",
        "schema": report.schema,
        "file": DATABASE_NAME,
        "bytes": report.bytes,
        "sha256": report.sha256,
        "counts": report.counts,
    }
    with (folder / MANIFEST_NAME).open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def _read_manifest(folder: Path) -> BackupReport:
    path = folder / MANIFEST_NAME
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        _check_kind(value)
        return BackupReport(
            target=folder,
            schema=int(value["schema"]),
            sha256=str(value["sha256"]),
            bytes=int(value["bytes"]),
            created_at=str(value["created_at"]),
            counts={str(name): int(count) for name, count in value["counts"].items()},
        )
    except OSError as error:
        reason = f"{folder} is no backup; name the folder that hiermem backup has written"
        raise InvalidInputError("backup", reason) from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        reason = f"{path} cannot be understood; take an unchanged copy, or a newer hiermem-core"
        raise InvalidInputError("backup", reason) from error


def _check_kind(manifest: Mapping[str, Any]) -> None:
    if manifest["format"] != FORMAT or manifest["version"] != VERSION:
        raise ValueError("format")


def _clear(folder: Path) -> None:
    """Remove what a killed backup has left."""
    for path in folder.iterdir():
        if path.name != LOCK_NAME:
            path.unlink()


def _one(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]
