"""The lines of an export in batches, each of which is stored at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hiermem_core.exporting.reader import Line

MOST_BYTES = 32 * 1024 * 1024
"""Bytes of lines after which a batch is full, however few its records."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of one kind that stand side by side.

    Attributes:
        is_last: What they belong to ends with them.
    """

    lines: Sequence[Line]
    is_last: bool


def batches_of(
    lines: Iterable[Line], *, size: int, most_bytes: int = MOST_BYTES
) -> Iterator[Batch]:
    """Yield the lines in batches of one kind, of at most `size`, cut short at `most_bytes`."""
    batch: list[Line] = []
    room = most_bytes
    for line, following in pairwise(chain(lines, (None,))):
        if line is None:
            return
        batch.append(line)
        room -= line.size
        is_other = following is None or following.kind != line.kind or line.kind == "thread"
        if is_other or len(batch) == size or room <= 0:
            yield Batch(batch, is_last=following is None or following.kind != "turn")
            batch, room = [], most_bytes
