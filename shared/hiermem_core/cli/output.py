"""Output: results to stdout, notes to stderr, nothing that steers a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager, suppress
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, and those that change the direction of text around them."""

_GAP = 2


class OutputClosed(Exception):  # noqa: N818 - a reader that has had enough is no error
    """Whoever read the output has left."""


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Return text that cannot steer a terminal: control characters as escapes. Pure."""
    return _STEERING.sub(
        lambda match: match[0] if match[0] in keep else _escaped(match[0]),
        text.replace("\r\n", "\n"),
    )


def write(text: str) -> None:
    """Print text to stdout, whole, with control characters as escapes.

    Raises:
        OutputClosed: Whoever read it has left.
    """
    _print(printable(text))


def write_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object to stdout, in ASCII."""
    _print(json.dumps(value, indent=2))


def emit(value: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result: as one JSON object, or as lines for people."""
    if as_json:
        write_json(value)
        return
    for line in lines:
        write(line)


def note(text: str, *, quiet: bool = False) -> None:
    """Say something beside the result, on stderr; nothing depends on whether anyone reads it."""
    if quiet or sys.stderr is None:
        return
    with suppress(OSError):
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()


def flush() -> None:
    """Hand on what was printed.

    Raises:
        OutputClosed: Whoever read it has left.
        OSError: It cannot be written, such as on a full disk.
    """
    if sys.stdout is not None:
        with _checked_output():
            sys.stdout.flush()


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return aligned columns: within the width of a terminal, elsewhere as wide as they are."""
    from rich.console import Console  # noqa: PLC0415 - rich is not needed for --help
    from rich.table import Table  # noqa: PLC0415 - not for --help
    from rich.text import Text  # noqa: PLC0415 - not for --help

    lines = [tuple(head), *([printable(cell, keep="") for cell in row] for row in rows)]
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, _GAP, 0, 0))
    for cells in zip(*lines, strict=True):
        grid.add_column(justify="right" if _are_figures(cells[1:]) else "left")
    for line in lines:
        grid.add_row(*(Text(cell, overflow="fold") for cell in line))
    buffer = StringIO()
    Console(file=buffer, width=_width(lines), color_system=None).print(grid)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


@contextmanager
def _checked_output() -> Iterator[None]:
    """Write to stdout in a block; what it cannot take is dropped, so that it fails once."""
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise OutputClosed from None
        raise OSError(error.errno, error.strerror, "standard output") from error


def _width(lines: Iterable[Sequence[str]]) -> int | None:
    from rich.cells import cell_len  # noqa: PLC0415 - not for --help

    if sys.stdout is not None and sys.stdout.isatty():
        return None
    return sum(max(map(cell_len, cells)) + _GAP for cells in zip(*lines, strict=True))


def _are_figures(cells: Sequence[str]) -> bool:
    return all(cell.replace(",", "").isdigit() for cell in cells)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - one byte


def _print(text: str) -> None:
    if sys.stdout is None:
        return
    with _checked_output():
        sys.stdout.write(text + "\n")
