"""Timelines: where each turn of a thread stands in a context. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from hiermem_core.models.displayed import Displayed
from hiermem_core.models.queries import TurnHit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hiermem_core.models.context import Context
    from hiermem_core.models.turns import Turn

Place = Literal["pinned", "window", "recalled", "trimmed"]

_SHOWN = 200
"""Characters of a turn that a timeline holds."""


@dataclass(frozen=True, slots=True)
class TimelineTurn:
    """One turn of a timeline.

    Attributes:
        text: Its beginning, on one line.
        tokens: As stored, by the counter of the context; 0 where it was counted by another.
        place: `"recalled"`: it left the window and was found again; `"trimmed"`: the model does
            not read it.
    """

    seq: int
    role: str
    author: str | None
    text: str
    tokens: int
    place: Place


@dataclass(frozen=True, slots=True)
class Timeline(Displayed):
    """The turns of a thread in order, each with its place in a context."""

    turns: tuple[TimelineTurn, ...]

    @property
    def counts(self) -> Mapping[Place, int]:
        """How many turns are at each place; those with none are left out."""
        found = Counter(turn.place for turn in self.turns)
        return {place: found[place] for place in get_args(Place) if found[place]}


def timeline_of(turns: Iterable[Turn], context: Context) -> Timeline:
    """Return where each turn of a thread, as `Thread.turns` gives them, stands in its context."""
    in_sections = {section.name: set(section.ids) for section in context.receipt.sections}
    pinned = in_sections.get("pinned", set())
    read = {turn.id for turn in context.messages}
    recalled = {hit.id for hit in context.hits if isinstance(hit, TurnHit)}

    def place(turn: Turn) -> Place:
        if turn.id in pinned:
            return "pinned"
        if turn.id in read:
            return "window"
        return "recalled" if turn.id in recalled else "trimmed"

    counter = context.receipt.counter
    return Timeline(
        tuple(
            TimelineTurn(
                seq=turn.seq,
                role=turn.role,
                author=turn.name,
                text=_line(turn),
                tokens=turn.token_counts.get(counter, 0),
                place=place(turn),
            )
            for turn in turns
        )
    )


def _line(turn: Turn) -> str:
    calls = ", ".join(call.name for call in turn.tool_calls)
    text = " ".join((turn.content or (f"calls {calls}" if calls else "")).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
