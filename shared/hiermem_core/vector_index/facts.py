"""What is known of the vector index beside its vectors: facts in SQL, and a stamp in its folder."""

from __future__ import annotations

import re
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select

from hiermem_core.errors import IndexUnavailableError
from hiermem_core.storage.tables import metadata
from hiermem_core.vector_index.files import Files

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

_PREFIX = "index_"
_STAMP_NAME = "stamp"
_GENERATION = re.compile(r"gen-(\d+)")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the database knows of the vector index.

    Attributes:
        generation: Of the folder in use; 0: none yet.
        is_clean: It was closed in order, and not opened since.
        embedder: Whose vectors it holds.
        added: Vectors added to this generation, those removed since among them.
        stamp: What its folder bears, so that a folder and a database of different times, one of
            them brought back from a copy, are not taken for one another.
        files: What its files were like when Chroma had last done something.
        leftovers: On a server, the stamps of other generations that may still have collections.
    """

    generation: int = 0
    is_clean: bool = True
    embedder: str = ""
    added: int = 0
    stamp: str = ""
    files: Files = field(default_factory=Files)
    leftovers: tuple[str, ...] = ()


def read_facts(connection: Connection) -> Facts:
    """Return the facts."""
    query = select(metadata.c.key, metadata.c.value).where(metadata.c.key.startswith(_PREFIX))
    found = {key.removeprefix(_PREFIX): value for key, value in connection.execute(query)}
    return Facts(
        generation=int(found.get("generation", 0)),
        is_clean=found.get("clean", "1") == "1",
        embedder=found.get("embedder", ""),
        added=int(found.get("added", 0)),
        stamp=found.get("stamp", ""),
        files=Files(found.get("sizes", ""), found.get("times", "")),
        leftovers=tuple(found.get("leftovers", "").split()),
    )


def generation_of(connection: Connection) -> int:
    """Return the generation in use, as of a snapshot."""
    query = select(metadata.c.value).where(metadata.c.key == _PREFIX + "generation")
    return int(connection.execute(query).scalar() or 0)


def write_facts(connection: Connection, facts: Facts, *, now_ms: int) -> None:
    """Replace the facts."""
    values = {
        "generation": str(facts.generation),
        "clean": str(int(facts.is_clean)),
        "embedder": facts.embedder,
        "added": str(facts.added),
        "stamp": facts.stamp,
        "leftovers": " ".join(facts.leftovers),
    }
    _write(connection, values | _of(facts.files), now_ms)


def write_progress(connection: Connection, added: int, files: Files, *, now_ms: int) -> None:
    """Replace the facts that change with every batch."""
    _write(connection, {"added": str(added)} | _of(files), now_ms)


def _of(files: Files) -> dict[str, str]:
    return {"sizes": files.sizes, "times": files.times}


def _write(connection: Connection, values: dict[str, str], now_ms: int) -> None:
    rows = [{"key": _PREFIX + k, "value": v, "updated_at": now_ms} for k, v in values.items()]
    keys = [row["key"] for row in rows]
    connection.execute(delete(metadata).where(metadata.c.key.in_(keys)))
    connection.execute(insert(metadata), rows)


def new_stamp() -> str:
    """Return a stamp that no other opening has."""
    return secrets.token_hex(8)


def bears_stamp(folder: Path, stamp: str) -> bool:
    """Tell whether a generation's folder goes with the database that knows this stamp."""
    try:
        return stamp in (folder / _STAMP_NAME).read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return False


def write_stamps(folder: Path, *stamps: str) -> None:
    """Have a folder bear these stamps: both while the database goes from one to the other."""
    (folder / _STAMP_NAME).write_text("\n".join(stamps), encoding="ascii")


def folder_of(folder: Path, generation: int) -> Path:
    """Return the folder of a generation."""
    return folder / f"gen-{generation}"


def generations(folder: Path) -> list[int]:
    """Return the generations whose folders are there."""
    found: list[int] = []
    with suppress(OSError):
        names = (_GENERATION.fullmatch(path.name) for path in folder.iterdir())
        found = [int(name[1]) for name in names if name]
    return sorted(found)


def remove_generation(folder: Path, generation: int) -> None:
    """Remove a generation's folder, if it is there.

    Raises:
        IndexUnavailableError: Something of it stays.
    """
    path = folder_of(folder, generation)
    if not path.exists():
        return
    try:
        shutil.rmtree(path)
    except OSError as error:
        reason = f"{path.name} cannot be removed ({error.strerror}); check its permissions"
        raise IndexUnavailableError("removing", reason) from error
