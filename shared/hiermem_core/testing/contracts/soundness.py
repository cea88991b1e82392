"""Soundness: what a sequence of turns is, worked out anew from the rules, to judge others by.

Simple and slow on purpose: it shares no code with what it judges.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

import regex

from hiermem_core.models.turns import is_blank, is_standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hiermem_core.models.turns import Turn

MARKER = re.compile(r"\n\[\.\.\. (\d+) characters cut \.\.\.\]\Z")
MEMORY = re.compile(r"\A<memory>\n[^<>]*(<recalled>\n[^<>]*</recalled>\n)?</memory>\n\n")
"""The block in front of a question: nothing inside can end it, as what it holds is escaped."""


def body_of(turns: Iterable[Turn]) -> list[Turn]:
    """Return the turns that exchanges are made of."""
    return [turn for turn in turns if not is_standing(turn)]


def opens(turn: Turn) -> bool:
    """Tell whether a turn begins an exchange."""
    return turn.role == "user" and not is_standing(turn) and not is_blank(turn)


def owners_of(turns: Sequence[Turn]) -> dict[int, int]:
    """Return by the seq of each result the seq of its call: the nearest of that id before it."""
    asked: dict[str | None, int] = {}
    owners = {}
    for turn in turns:
        if turn.role == "tool" and turn.tool_call_id in asked:
            owners[turn.seq] = asked[turn.tool_call_id]
        asked |= {call.id: turn.seq for call in turn.tool_calls}
    return owners


def exchanges_of(turns: Sequence[Turn]) -> tuple[list[Turn], list[list[Turn]]]:
    """Return the turns before the first user turn, and the exchanges."""
    exchanges: list[list[Turn]] = [[]]
    for turn in body_of(turns):
        if opens(turn):
            exchanges.append([])
        exchanges[-1].append(turn)
    return exchanges[0], exchanges[1:]


def units_of(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Return the exchanges, those tied by a call and its result joined, in order."""
    _, exchanges = exchanges_of(turns)
    first = exchanges[0][0].seq if exchanges else 0
    owners = {result: call for result, call in owners_of(body_of(turns)).items() if call >= first}
    units: list[list[Turn]] = []
    for exchange in exchanges:
        reach = min(owners.get(turn.seq, turn.seq) for turn in exchange)
        joined = list(exchange)
        while units and reach <= units[-1][-1].seq:
            joined = units.pop() + joined
        units.append(joined)
    return units


def left_out_of(unit: Sequence[Turn], *, newest: bool) -> set[int]:
    """Return the seqs of a kept unit that no view shows: results without a call, and blanks."""
    owners = owners_of(unit)
    orphans = {turn.seq for turn in unit if turn.role == "tool" and turn.seq not in owners}
    answered = {(owners[turn.seq], turn.tool_call_id) for turn in unit if turn.seq in owners}
    current = exchanges_of(unit)[1][-1] if newest else []
    mute = {turn.seq for turn in unit if says_nothing(turn, answered, waits=turn in current)}
    return orphans | mute


def says_nothing(turn: Turn, answered: set[tuple[int, str | None]], *, waits: bool) -> bool:
    """Tell whether a turn is blank, or would be without its calls that have no result."""
    if not turn.tool_calls:
        return is_blank(turn)
    calls_stay = waits or any((turn.seq, call.id) in answered for call in turn.tool_calls)
    return not calls_stay and not (turn.content or "").strip() and not turn.parts


def assert_providers_accept(messages: Sequence[Turn]) -> None:
    """Hold the common rules of providers: who speaks first, calls and results, no empty turn."""
    spoken = body_of(messages)
    assert not [t for t in messages if t.role in {"user", "assistant"} and is_blank(t)]
    assert list(messages) == [*takewhile(is_standing, messages), *spoken]
    assert not spoken or spoken[0].role == "user"
    owners = owners_of(spoken)
    assert all(turn.seq in owners for turn in spoken if turn.role == "tool")
    answered = {(owners[turn.seq], turn.tool_call_id) for turn in spoken if turn.role == "tool"}
    last_exchange = {turn.seq for exchange in exchanges_of(spoken)[1][-1:] for turn in exchange}
    pending = {
        turn.seq
        for turn in spoken
        for call in turn.tool_calls
        if (turn.seq, call.id) not in answered
    }
    assert pending <= last_exchange


def without_memory(view: Turn) -> str | None:
    """Return what a turn of a context says, without the recalled block in front of it."""
    return None if view.content is None else MEMORY.sub("", view.content)


def assert_is_cut_of(view: Turn, original: Turn) -> None:
    """Hold that a shortened text is encodable, marked, and a head of the original by graphemes."""
    text, whole = view.content or "", original.content or ""
    text.encode("utf-8")
    mark = MARKER.search(text)
    assert mark is not None
    head = text[: mark.start()]
    assert whole.startswith(head)
    assert int(mark[1]) == len(whole) - len(head)
    assert len(head) in grapheme_boundaries(whole)


def grapheme_boundaries(text: str) -> set[int]:
    """Return every place where a text may be cut."""
    return {0, *(match.end() for match in regex.finditer(r"\X", text))}
