"""Sources: which file or folder is meant, and whether it can be one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError

if TYPE_CHECKING:
    import os

MAGIC = b"SQLite format 3\x00"
"""How an SQLite database begins."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 8192


def find_source(source: str | os.PathLike[str]) -> Path:
    """Return the path of a source that is a folder or a readable file. Never changes it.

    Raises:
        InvalidInputError: There is no such file or folder, or it cannot be a source.
    """
    path = Path(source)
    try:
        reason = _unfit(path)
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except ValueError:
        reason = "is no path"
    if reason:
        raise InvalidInputError("source", f"{path} {reason}")
    return path


def _unfit(path: Path) -> str:
    if not path.exists():
        return "does not exist; name a file or folder that does"
    if path.is_dir():
        return ""
    if not path.is_file():
        return "is no regular file; save its content to one first"
    with path.open("rb") as file:
        return _unreadable(file.read(_HEAD))


def _unreadable(head: bytes) -> str:
    if head.startswith(MAGIC):
        return ""
    if head.startswith(_UTF_16):
        return "is UTF-16; save it as UTF-8"
    if b"\x00" in head:
        return "is a binary file; import reads SQLite databases, JSON and JSONL"
    return ""
