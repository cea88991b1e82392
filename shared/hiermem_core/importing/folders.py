"""The stores of a folder: only paths that a system is known to write are read, in this order."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hiermem_core.importing.claude_flow import (
    advanced,
    mcp_json,
    memory_manager,
    sparc,
    swarm_state,
)
from hiermem_core.importing.claude_flow.memory_markdown import read_renderings
from hiermem_core.importing.databases import BusyError, DamagedError, copied, is_database
from hiermem_core.importing.files import HEAD, document_store, known_file_stores, load_document
from hiermem_core.importing.records import BACKUP, RecordError
from hiermem_core.importing.stores import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hiermem_core.importing.reading import Reading

INDEX = "memory/index.json"
STATE = "swarm-memory/state.json"
STATE_BACKUPS = "swarm-memory/backups/backup_*.json"
DATA = "memory/data/entries.json"
ARCHIVES = "memory/archive/archive-*.json"
DATA_BACKUPS = "memory/backups/backup-*.json"
MOVED = ".claude-flow/memory/store.json"
SWARM = ".swarm/memory.db"
COPY = ".claude/memory.db"

PATHS = (
    "memory/memory-store.json",
    MOVED,
    "claude-flow.db",
    INDEX,
    "swarm-memory/entries.json",
    "swarm-memory/knowledge-bases.json",
    STATE,
    DATA,
    SWARM,
    ".hive-mind/memory.db",
    ".swarm/swarm-memory.db",
    "data/hive-mind.db",
    ".hive-mind/hive.db",
    ".claude-flow/memory/unified-memory.db",
    f"memory/{sparc.INDEX_NAME}",
    sparc.INDEX_NAME,
    "memory.json",
    "data/memory.json",
    ".ruv-swarm/swarm.db",
    "chroma.sqlite3",
)
"""What is looked for in a folder."""

PROJECT_FOLDERS = frozenset(
    {".swarm", ".hive-mind", ".claude-flow", "swarm-memory", "memory", "data"}
)
"""Folders of a project that may be named themselves."""


class Folder:
    """A folder, or one of those that a project has."""

    def __init__(self, root: Path, reading: Reading, wanted: str | None) -> None:
        self._root = root
        self._reading = reading
        self._wanted = wanted
        own = root.resolve().name
        self._own = f"{own}/" if own in PROJECT_FOLDERS else None

    def stores(self) -> Iterator[Store]:
        """Yield the stores, in the order of `PATHS`."""
        special: dict[str, Callable[[], Iterator[Store]]] = {
            INDEX: self._tree,
            MOVED: self._unless_moved,
            STATE: self._states,
            DATA: self._data,
            SWARM: self._swarm,
            sparc.INDEX_NAME: lambda: self._sparc(sparc.INDEX_NAME),
            f"memory/{sparc.INDEX_NAME}": lambda: self._sparc(f"memory/{sparc.INDEX_NAME}"),
        }
        for name in PATHS:
            read = special.get(name)
            yield from read() if read else self._plain(name)

    def _plain(self, name: str) -> Iterator[Store]:
        path = self._find(name)
        if path is not None:
            yield from known_file_stores(
                path, self._shown(path), self._reading, wanted=self._wanted
            )

    def _swarm(self) -> Iterator[Store]:
        yield from self._plain(SWARM if self._find(SWARM) is not None else COPY)

    def _unless_moved(self) -> Iterator[Store]:
        path = self._find(MOVED)
        if path is None:
            return
        database = self._find(SWARM)
        if path.with_name(mcp_json.MOVED_MARK).exists() and database and _has_rows(database):
            detail = f"its entries are in {SWARM}"
            name = mcp_json.FORMAT
            yield Store(self._shown(path), name, status="already_moved", detail=detail)
        else:
            yield from self._plain(MOVED)

    def _tree(self) -> Iterator[Store]:
        """Yield the store of the Markdown tree: its index, and what only its files hold."""
        index = self._find(INDEX)
        folder = index.parent if index is not None else self._folder("memory")
        if folder is None or self._wanted not in (None, memory_manager.FORMAT):
            return
        store = Store(self._shown(folder), memory_manager.FORMAT)
        value: Any = {}
        if index is not None:
            store.size = index.stat().st_size
            try:
                value = load_document(index, self._reading)
            except RecordError as error:
                store.status, store.detail = "damaged", f"its index {error.detail}"
        files = _files_below(folder / "agents", ".md")
        if not memory_manager.fits(value):
            value = {}
        if value or files or store.status == "damaged":
            store.records = self._tree_records(value, files)
            yield store

    def _tree_records(self, value: Any, files: list[Path]) -> Iterator[Any]:
        yield from memory_manager.read(value, self._reading)
        known = {one.get("id", name) for name, one in value.items() if isinstance(one, dict)}
        texts = ((self._shown(path), self._text(path)) for path in files)
        yield from read_renderings(texts, {*known, *value}, self._reading)

    def _sparc(self, name: str) -> Iterator[Store]:
        index = self._find(name)
        if index is None or self._wanted not in (None, sparc.FORMAT):
            return
        files = _files_below(index.parent, ".md")
        texts = ((self._shown(path), self._text(path)) for path in files)
        records = sparc.read_markdown(texts, self._reading)
        yield Store(self._shown(index.parent), sparc.FORMAT, records)

    def _states(self) -> Iterator[Store]:
        yield from self._with_backups(
            STATE, STATE_BACKUPS, swarm_state.fits, swarm_state.read, _is_sound_state
        )

    def _data(self) -> Iterator[Store]:
        archives = [
            document_store(path, self._shown(path), self._reading, wanted=advanced.FORMAT)
            for path in self._files(ARCHIVES)
        ]
        yield from self._with_backups(
            DATA, DATA_BACKUPS, advanced.fits, advanced.read, advanced.fits, archives
        )

    def _with_backups(  # noqa: PLR0917 - what one format is
        self,
        name: str,
        pattern: str,
        fits: Callable[[Any], bool],
        read: Callable[..., Iterator[Any]],
        is_sound: Callable[[Any], bool],
        between: list[Store] | None = None,
    ) -> Iterator[Store]:
        """Yield a store with its backups: read where it cannot be, or where they are wanted."""
        primary, backups = self._find(name), self._files(pattern)
        stores = list(self._plain(name)) if primary is not None else []
        yield from (store for store in stores if self._is_wanted(store))
        yield from (store for store in between or () if self._is_wanted(store))
        is_readable = any(store.status != "damaged" for store in stores)
        newest = None if is_readable else self._newest(backups, is_sound)
        if newest is not None:
            self._reading.warn("read_from_backup")
        wanted = backups if self._reading.include_backups else []
        for path in [newest] if newest and not wanted else wanted:
            yield from self._backup(path, fits, read, is_sound)

    def _backup(
        self,
        path: Path,
        fits: Callable[[Any], bool],
        read: Callable[..., Iterator[Any]],
        is_sound: Callable[[Any], bool],
    ) -> Iterator[Store]:
        store = document_store(path, self._shown(path), self._reading, wanted=self._wanted)
        if store.status == "read":
            value = load_document(path, replace(self._reading, warn=lambda _: None))
            if not fits(value) or not is_sound(value):
                detail = "it does not have the checksum it says"
                store = Store(store.path, store.format, status="damaged", detail=detail)
            else:
                store.records = read(value, self._reading, precedence=BACKUP)
        yield store

    def _newest(self, paths: list[Path], is_sound: Callable[[Any], bool]) -> Path | None:
        """Return the newest backup that is sound, by the time it says."""
        found: list[tuple[str, str, Path]] = []
        for path in paths:
            try:
                value = load_document(path, self._reading)
            except RecordError:
                continue
            if is_sound(value):
                moment = value.get("timestamp") if isinstance(value, dict) else None
                found.append((str(moment or ""), path.name, path))
        return max(found)[2] if found else None

    def _is_wanted(self, store: Store) -> bool:
        return self._wanted is None or store.format in (None, self._wanted)

    def _find(self, name: str) -> Path | None:
        return next((path for path in self._places(name) if path.is_file()), None)

    def _folder(self, name: str) -> Path | None:
        inside = self._root / name
        if inside.is_dir():
            return inside
        return self._root if self._own == f"{name}/" else None

    def _files(self, pattern: str) -> list[Path]:
        places = self._places(pattern)
        found = (sorted(path.parent.glob(path.name)) for path in places if path.parent.is_dir())
        return next((files for files in found if files), [])

    def _places(self, name: str) -> list[Path]:
        inside = [self._root / name]
        if self._own and name.startswith(self._own):
            inside.append(self._root / name.removeprefix(self._own))
        return inside

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _text(self, path: Path) -> str:
        data = path.read_bytes()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            self._reading.warn("undecodable_bytes")
            return data.decode("utf-8-sig", "replace")


def _is_sound_state(value: Any) -> bool:
    return swarm_state.fits(value) and swarm_state.is_intact(value)


def _files_below(folder: Path, ending: str) -> list[Path]:
    return sorted(
        Path(at) / name
        for at, _, names in os.walk(folder)
        for name in names
        if name.endswith(ending)
    )


def _has_rows(path: Path) -> bool:
    """Tell whether a database has a row."""
    with path.open("rb") as file:
        if not is_database(file.read(HEAD)):
            return False
    try:
        with copied(path) as copy:
            return any(copy.has_rows(name) for name in copy.tables())
    except (BusyError, DamagedError):
        return False
