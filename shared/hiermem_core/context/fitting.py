"""Fitting what a model call needs into its budget. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from hiermem_core.context.placing_memory import (
    Frame,
    Remembered,
    filled,
    place_memory,
    without_repeated,
)
from hiermem_core.context.reporting import (
    cut_warnings,
    leading_warnings,
    left_out_warnings,
    merged,
    recall_section,
    receipt_of,
    section,
    tokens_in,
)
from hiermem_core.context.shortening import Shortened, shorten_exchange
from hiermem_core.errors import BudgetExceededError
from hiermem_core.models.context import Context, Section
from hiermem_core.threads.counting import tokens_of, unit_warnings, unreadable_warnings
from hiermem_core.threads.exchanges import units_of
from hiermem_core.tokens.counters import REPLY_TOKENS, tool_schema_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hiermem_core.context.placing_memory import PlacedMemory
    from hiermem_core.models.queries import Hit, TurnHit
    from hiermem_core.models.threads import ThreadLoad
    from hiermem_core.models.turns import Turn
    from hiermem_core.models.warnings import ContextWarning
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.threads.exchanges import Unit

_ROUNDS = 4

OverBudget = Literal["truncate", "raise"]


@dataclass(frozen=True, slots=True)
class Mandatory:
    """What is never cut: the caller's prefix, system prompt, tool schemas and standing turns.

    Attributes:
        prefix_tokens: Of what the caller sends before the messages by itself.
        system: May hold a slot for what is remembered; it counts as empty here.
    """

    prefix_tokens: int = 0
    system: tuple[Turn, ...] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    standing: tuple[Turn, ...] = ()

    def sections(self, counter: TokenCounter) -> list[Section]:
        """Return their sections; `framing` stands for the reply, once."""
        tools = sum(tool_schema_tokens(counter.count, schema) for schema in self.tools)
        return [
            Section("prefix", self.prefix_tokens),
            Section("framing", REPLY_TOKENS),
            Section("system", tokens_of(filled(self.system, ""), counter)),
            Section("tools", tools),
            section("pinned", self.standing, counter),
        ]


@dataclass(frozen=True, slots=True)
class Material:
    """Everything a context is made of.

    Attributes:
        current: The turns that are used and not stored; their seqs follow the window's.
        recalled: Hits, best first; those at hand elsewhere in the context are left out.
        recall_share: Of what the mandatory parts and the current exchange leave, at most this.
        question_follows: The caller adds the question behind what is returned.
        cap: Exchanges beside the current one at most.
        reserve: Already taken off the budget.
    """

    mandatory: Mandatory
    load: ThreadLoad
    current: tuple[Turn, ...]
    budget: int
    reserve: int = 0
    recalled: tuple[Hit | TurnHit, ...] = ()
    recall_share: float = 0.0
    question_follows: bool = False
    cap: int | None = None
    on_over_budget: OverBudget = "truncate"
    warnings: tuple[ContextWarning, ...] = ()


def fit(material: Material, counter: TokenCounter) -> Context:
    """Return the context of at most `material.budget` tokens by `counter`.

    Keeps, in this order: the mandatory parts, the current exchange (whole, or shortened under
    `"truncate"`), the notes, and earlier units, newest first, until one does not fit.

    Raises:
        BudgetExceededError: The mandatory parts and the least of the current exchange do not fit.
    """
    mandatory, load = material.mandatory, material.load
    fixed = mandatory.sections(counter)
    units = units_of([*load.window, *material.current])
    complete = [unit for unit in units if unit.complete]
    newest = complete[-1].turns if complete else ()
    current = _fit_current(newest, material, fixed, counter)
    room = material.budget - tokens_in(fixed) - tokens_of(current.turns, counter)
    within, beyond = split_by_cap(complete[:-1], material.cap)
    memory = _placed_memory(material, current, within, room, counter)
    room_left = room - memory.tokens if current.is_whole else 0
    kept, trimmed = split_by_room(within, room_left, counter)
    missed = uncovered(beyond, trimmed, current.dropped, load.covered_seq)
    window = [turn for unit in kept for turn in unit.turns]
    sections = [
        *fixed,
        recall_section(memory),
        Section("notes", memory.notes_tokens),
        section("window", window, counter),
        section("current", current.turns, counter),
    ]
    warnings = [
        *(told for told in load.warnings if told.code != "turn_unreadable"),
        *material.warnings,
        *leading_warnings(units, counter),
        *unit_warnings([*kept, *complete[-1:]], counter),
        *memory.warnings,
        *left_out_warnings("turns_not_covered", missed, counter),
        *left_out_warnings("turns_trimmed", [*turns_of(trimmed), *current.dropped], counter),
        *cut_warnings(newest, current, tokens_in(fixed), material.budget, counter),
        *unreadable_warnings([*mandatory.standing, *window, *current.turns], counter),
    ]
    return Context(
        messages=(*memory.system, *mandatory.standing, *window, *memory.current),
        warnings=merged(warnings),
        receipt=receipt_of(sections, counter, budget=material.budget, reserve=material.reserve),
        notes=memory.notes,
        hits=memory.hits,
    )


def question_of(material: Material) -> str:
    """Return what the newest user turn asks."""
    turns = [*material.load.window, *material.current]
    asked = [turn.content for turn in turns if turn.role == "user" and turn.content]
    return asked[-1] if asked else ""


def first_kept_seq(material: Material, counter: TokenCounter) -> int | None:
    """Return the first seq the window shows even if recall takes its whole share.

    Where the whole thread fits, nothing of it has to be recalled: then it is the first of all.
    `None` where the thread has no stored turn that is shown.
    """
    units = [u for u in units_of([*material.load.window, *material.current]) if u.complete]
    current = units[-1].turns if units else ()
    fixed = tokens_in(material.mandatory.sections(counter))
    room = material.budget - fixed - tokens_of(current, counter)
    within, _ = split_by_cap(units[:-1], material.cap)
    least = max(0, room - int(max(0, room) * material.recall_share))
    if _holds_the_thread(material, units) and not split_by_room(within, room, counter)[1]:
        least = room
    kept, _ = split_by_room(within, least, counter)
    shown = [turn.seq for unit in kept for turn in unit.turns] + [turn.seq for turn in current]
    return min(shown, default=None)


def _holds_the_thread(material: Material, units: Sequence[Unit]) -> bool:
    """Tell whether the loaded window left nothing of the thread out."""
    left_out = {"turns_trimmed", "turns_not_covered"}
    is_whole = left_out.isdisjoint(told.code for told in material.load.warnings)
    return is_whole and not split_by_cap(units[:-1], material.cap)[1]


def _placed_memory(
    material: Material,
    current: Shortened,
    units: Sequence[Unit],
    room: int,
    counter: TokenCounter,
) -> PlacedMemory:
    """Place notes and recalled hits; a hit the window shows then makes room for another.

    Which hits fit and what the window shows hang on each other. Where a few rounds find no answer,
    no hit comes back that was left out once, so that none is shown twice.
    """
    load, mandatory = material.load, material.mandatory
    share = int(room * material.recall_share) if current.is_whole else 0
    said = [*mandatory.standing, *current.turns]
    hits = without_repeated(material.recalled, load.notes, said)
    remembered = Remembered(load.notes, hits, share)
    is_ahead = material.question_follows
    frame = Frame(mandatory.system, current.turns, counter, is_ahead=is_ahead)
    memory = place_memory(remembered, room, frame)
    if not hits:
        return memory
    for tries in count():
        kept, _beyond = split_by_room(units, room - memory.tokens, counter)
        shown = [*said, *(turn for unit in kept for turn in unit.turns)]
        among = hits if tries < _ROUNDS else remembered.hits
        fresh = without_repeated(among, load.notes, shown)
        if fresh == remembered.hits:
            break
        remembered = replace(remembered, hits=fresh)
        memory = place_memory(remembered, room, frame)
    return memory


def split_by_cap(units: Sequence[Unit], cap: int | None) -> tuple[Sequence[Unit], Sequence[Unit]]:
    """Return the newest units of at most `cap` exchanges, and the older rest; both in order."""
    if cap is None:
        return units, ()
    start = len(units)
    while start > 0 and units[start - 1].exchanges <= cap:
        start -= 1
        cap -= units[start].exchanges
    return units[start:], units[:start]


def uncovered(
    beyond: Sequence[Unit],
    trimmed: Sequence[Unit],
    dropped: Sequence[Turn],
    covered_seq: int | None,
) -> list[Turn]:
    """Return the turns that are neither shown nor covered by notes.

    Without notes (`None`) those are the ones beyond the cap; what the budget trimmed is told of by
    itself.
    """
    if covered_seq is None:
        return turns_of(beyond)
    gone = [*turns_of([*beyond, *trimmed]), *dropped]
    return [turn for turn in gone if turn.seq > covered_seq]


def turns_of(units: Iterable[Unit]) -> list[Turn]:
    """Return the stored turns of units, in order."""
    return [turn for unit in units for turn in unit.stored]


def split_by_room(
    units: Sequence[Unit], room: int, counter: TokenCounter
) -> tuple[list[Unit], list[Unit]]:
    """Return the newest units that fit, and the older rest; both in order, without holes."""
    start = len(units)
    while start > 0:
        room -= tokens_of(units[start - 1].turns, counter)
        if room < 0:
            break
        start -= 1
    return list(units[start:]), list(units[:start])


def _fit_current(
    turns: Sequence[Turn], material: Material, fixed: Sequence[Section], counter: TokenCounter
) -> Shortened:
    available = material.budget - tokens_in(fixed)
    tokens = tokens_of(turns, counter)
    if tokens <= available:
        return Shortened(tuple(turns), (), ())
    shortened = None
    if material.on_over_budget == "truncate" and available > 0:
        shortened = shorten_exchange(turns, available, counter)
    if shortened is None:
        parts = {part.name: part.tokens for part in fixed if part.tokens} | {"current": tokens}
        needed = sum(parts.values())
        raise BudgetExceededError(needed=needed, available=material.budget, parts=parts)
    return shortened
