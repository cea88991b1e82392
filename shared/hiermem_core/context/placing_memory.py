"""What is remembered takes its place in a context, within its share of the budget. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hiermem_core.context.memory_block import header_of, line_of, memory_block, part_of
from hiermem_core.models.queries import TurnHit
from hiermem_core.models.text import folded
from hiermem_core.models.turns import Turn, view_of
from hiermem_core.models.warnings import ContextWarning
from hiermem_core.threads.counting import tokens_of
from hiermem_core.threads.notes_text import shortened_notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.models.queries import Hit
    from hiermem_core.protocols import TokenCounter

SLOT = "{memory}"
"""Where a system prompt asks for the block."""

REPORTED = 10
"""Hits that are missed where they do not fit: as many as a recall returns by default."""


_NOTE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")  # noqa: RUF001 - ends of sentences


@dataclass(frozen=True, slots=True)
class Remembered:
    """What there is to remember.

    Attributes:
        hits: Recalled, best first.
        share: Tokens recalled hits may take at most.
    """

    notes: str = ""
    hits: tuple[Hit | TurnHit, ...] = ()
    share: int = 0


@dataclass(frozen=True, slots=True)
class PlacedMemory:
    """The turns with the block in them, what is in it, and what that costs."""

    system: tuple[Turn, ...]
    current: tuple[Turn, ...]
    notes: str = ""
    hits: tuple[Hit | TurnHit, ...] = ()
    notes_tokens: int = 0
    recall_tokens: int = 0
    warnings: tuple[ContextWarning, ...] = ()

    @property
    def tokens(self) -> int:
        """What the block adds to the turns."""
        return self.notes_tokens + self.recall_tokens


def place_memory(remembered: Remembered, room: int, frame: Frame) -> PlacedMemory:
    """Put what is remembered into the system prompt's slot, else in front of the question.

    Recalled hits come first, within their share: whole, best first, those that do not fit skipped.
    Then the notes, shortened to the rest of `room`. What is left out is warned of.
    """
    picked = picked_within(remembered.hits, min(room, remembered.share), frame)
    recall_tokens = frame.cost("", picked)
    notes, cut = shortened_notes(
        remembered.notes if frame.has_place else "",
        lambda notes: frame.cost(notes, picked) - room,
        frame.counter,
    )
    kept = {hit_key(hit) for hit in picked}
    wanted = remembered.hits[:REPORTED] if frame.has_place else ()
    missed = [hit for hit in wanted if hit_key(hit) not in kept]
    warnings = [*cut, *([_recall_trimmed(missed, frame)] if missed else [])]
    return replace(
        frame.placed(memory_block(notes, picked)),
        notes=notes,
        hits=tuple(picked),
        recall_tokens=recall_tokens,
        notes_tokens=frame.cost(notes, picked) - recall_tokens if notes else 0,
        warnings=tuple(warnings),
    )


def picked_within(hits: Sequence[Hit | TurnHit], share: int, frame: Frame) -> list[Hit | TurnHit]:
    """Return the hits that fit, best first: by the counts of their lines, then of the block."""
    if not frame.has_place:
        return []
    picked: list[Hit | TurnHit] = []
    headed: set[tuple[str, int]] = set()
    left = share - frame.overhead(hits[0]) if hits else 0
    for hit in hits:
        cost = frame.count(line_of(hit))
        if part_of(hit) not in headed:
            cost += frame.count(header_of(hit))
        if cost <= left:
            picked.append(hit)
            headed.add(part_of(hit))
            left -= cost
    while picked and frame.cost("", picked) > share:
        picked.pop()
    return picked


def without_repeated(
    hits: Sequence[Hit | TurnHit], notes: str, window: Sequence[Turn]
) -> tuple[Hit | TurnHit, ...]:
    """Return the hits that say what neither the notes, nor the window, nor a better hit says."""
    if not hits:
        return ()
    seen = {bare(turn.content or "") for turn in window}
    ids = {turn.id for turn in window}
    seen |= {bare(line) for line in _NOTE_END.split(notes)}
    kept = []
    for hit in hits:
        text = bare(hit.content)
        is_there = isinstance(hit, TurnHit) and hit.id in ids
        if text and not is_there and text not in seen:
            kept.append(hit)
            seen.add(text)
    return tuple(kept)


def bare(text: str) -> str:
    """Return a text to compare it by: folded, without a list mark and the sign of its end."""
    return folded(text).lstrip("-*• ").rstrip(" .!?。！？")  # noqa: RUF001 - their ends


def filled(system: Sequence[Turn], block: str) -> tuple[Turn, ...]:
    """Return the system prompt with its first slot replaced, once, by plain replacement."""
    return tuple(_filled(turn, block) if has_slot(turn) else turn for turn in system)


def has_slot(turn: Turn) -> bool:
    """Tell whether a turn asks for the block."""
    return turn.content is not None and SLOT in turn.content


def before_question(turns: Sequence[Turn], block: str) -> tuple[Turn, ...]:
    """Return the turns with the block in front of the newest user turn, in the same message."""
    place = max((i for i, turn in enumerate(turns) if turn.role == "user"), default=None)
    if place is None:
        return tuple(turns)
    turn = turns[place]
    text = f"{block}\n\n{turn.content}" if turn.content else block
    parts = ({"type": "text", "text": block}, *turn.parts) if turn.parts else ()
    view = view_of(turn, content=text, parts=parts)
    return (*turns[:place], view, *turns[place + 1 :])


def after_prompt(system: Sequence[Turn], block: str) -> tuple[Turn, ...]:
    """Return the system prompt with the block at the end of its first turn, or the block alone."""
    if not system:
        return (Turn(role="system", content=block),)
    turn = system[0]
    text = f"{turn.content}\n\n{block}" if turn.content else block
    parts = (*turn.parts, {"type": "text", "text": block}) if turn.parts else ()
    return (view_of(turn, content=text, parts=parts), *system[1:])


def _filled(turn: Turn, block: str) -> Turn:
    content = (turn.content or "").replace(SLOT, block, 1)
    parts, is_filled = [], False
    for part in turn.parts:
        takes_it = not is_filled and SLOT in part.get("text", "")
        is_filled = is_filled or takes_it
        parts.append({**part, "text": part["text"].replace(SLOT, block, 1)} if takes_it else part)
    return view_of(turn, content=content, parts=tuple(parts))


class Frame:
    """The turns a block is put into, and what the block costs there.

    Args:
        is_ahead: The question is not among the turns; without a slot, the block goes to the end of
            the system prompt.

    Attributes:
        counter: Counts the turns, and what the block adds.
        has_place: There is a slot, or a question, that the block can go to.
    """

    def __init__(
        self,
        system: Sequence[Turn],
        current: Sequence[Turn],
        counter: TokenCounter,
        *,
        is_ahead: bool = False,
    ) -> None:
        self._system = tuple(system)
        self.counter = counter
        self._is_ahead = is_ahead
        self._bare = PlacedMemory(filled(system, ""), tuple(current))
        self._has_slot = any(map(has_slot, self._system))
        is_asked = any(turn.role == "user" for turn in current)
        self.has_place = self._has_slot or is_ahead or is_asked
        self._tokens = tokens_of((*self._bare.system, *current), counter)
        self._lines: dict[str, int] = {}
        self._blocks: dict[str, int] = {"": 0}

    def placed(self, block: str) -> PlacedMemory:
        """Return the turns with a block in them."""
        if not block:
            return self._bare
        if self._has_slot:
            return PlacedMemory(filled(self._system, block), self._bare.current)
        if self._is_ahead:
            return PlacedMemory(after_prompt(self._bare.system, block), self._bare.current)
        return PlacedMemory(self._bare.system, before_question(self._bare.current, block))

    def cost(self, notes: str, hits: Sequence[Hit | TurnHit]) -> int:
        """Return what a block adds."""
        block = memory_block(notes, hits)
        if block not in self._blocks:
            placed = self.placed(block)
            tokens = tokens_of((*placed.system, *placed.current), self.counter)
            self._blocks[block] = tokens - self._tokens
        return self._blocks[block]

    def overhead(self, hit: Hit | TurnHit) -> int:
        """Return what a block adds beside the lines of its hits."""
        return self.cost("", [hit]) - self.count(line_of(hit)) - self.count(header_of(hit))

    def count(self, line: str) -> int:
        """Return the tokens of a line, its end included."""
        if line not in self._lines:
            self._lines[line] = self.counter.count(line + "\n")
        return self._lines[line]


def hit_key(hit: Hit | TurnHit) -> tuple[str, str]:
    """Return what tells a hit from others."""
    return (hit.thread_id, hit.id) if isinstance(hit, TurnHit) else ("", hit.id)


def _recall_trimmed(missed: Sequence[Hit | TurnHit], frame: Frame) -> ContextWarning:
    tokens = sum(frame.count(line_of(hit)) for hit in missed)
    ids = tuple(hit.id for hit in missed)
    return ContextWarning("recall_trimmed", tokens=tokens, ids=ids, detail={"hits": len(missed)})
