"""Fitting what a model call needs into its budget. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from hiermem_core.context.shortening import Shortened, shorten_exchange
from hiermem_core.errors import BudgetExceededError
from hiermem_core.models.context import Context, ContextWarning, Receipt, Section
from hiermem_core.threads.counting import tokens_of, turns_warning, unit_warnings
from hiermem_core.threads.exchanges import Unit, units_of
from hiermem_core.tokens.counters import REPLY_TOKENS, tool_schema_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hiermem_core.models.threads import ThreadLoad
    from hiermem_core.models.turns import Turn
    from hiermem_core.protocols import TokenCounter

OverBudget = Literal["truncate", "raise"]


@dataclass(frozen=True, slots=True)
class Mandatory:
    """What is never cut: the caller's prefix, system prompt, tool schemas and standing turns.

    Attributes:
        prefix_tokens: Of what the caller sends before the messages by itself.
    """

    prefix_tokens: int = 0
    system: tuple[Turn, ...] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    standing: tuple[Turn, ...] = ()

    def sections(self, counter: TokenCounter) -> list[Section]:
        """Return their sections, `framing` (once, for the reply) included."""
        tools = sum(tool_schema_tokens(counter.count, schema) for schema in self.tools)
        return [
            Section("prefix", self.prefix_tokens),
            Section("system", tokens_of(self.system, counter)),
            Section("tools", tools),
            section("pinned", self.standing, counter),
            Section("framing", REPLY_TOKENS),
        ]


@dataclass(frozen=True, slots=True)
class Material:
    """Everything a context is made of.

    Attributes:
        current: The turns that are used and not stored; their seqs follow the window's.
        reserve: Already taken off the budget.
    """

    mandatory: Mandatory
    load: ThreadLoad
    current: tuple[Turn, ...]
    budget: int
    reserve: int = 0
    on_over_budget: OverBudget = "truncate"
    warnings: tuple[ContextWarning, ...] = field(default=())


def fit(material: Material, counter: TokenCounter) -> Context:
    """Return the context of at most `material.budget` tokens by `counter`.

    Keeps, in this order: the mandatory parts, the current exchange (whole, or shortened under
    `"truncate"`), and earlier units, newest first, until one does not fit.

    Raises:
        BudgetExceededError: The mandatory parts and the least of the current exchange do not fit.
    """
    fixed = material.mandatory.sections(counter)
    available = material.budget - sum(part.tokens for part in fixed)
    units = units_of([*material.load.window, *material.current])
    leading = [unit for unit in units if not unit.complete]
    units = [unit for unit in units if unit.complete]
    newest = units[-1].turns if units else ()
    current = _fit_current(newest, available, material, fixed, counter)
    room = available - tokens_of(current.turns, counter)
    kept, trimmed = split_by_room(units[:-1], room, counter)
    warnings = [
        *material.load.warnings,
        *material.warnings,
        *_leading_warnings(leading, counter),
        *unit_warnings([*kept, *units[-1:]], counter),
        *_trim_warnings(trimmed, current.dropped, counter),
        *_cut_warnings(newest, current, fixed, material.budget, counter),
    ]
    window = [turn for unit in kept for turn in unit.turns]
    messages = (*material.mandatory.system, *material.mandatory.standing, *window, *current.turns)
    sections = [
        *fixed[:-1],
        section("window", window, counter),
        section("current", current.turns, counter),
        fixed[-1],
    ]
    receipt = Receipt(
        material.budget,
        material.reserve,
        counter.id,
        getattr(counter, "exact", True),
        tuple(part for part in sections if part.tokens or part.ids),
    )
    return Context(messages, merged(warnings), receipt, material.load.notes)


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


def section(name: str, turns: Sequence[Turn], counter: TokenCounter) -> Section:
    """Return the section of some turns."""
    ids = tuple(turn.id for turn in turns if turn.id is not None)
    return Section(name, tokens_of(turns, counter), ids)


def merged(warnings: Sequence[ContextWarning]) -> tuple[ContextWarning, ...]:
    """Return one warning a code, in order of first appearance, with the figures summed."""
    result: dict[str, ContextWarning] = {}
    for warning in warnings:
        other = result.get(warning.code)
        result[warning.code] = warning if other is None else _sum(other, warning)
    return tuple(result.values())


def _fit_current(
    turns: Sequence[Turn],
    available: int,
    material: Material,
    fixed: Sequence[Section],
    counter: TokenCounter,
) -> Shortened:
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


def _leading_warnings(units: Sequence[Unit], counter: TokenCounter) -> Iterator[ContextWarning]:
    turns = [turn for unit in units for turn in unit.stored]
    if turns:
        yield turns_warning("leading_turns_dropped", turns, counter)


def _trim_warnings(
    trimmed: Sequence[Unit], dropped: Sequence[Turn], counter: TokenCounter
) -> Iterator[ContextWarning]:
    turns = [turn for unit in trimmed for turn in unit.stored] + list(dropped)
    if not turns:
        return
    roles: dict[str, int] = {}
    for turn in turns:
        roles[turn.role] = roles.get(turn.role, 0) + 1
    yield turns_warning(
        "turns_trimmed",
        turns,
        counter,
        exchanges=sum(unit.exchanges for unit in trimmed),
        roles=roles,
        first_seq=turns[0].seq,
        last_seq=turns[-1].seq,
    )


def _cut_warnings(
    whole: Sequence[Turn],
    current: Shortened,
    fixed: Sequence[Section],
    budget: int,
    counter: TokenCounter,
) -> Iterator[ContextWarning]:
    cut = tokens_of(whole, counter) - tokens_of(current.turns, counter)
    if not cut:
        return
    needed = sum(part.tokens for part in fixed) + tokens_of(whole, counter)
    results = [turn for turn in current.cut if turn.role == "tool"]
    ids = tuple(turn.id for turn in current.cut if turn.id is not None)
    facts = {"needed": needed, "available": budget}
    yield ContextWarning("over_budget", len(current.cut), cut, ids, facts)
    if results:
        yield turns_warning("tool_result_truncated", results, counter)


def _sum(one: ContextWarning, other: ContextWarning) -> ContextWarning:
    return replace(
        one,
        count=one.count + other.count,
        tokens=one.tokens + other.tokens,
        ids=one.ids + other.ids,
        detail={**one.detail, **{k: _joined(k, one.detail, v) for k, v in other.detail.items()}},
    )


def _joined(name: str, facts: Mapping[str, Any], value: Any) -> Any:
    if name not in facts:
        return value
    if name in {"first_seq", "last_seq"}:
        return (min if name == "first_seq" else max)(facts[name], value)
    if isinstance(value, dict):
        roles = {**facts[name]}
        return roles | {role: roles.get(role, 0) + count for role, count in value.items()}
    return facts[name] + value if isinstance(value, int) else value
