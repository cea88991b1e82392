"""Text for people: nothing in it steers a terminal, and columns stand in line. Pure."""

from __future__ import annotations

import re
import sys
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, and those that change the direction of text around them."""

_GAP = 2


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Return text that cannot steer a terminal: control characters as escapes. Pure."""
    return _STEERING.sub(
        lambda match: match[0] if match[0] in keep else _escaped(match[0]),
        text.replace("\r\n", "\n"),
    )


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
