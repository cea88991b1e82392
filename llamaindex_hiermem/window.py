"""The window rule of `ChatMemoryBuffer`, without reading the whole thread. Pure.

Candidates are the whole thread, each shorter rest that begins with neither an assistant nor a tool
message, and the last message alone. The longest whose joined text fits is the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hiermem_core import Turn

Count = Callable[[str], int]

_MERGES = 8
"""Tokens that joining may save in all, before a longer rest is ruled out unread. Measured: 1."""


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
    turns, least, is_whole = _gather(unread, limit, count)
    if not turns:
        return BufferWindow((), 0)
    for start, turn in enumerate(turns):
        is_candidate = _may_open(turn) or (is_whole and start == 0)
        if not is_candidate or least[start] > limit:
            continue
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


def _gather(unread: Iterable[Turn], limit: int, count: Count) -> tuple[list[Turn], list[int], bool]:
    """Return the newest turns, the least tokens of each rest of them, and whether they are all."""
    turns: list[Turn] = []
    least: list[int] = []
    total = -_MERGES
    for turn in unread:
        total += _least_tokens(str(turn.content), count)
        turns.append(turn)
        least.append(total)
        if total > limit:
            return turns[::-1], least[::-1], False
    return turns[::-1], least[::-1], True


def _least_tokens(text: str, count: Count) -> int:
    """Return what a text adds at least to a joined one, whatever stands beside it.

    A space before a word often saves tokens, white space may vanish into its neighbours', and some
    tokenizers put tokens around every text.
    """
    text = text.strip()
    return max(0, count(f" {text}") - count("")) if text else 0


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
