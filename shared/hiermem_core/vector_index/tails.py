"""Wiping what Chroma writes of memory that it never used.

A new collection's files are as long as its first hundred vectors need, and hold whatever was in
that memory before: of an index that was closed, say, vectors that are forgotten since. Found with
1.5.9. The header tells how many vectors there are; nothing reads the bytes behind them.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hiermem_core.errors import IndexUnavailableError
from hiermem_core.vector_index.files import look_at_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core.vector_index.files import Files

_HEADER = struct.Struct("<iQQQQ")
"""Version, offset, room for vectors, vectors, bytes of a vector; then what is not read here."""

_VERSION = 1
_WITH_TAILS = {"data_level0.bin": None, "length.bin": 4}
"""Files by name, and the bytes of a vector in each; `None`: the header tells."""


class Tails:
    """Wipe the unused ends of index files, of each file once a size."""

    def __init__(self) -> None:
        self._wiped: set[tuple[str, int]] = set()

    def files_of(self, folder: Path) -> Files:
        """Return what the files of a generation are like once their unused ends are wiped.

        Call it while Chroma writes nothing.

        Raises:
            IndexUnavailableError: A file cannot be written.
        """
        try:
            for segment in _segments(folder):
                self._wipe(segment)
        except OSError as error:
            reason = f"the files cannot be written ({error.strerror}); check the disk"
            raise IndexUnavailableError("wiping", reason) from error
        return look_at_files(folder)

    def _wipe(self, segment: Path) -> None:
        fresh = [path for path in map(segment.joinpath, _WITH_TAILS) if not self._is_wiped(path)]
        known = _vectors_in(segment / "header.bin") if fresh else None
        if known is None:
            return
        vectors, size = known
        for path in fresh:
            _zero(path, vectors * (_WITH_TAILS[path.name] or size))
            self._wiped.add((str(path), path.stat().st_size))

    def _is_wiped(self, path: Path) -> bool:
        try:
            return (str(path), path.stat().st_size) in self._wiped
        except FileNotFoundError:
            return True


def _zero(path: Path, begin: int) -> None:
    """Overwrite a file from a place on with zeros."""
    with path.open("r+b") as file:
        file.seek(begin)
        tail = file.read()
        if tail.strip(b"\0"):
            file.seek(begin)
            file.write(bytes(len(tail)))


def _segments(folder: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if entry.is_dir())


def _vectors_in(header: Path) -> tuple[int, int] | None:
    """Return the vectors and the bytes of one; `None` where the header is of another kind."""
    with suppress(FileNotFoundError, struct.error):
        with header.open("rb") as file:
            version, _, room, vectors, size = _HEADER.unpack(file.read(_HEADER.size))
        if version == _VERSION and vectors <= room:
            return vectors, size
    return None
