"""Shortening the current exchange when nothing else is left to trim. Pure.

Text is cut at a grapheme boundary and its head is kept, with a visible marker. Tool results go
first, longest first, then assistant texts, then the user turn; last, whole answer steps, oldest
first. A call and its results stay together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hiermem_core.models.turns import view_of
from hiermem_core.threads.counting import tokens_of, turn_tokens
from hiermem_core.tokens.cutting import longest_head, marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core.models.turns import Part, Turn
    from hiermem_core.protocols import TokenCounter


@dataclass(frozen=True, slots=True)
class Shortened:
    """An exchange made to fit.

    Attributes:
        turns: What is left, in order; cut turns are views without the framework's dump.
        cut: The turns that were cut, as they were.
        dropped: The turns of whole steps that went.
    """

    turns: tuple[Turn, ...]
    cut: tuple[Turn, ...]
    dropped: tuple[Turn, ...]

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing had to go."""
        return not self.cut and not self.dropped


def shorten_exchange(
    turns: Sequence[Turn], allowed: int, counter: TokenCounter
) -> Shortened | None:
    """Return the turns cut to at most `allowed` tokens, or `None` where that cannot be done."""
    views = list(turns)
    for index in _order_of_cuts(turns, counter):
        excess = tokens_of(views, counter) - allowed
        if excess > 0:
            views[index] = shorten_turn(views[index], excess, counter)
    kept = _without_oldest_steps(views, allowed, counter)
    if tokens_of(kept, counter) > allowed:
        return None
    seqs = {turn.seq for turn in kept}
    cut = [old for old, new in zip(turns, views, strict=True) if old is not new]
    return Shortened(
        tuple(kept),
        tuple(turn for turn in cut if turn.seq in seqs),
        tuple(turn for turn in turns if turn.seq not in seqs),
    )


def shorten_turn(turn: Turn, excess: int, counter: TokenCounter) -> Turn:
    """Return the turn at least `excess` tokens smaller, or as small as a marker makes it.

    Media and other parts stay while the text alone can give enough. A turn that a marker would
    not make smaller stays as it is.
    """
    target = turn_tokens(turn, counter) - excess
    with_parts = _cut_text(turn, target, counter, keep_parts=True)
    if turn_tokens(with_parts, counter) <= target or not turn.parts:
        return _smaller(turn, with_parts, counter)
    return _smaller(turn, _cut_text(turn, target, counter, keep_parts=False), counter)


def _cut_text(turn: Turn, target: int, counter: TokenCounter, *, keep_parts: bool) -> Turn:
    text = turn.content or ""

    def view(head: str) -> Turn:
        return _with_text(turn, head + marker(len(text) - len(head)), keep_parts=keep_parts)

    head = longest_head(text, lambda head: counter.count_turn(view(head)) <= target)
    return view(head)


def _with_text(turn: Turn, text: str, *, keep_parts: bool) -> Turn:
    others = [part for part in turn.parts if part["type"] != "text"] if keep_parts else []
    parts: list[Part] = [{"type": "text", "text": text}, *others] if others else []
    return view_of(turn, content=text, parts=tuple(parts))


def _smaller(turn: Turn, view: Turn, counter: TokenCounter) -> Turn:
    tokens = counter.count_turn(view)
    smaller = tokens < turn_tokens(turn, counter)
    return replace(view, token_counts={counter.id: tokens}) if smaller else turn


def _order_of_cuts(turns: Sequence[Turn], counter: TokenCounter) -> list[int]:
    stages = {"tool": 0, "assistant": 1, "user": 2}
    users = [index for index, turn in enumerate(turns) if turn.role == "user"]
    current = users[-1] if users else -1

    def key(index: int) -> tuple[bool, int, int]:
        turn = turns[index]
        return index == current, stages.get(turn.role, 1), -turn_tokens(turn, counter)

    return sorted(range(len(turns)), key=key)


def _without_oldest_steps(turns: Sequence[Turn], allowed: int, counter: TokenCounter) -> list[Turn]:
    kept = list(turns)
    for step in _steps(turns):
        if tokens_of(kept, counter) <= allowed:
            break
        kept = [turn for turn in kept if turn.seq not in step]
    return kept


def _steps(turns: Sequence[Turn]) -> Iterator[set[int]]:
    """Yield the seqs of each answer step, oldest first; a step with a pending call is none."""
    for turn in turns:
        results = [t for t in turns if t.role == "tool" and t.call_seq == turn.seq]
        answered = {result.tool_call_id for result in results}
        pending = any(call.id not in answered for call in turn.tool_calls)
        if turn.role == "assistant" and not pending:
            yield {turn.seq, *(result.seq for result in results)}
