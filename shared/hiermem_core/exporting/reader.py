"""Reading an export: its lines in order, each checked, and refused where one was changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hiermem_core.errors import InvalidInputError
from hiermem_core.exporting.sealing import FORMAT, VERSION, Seal
from hiermem_core.models.plain import load_json

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

_HEAD = 512
_MARK = f'"format":"{FORMAT}"'.encode()
_END = b'{"kind":"end",'
_NEXT = {
    "header": ("embedder", "entry", "thread", "session", "end"),
    "embedder": ("entry", "thread", "session", "end"),
    "entry": ("entry", "thread", "session", "end"),
    "thread": ("turn", "thread", "session", "end"),
    "turn": ("turn", "thread", "session", "end"),
    "session": ("step", "session", "end"),
    "step": ("step", "session", "end"),
    "end": (),
}
"""What may follow a line of each kind."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is as it was written.

    Attributes:
        number: From 1.
        size: Its bytes.
    """

    number: int
    form: dict[str, Any]
    size: int

    @property
    def kind(self) -> str:
        """What the line is."""
        return str(self.form.get("kind"))


def is_export(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file calls itself an export of HierMem."""
    try:
        with Path(path).open("rb") as file:
            return _MARK in file.readline(_HEAD)
    except OSError:
        return False


def check_export(
    file: BinaryIO, name: str, progress: Callable[[int], None] | None = None
) -> tuple[Line, Line]:
    """Read an export from its beginning to its end, and return its first line and its last.

    Keeps nothing and parses next to nothing, so it is as fast as the disk and SHA-256 are.

    Args:
        name: Of the file, for errors.
        progress: Told after each line how many bytes were read.

    Raises:
        InvalidInputError: A line was changed, is missing, or is none of an export; or the export
            is by a newer version.
    """
    last = b""
    for number, plain in _opened(file, name):
        last, count = plain, number
        if number == 1:
            header = _line(plain, 1, name)
            _check_header(header.form, name)
        if progress is not None:
            progress(file.tell())
    if not last:
        raise _refused(name, 1, "is missing; the file is empty")
    if not last.startswith(_END):
        raise _refused(name, count + 1, "is missing; the file was cut there")
    return header, _line(last, count, name)


def lines_of(file: BinaryIO, name: str) -> Iterator[Line]:
    """Yield the lines of an export.

    Raises:
        InvalidInputError: A line was changed, or is not where it may be.
    """
    may_follow: tuple[str, ...] = ("header",)
    for number, plain in _opened(file, name):
        line = _line(plain, number, name)
        if line.kind not in may_follow:
            raise _refused(name, number, "is of a kind that cannot stand there")
        may_follow = _NEXT[line.kind]
        yield line


def _opened(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    seal = Seal()
    for number, line in enumerate(file, 1):
        plain = seal.opened(line)
        if plain is None:
            raise _refused(name, number, "was changed or cut, or a line before it is missing")
        if number == 1:
            seal = Seal()
        yield number, plain


def _line(plain: bytes, number: int, name: str) -> Line:
    try:
        return Line(number, load_json(plain.decode()), len(plain))
    except ValueError as error:
        raise _refused(name, number, "is no JSON object") from error


def _check_header(form: dict[str, Any], name: str) -> None:
    if form.get("format") != FORMAT or not isinstance(form.get("tenant"), str):
        raise _refused(name, 1, "is no header of an export")
    if form.get("version") != VERSION:
        reason = f"{name} is of version {form.get('version')} of the format, known is {VERSION}"
        raise InvalidInputError("source", f"{reason}; upgrade hiermem-core")


def _refused(name: str, number: int, fault: str) -> InvalidInputError:
    reason = f"{name}: line {number} {fault}; nothing was imported, take an unchanged copy"
    return InvalidInputError("source", reason)
