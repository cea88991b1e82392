"""Files that come whole or not at all, and never in the place of another unasked."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO

from hiermem_core.errors import BackendError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PRIVATE = 0o600


@contextmanager
def new_file(target: Path, *, replace: bool) -> Iterator[tuple[BinaryIO, list[Path]]]:
    """Write a file beside its name; it bears the name when the block ends, else nothing is left.

    Gives the file, readable by its owner alone, and a list in which the path stands at the end
    under which what bore the name before is kept.

    Raises:
        ConfigurationError: Something bears the name, and `replace` is false.
        BackendError: It cannot be written.
    """
    check_free(target, replace=replace)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    kept: list[Path] = []
    try:
        with mapped(target):
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
            with os.fdopen(handle, "wb") as file:
                yield file, kept
                file.flush()
                os.fsync(file.fileno())
            kept += keep(target)
            draft.rename(target)
            sync_folder(target.parent)
    finally:
        with suppress(OSError):
            draft.unlink()


def check_free(target: Path, *, replace: bool) -> None:
    """Raise where a name is taken and what bears it is not to be replaced.

    Raises:
        ConfigurationError: It is taken, or its folder is not there.
    """
    if target.exists() and not replace:
        reason = f"{target} is there; add --force (replace=True) to keep it under another name"
        raise ConfigurationError("target", reason)
    if not target.parent.is_dir():
        raise ConfigurationError("target", f"{target.parent} is no folder; make it first")


def keep(path: Path) -> list[Path]:
    """Give what bears a name another one, that says when; return that, if there was something."""
    if not path.exists():
        return []
    other = kept_name(path, "before")
    path.rename(other)
    return [other]


def kept_name(path: Path, word: str) -> Path:
    """Return a free name beside a path that says since when it is kept."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    name = f"{path.name}.{word}-{moment}"
    taken = {other.name for other in path.parent.iterdir()}
    names = (name, *(f"{name}-{place}" for place in range(2, len(taken) + 3)))
    return path.with_name(next(one for one in names if one not in taken))


def sync_folder(folder: Path) -> None:
    """Have the names in a folder outlast a power cut, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def mapped(target: Path) -> Iterator[None]:
    """Say what the system says of a file in our words.

    Raises:
        BackendError: It cannot be written or read.
    """
    try:
        yield
    except OSError as error:
        reason = f"{target} ({error.strerror or type(error).__name__}); check place and permissions"
        raise BackendError("writing", reason) from error
