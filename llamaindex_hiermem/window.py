"""The window rule of `ChatMemoryBuffer`, without reading the whole thread. Pure.

Candidates are the whole thread, each shorter rest that begins with neither an assistant nor a tool
message, and the last message alone. The longest whose joined text fits is the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hiermem_core import Turn

Count = Callable[[str], int]

_MERGES = 8
"""Tokens that joining may save beyond one a joint, before a longer rest is ruled out unread."""


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


def choose_window(newest_first: Iterable[Turn], limit: int, count: Count) -> BufferWindow:
    """Return the longest candidate of at most `limit` tokens, else the newest message.

    Reads no more turns than are needed to rule out the next longer candidate. A newest tool
    result never comes alone, since providers refuse that: its whole exchange does, from the user
    turn on. This is the one departure from `ChatMemoryBuffer`.
    """
    unread = iter(newest_first)
    turns, is_whole = _gather(unread, limit, count)
    if not turns:
        return BufferWindow((), 0)
    for start in _candidates(turns, limit, count, is_whole=is_whole):
        tokens = count(joined(turns[start:]))
        if tokens <= limit:
            return BufferWindow(tuple(turns[start:]), tokens)
    rest = turns[-1:]
    if source_role(turns[-1]) == "tool":
        rest = _exchange_of_newest(chain(reversed(turns), unread))
    tokens = count(joined(rest))
    return BufferWindow(tuple(rest), tokens, over_budget=tokens > limit)


def joined(turns: Sequence[Turn]) -> str:
    """Return what is counted: the text of every message, `None` where it has none."""
    return " ".join(str(turn.content) for turn in turns)


def _gather(unread: Iterable[Turn], limit: int, count: Count) -> tuple[list[Turn], bool]:
    gathered: list[Turn] = []
    total = 0
    for turn in unread:
        gathered.append(turn)
        total += count(str(turn.content))
        if _is_ruled_out(total, len(gathered), limit):
            return gathered[::-1], False
    return gathered[::-1], True


def _candidates(turns: Sequence[Turn], limit: int, count: Count, *, is_whole: bool) -> list[int]:
    sums = list(accumulate(count(str(turn.content)) for turn in reversed(turns)))[::-1]
    return [
        start
        for start, turn in enumerate(turns)
        if ((is_whole and start == 0) or source_role(turn) not in {"assistant", "tool"})
        and not _is_ruled_out(sums[start], len(turns) - start, limit)
    ]


def _is_ruled_out(total: int, turns: int, limit: int) -> bool:
    return total - turns - _MERGES > limit


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
