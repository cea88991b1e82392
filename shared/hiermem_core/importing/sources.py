"""Sources: which file, folder or database is meant, and whether it can be one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError

if TYPE_CHECKING:
    import os

    from hiermem_core.importing.servers import ServerAddress

MAGIC = b"SQLite format 3\x00"
"""How an SQLite database begins."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 8192
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def find_any_source(source: str | os.PathLike[str]) -> Path | ServerAddress:
    """Return the path of a source, or where it is on a server. Never changes it.

    Raises:
        InvalidInputError: There is no such file or folder, or it cannot be a source.
    """
    if not is_url(source):
        return find_source(source)
    from hiermem_core.importing.servers import address_of  # noqa: PLC0415 - not for files

    found = address_of(str(source))
    return find_source(found) if isinstance(found, Path) else found


def is_url(source: str | os.PathLike[str]) -> bool:
    """Tell whether a source is named by a URL."""
    return isinstance(source, str) and _URL.match(source) is not None


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
