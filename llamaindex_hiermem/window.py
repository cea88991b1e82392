"""The window rule of `ChatMemoryBuffer`, without reading the whole thread. Pure.

Candidates are the whole thread, each shorter rest that begins with neither an assistant nor a tool
message, and the last message alone. The longest whose joined text fits is the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hiermem_core import Turn
    from llamaindex_hiermem.counting import Counting

_SPARE = 1.05
"""How far past the limit turns are read by estimate before the cut is looked for."""


@dataclass(frozen=True, slots=True)
class BufferWindow:
    """The turns chosen.

    Attributes:
        tokens: Of their joined text.
        over_budget: They exceed the limit.
    """

    turns: tuple[Turn, ...]
    tokens: int
    over_budget: bool = False


def choose_window(newest_first: Iterable[Turn], limit: int, count: Counting) -> BufferWindow:
    """Return the longest candidate of at most `limit` tokens, else the newest message.

    Reads little more than the window. A newest tool result never comes alone, since providers
    refuse that: its whole exchange does, from the user turn on. This is the one departure from
    `ChatMemoryBuffer`. The more turns a text joins, the more tokens it must have.
    """
    unread = iter(newest_first)
    turns: list[Turn] = []
    sizes: list[int] = []
    while True:
        is_whole = _read_on(turns, sizes, unread, limit, count)
        if not turns:
            return BufferWindow((), 0)
        cut = _longest_fitting(turns, sizes, limit, count, is_whole=is_whole)
        is_longest = cut is not None and not cut.may_be_longer
        if is_whole or is_longest or count.joined(texts_of(turns)) > limit:
            break
    if cut is not None:
        return BufferWindow(tuple(turns[cut.start :]), cut.tokens)
    rest = turns[-1:]
    if source_role(turns[-1]) == "tool":
        rest = _exchange_of_newest(chain(reversed(turns), unread))
    tokens = count.joined(texts_of(rest))
    return BufferWindow(tuple(rest), tokens, over_budget=tokens > limit)


def texts_of(turns: Sequence[Turn]) -> list[str]:
    """Return what is counted: the text of every message, `None` where it has none."""
    return [str(turn.content) for turn in turns]


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a window begins.

    Attributes:
        may_be_longer: It is the longest candidate read so far.
    """

    start: int
    tokens: int
    may_be_longer: bool


def _read_on(
    turns: list[Turn], sizes: list[int], unread: Iterator[Turn], limit: int, count: Counting
) -> bool:
    """Read older turns in front of those read, about as many as fit; tell whether that is all.

    Their sizes, in tokens each takes of a joined text, are put in front of those known.
    """
    total = 0
    older, their_sizes = [], []
    for turn in unread:
        older.append(turn)
        their_sizes.append(count(f" {turn.content}"))
        total += max(1, their_sizes[-1])
        if total > limit * _SPARE:
            break
    turns[:0], sizes[:0] = reversed(older), reversed(their_sizes)
    return total <= limit * _SPARE


def _longest_fitting(
    turns: Sequence[Turn], sizes: Sequence[int], limit: int, count: Counting, *, is_whole: bool
) -> _Cut | None:
    """Return the cut of the longest candidate that fits, found from where estimates put it."""
    starts = [
        start for start, turn in enumerate(turns) if _may_open(turn) or (is_whole and start == 0)
    ]

    @cache
    def tokens_from(place: int) -> int:
        return count.joined(texts_of(turns[starts[place] :]))

    sums = list(accumulate(reversed(sizes)))[::-1]
    guess = next((at for at, start in enumerate(starts) if sums[start] <= limit), len(starts))
    place = first_fitting(len(starts), guess, lambda place: tokens_from(place) <= limit)
    if place == len(starts):
        return None
    return _Cut(starts[place], tokens_from(place), may_be_longer=place == 0)


def first_fitting(places: int, guess: int, fits: Callable[[int], bool]) -> int:
    """Return the first of `places` that fits, or `places`; asks two times where the guess is right.

    Every place after one that fits must fit too.
    """
    wrong, right = -1, places
    place, step = min(guess, places - 1), 1
    while right - wrong > 1:
        if fits(place):
            right, place = place, place - step
        else:
            wrong, place = place, place + step
        step *= 2
        if not wrong < place < right:
            place = (wrong + right) // 2
    return right


def _may_open(turn: Turn) -> bool:
    return source_role(turn) not in {"assistant", "tool"}


def source_role(turn: Turn) -> str:
    """Return the role in LlamaIndex's own words."""
    if turn.origin is None or turn.origin.framework != "llamaindex":
        return turn.role
    return turn.origin.role


def _exchange_of_newest(newest_first: Iterable[Turn]) -> list[Turn]:
    exchange: list[Turn] = []
    for turn in newest_first:
        exchange.insert(0, turn)
        if turn.role == "user":
            return exchange
    call_seq = exchange[-1].call_seq or exchange[-1].seq
    return [turn for turn in exchange if turn.seq >= call_seq]
