"""Telling whether Chroma's index files are as they were left.

Chroma rewrites them in place, within a call that adds or removes. A process killed in the middle
leaves files that may answer a few questions well and crash whoever asks another. So their times are
noted after each call: files that were touched since are not trusted.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Files:
    """The index files of a generation, in two digests.

    Attributes:
        sizes: Of their names and sizes, which a copy keeps.
        times: Of when they were written, too, and of the running system, since a power cut can
            lose what was written before it.
    """

    sizes: str = ""
    times: str = ""


def look_at_files(folder: Path) -> Files:
    """Return what the files of a generation are like; reads none of them."""
    sizes, times = hashlib.sha256(), hashlib.sha256(_boot())
    for name, stat in sorted(_files(folder)):
        sizes.update(f"{name} {stat[0]}\n".encode())
        times.update(f"{name} {stat[0]} {stat[1]}\n".encode())
    return Files(sizes.hexdigest(), times.hexdigest())


def _files(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield name, size and time of every file below; SQLite looks after those at the top."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                continue
            with suppress(OSError), os.scandir(entry.path) as files:
                for file in files:
                    stat = file.stat()
                    yield f"{entry.name}/{file.name}", (stat.st_size, stat.st_mtime_ns)


def _boot() -> bytes:
    with suppress(OSError):
        return _BOOT.read_bytes()
    return b""
