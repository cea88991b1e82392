"""Exchanges and units: the grouping that trimming never breaks. Pure.

An exchange is a user turn and everything up to the next one. Exchanges tied by a tool call and its
result are one unit. Units are built newest first and lazily, so that whoever reads a thread
backwards reads no further than the units it takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hiermem_core.models.turns import ToolCall, Turn, is_blank, view_of
from hiermem_core.threads.tally import opens_exchange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet


@dataclass(frozen=True, slots=True)
class Unit:
    """One or more whole exchanges that stay or go together.

    Attributes:
        stored: Every turn of it, in order, as stored.
        turns: What the model may read of them: sound pairs of calls and results, nothing blank.
        orphans: Results left out because their call is not there.
        blanks: Turns left out because they say nothing.
        pending: Calls without a result that were taken out of a turn.
        complete: It begins with a user turn; only the rest before the first user turn does not.
    """

    stored: tuple[Turn, ...]
    turns: tuple[Turn, ...]
    orphans: tuple[Turn, ...] = ()
    blanks: tuple[Turn, ...] = ()
    pending: int = 0
    complete: bool = True

    @property
    def exchanges(self) -> int:
        """User turns that open an exchange."""
        return sum(opens_exchange(turn) for turn in self.turns)


def units_newest_first(turns: Iterable[Turn]) -> Iterator[Unit]:
    """Yield the units of turns given newest first; standing turns must not be among them.

    A tool result's `call_seq` says how far its unit reaches back. The turns before the first user
    turn come last, as a unit that is not `complete`.
    """
    pending_allowed = True
    gathered: list[Turn] = []
    reach_back: int | None = None
    for turn in turns:
        gathered.append(turn)
        if turn.call_seq is not None:
            reach_back = min(turn.call_seq, reach_back or turn.call_seq)
        if opens_exchange(turn) and (reach_back is None or turn.seq <= reach_back):
            yield sound_unit(gathered[::-1], pending_allowed=pending_allowed)
            gathered, reach_back, pending_allowed = [], None, False
    yield from _oldest(gathered[::-1], pending_allowed=pending_allowed)


def _oldest(turns: Sequence[Turn], *, pending_allowed: bool) -> Iterator[Unit]:
    first = next((i for i, turn in enumerate(turns) if opens_exchange(turn)), len(turns))
    if turns[first:]:
        yield sound_unit(turns[first:], pending_allowed=pending_allowed)
    if turns[:first]:
        yield replace(sound_unit(turns[:first], pending_allowed=False), complete=False)


def units_of(turns: Sequence[Turn]) -> list[Unit]:
    """Return the units of turns in order, linking results to calls by their ids."""
    return list(units_newest_first(reversed(linked(turns))))[::-1]


def linked(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns with every result's `call_seq` found anew: the nearest call before it."""
    seen: dict[str | None, int] = {}
    result = []
    for turn in turns:
        call_seq = seen.get(turn.tool_call_id) if turn.role == "tool" else None
        result.append(turn if call_seq == turn.call_seq else replace(turn, call_seq=call_seq))
        seen.update((call.id, turn.seq) for call in turn.tool_calls)
    return result


def sound_unit(turns: Sequence[Turn], *, pending_allowed: bool) -> Unit:
    """Return the unit of whole exchanges without what providers refuse.

    Results without their call and blank turns are left out. Calls without a result are taken out
    of their turn, unless they are allowed and stand in the newest exchange.
    """
    if all(_is_plain(turn) for turn in turns):
        return Unit(tuple(turns), tuple(turns))
    seqs = {turn.seq for turn in turns}
    answered = {(t.call_seq, t.tool_call_id) for t in turns if t.call_seq in seqs}
    orphans = tuple(turn for turn in turns if _is_orphan(turn, seqs))
    openings = [turn.seq for turn in turns if opens_exchange(turn)]
    current = openings[-1:] if pending_allowed else []
    views = [
        turn if current and turn.seq >= current[0] else _with_answered_calls(turn, answered)
        for turn in turns
        if not _is_orphan(turn, seqs)
    ]
    return Unit(
        stored=tuple(turns),
        turns=tuple(view for view in views if not is_blank(view)),
        orphans=orphans,
        blanks=tuple(view for view in views if is_blank(view)),
        pending=_calls(turns) - _calls(views),
    )


def _is_orphan(turn: Turn, seqs: AbstractSet[int]) -> bool:
    return turn.role == "tool" and turn.call_seq not in seqs


def _is_plain(turn: Turn) -> bool:
    return not turn.tool_calls and turn.role != "tool" and not is_blank(turn)


def _with_answered_calls(turn: Turn, answered: AbstractSet[tuple[int | None, str | None]]) -> Turn:
    calls = [call for call in turn.tool_calls if (turn.seq, call.id) in answered]
    return turn if len(calls) == len(turn.tool_calls) else with_calls(turn, calls)


def _calls(turns: Sequence[Turn]) -> int:
    return sum(len(turn.tool_calls) for turn in turns)


def with_calls(turn: Turn, calls: Sequence[ToolCall]) -> Turn:
    """Return a view of a turn with only these calls."""
    ids = {call.id for call in calls}
    parts = [p for p in turn.parts if p["type"] != "tool_call" or p.get("id") in ids]
    return view_of(turn, tool_calls=tuple(calls), parts=parts)
