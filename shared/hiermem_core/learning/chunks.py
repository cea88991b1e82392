"""What is learned in one call: the oldest whole exchanges that a prompt has room for. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from hiermem_core.learning.transcript import line_of, records_of, shortened, thinned
from hiermem_core.threads.tally import opens_exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hiermem_core.models.turns import Turn
    from hiermem_core.protocols import TokenCounter

LEAST_CHARACTERS = 200
"""What is left of a text at least, before an exchange is parted."""

LEAST_ALONE = 20
"""What is left of a text at least in a turn that has no room by itself, and of calls and media."""

LEAST_LINE_TOKENS = 10
"""The line of a turn costs no less, so a room tells how many turns are worth reading."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Turns to be learned by one call.

    Attributes:
        seqs: Of the turns, ascending.
        lines: A record each.
    """

    seqs: tuple[int, ...]
    lines: tuple[str, ...]


def take_chunk(
    turns: Sequence[Turn], room: int, counter: TokenCounter, *, has_more: bool = False
) -> Chunk | None:
    """Return the oldest whole exchanges of at most `room` tokens.

    An exchange that has no room by itself is shortened, inside its tool results, then inside all
    its texts; and one with too many turns even for that is parted. A single turn that is still too
    long keeps less of its texts, and its first and last calls and media. No turn is ever skipped.

    Args:
        turns: In order; what is due.
        has_more: The last exchange goes on in turns that are not given.

    Returns:
        `None` where there is no room for a single turn.
    """
    exchanges = _exchanges(turns)
    whole = exchanges[:-1] if has_more and len(exchanges) > 1 else exchanges
    taken: list[list[str]] = []
    left = room
    for exchange in whole:
        added = [line_of(record) for record in records_of(exchange)]
        left -= lines_tokens(added, counter)
        if left < 0:
            break
        taken.append(added)
    while taken and lines_tokens([*chain(*taken)], counter) > room:
        taken.pop()
    if not taken:
        return _made_to_fit(whole[0], room, counter)
    return Chunk(tuple(turn.seq for turn in chain(*whole[: len(taken)])), tuple(chain(*taken)))


def lines_tokens(lines: Sequence[str], counter: TokenCounter) -> int:
    """Return the tokens of lines, their ends included."""
    return counter.count("".join(f"{line}\n" for line in lines))


def _exchanges(turns: Sequence[Turn]) -> list[list[Turn]]:
    exchanges: list[list[Turn]] = []
    for turn in turns:
        if opens_exchange(turn) or not exchanges:
            exchanges.append([])
        exchanges[-1].append(turn)
    return exchanges


def _made_to_fit(turns: Sequence[Turn], room: int, counter: TokenCounter) -> Chunk | None:
    records = records_of(turns)

    def cut(results: int, texts: int) -> list[str]:
        return [line_of(shortened(r, results if r["role"] == "tool" else texts)) for r in records]

    def fits(lines: Sequence[str]) -> bool:
        return lines_tokens(lines, counter) <= room

    def alone(limit: int) -> list[str]:
        return [line_of(shortened(thinned(records[0], limit), limit))]

    least = LEAST_CHARACTERS
    longest = max(len(line) for line in map(line_of, records))
    lines = (
        _longest(lambda limit: cut(limit, longest), fits, least, longest)
        or _longest(lambda limit: cut(min(limit, least), limit), fits, least, longest)
        or _leading(cut(least, least), fits)
        or _longest(alone, fits, LEAST_ALONE, longest)
    )
    seqs = tuple(turn.seq for turn in turns[: len(lines)])
    return Chunk(seqs, tuple(lines)) if lines else None


def _longest(
    cut: Callable[[int], list[str]],
    fits: Callable[[Sequence[str]], bool],
    least: int,
    longest: int,
) -> list[str]:
    """Return the lines cut at the largest limit that fits; none: not even the least does."""
    low, high = least, 2 * least
    if not fits(cut(low)):
        return []
    while high < longest and fits(cut(high)):
        low, high = high, 2 * high
    limits = range(low + 1, min(high, longest))
    return cut(low + bisect_left(limits, True, key=lambda limit: not fits(cut(limit))))  # noqa: FBT003 - what is looked for


def _leading(lines: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return as many of the first lines as fit."""
    counts = range(1, len(lines) + 1)
    return list(lines[: bisect_left(counts, True, key=lambda count: not fits(lines[:count]))])  # noqa: FBT003 - what is looked for
