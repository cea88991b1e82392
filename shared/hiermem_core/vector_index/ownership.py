"""Who owns a folder: one process at a time, by a lock that ends with the process."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LOCK_NAME = "owner.lock"

_LOCKED_BYTE = 1 << 20
"""Far behind the text, since Windows keeps others from reading what is locked."""


class Ownership:
    """The exclusive ownership of a folder, held by an open, locked file.

    Attributes:
        is_foreign: Another owner kept this one from owning it, at the last try.

    A forked child never is the owner, and does not keep the lock alive for its parent. The file
    stays when the ownership ends; it holds the last owner's process id, for messages only.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None
        self._process = os.getpid()
        self._trouble = ""
        self.is_foreign = False

    @property
    def is_held(self) -> bool:
        """Tell whether this process owns the folder, and the lock file is still in it."""
        if self._file is None or self._process != os.getpid():
            return False
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except OSError:
            return False

    @property
    def owner(self) -> str | None:
        """Say who the owner is; `None`: nobody, as far as the lock file tells."""
        if self.is_held:
            return "this process"
        text = self._trouble or self._last_owner()
        if text == f"pid {os.getpid()}":
            return f"another HierMem in this process ({text})"
        return f"another process ({text})" if text.startswith("pid") else text or None

    @property
    def file(self) -> int | None:
        """The locked file's descriptor, for a child process that shares the ownership."""
        return self._file if self.is_held else None

    def try_own(self) -> bool:
        """Own the folder, unless another does. Makes it; never waits."""
        if self._process != os.getpid():
            return False
        if self.is_held:
            return True
        self.release()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            self.is_foreign = False
            self._trouble = f"nobody: the folder cannot be written ({error.strerror})"
            return False
        self._trouble, self.is_foreign = "", not _lock(file)
        if self.is_foreign:
            os.close(file)
            return False
        self._file = file
        if not self.is_held:  # the folder was removed in between
            self.release()
            return False
        self._sign(file)
        return True

    def release(self) -> None:
        """End the ownership. Idempotent."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                os.close(file)

    def _sign(self, file: int) -> None:
        with suppress(OSError):  # it is for messages only, and the disk may be full
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())

    def _last_owner(self) -> str:
        with suppress(OSError, ValueError):
            return f"pid {int(self._path.read_text(encoding='ascii'))}"
        return ""

    @property
    def _path(self) -> Path:
        return self._folder / LOCK_NAME


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> bool:
        try:
            os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            os.lseek(file, 0, os.SEEK_SET)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
