"""What a context says of itself: warnings and the receipt. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiermem_core.models.context import Receipt, Section
from hiermem_core.models.warnings import ContextWarning
from hiermem_core.threads.counting import tokens_of, turns_warning
from hiermem_core.threads.tally import opens_exchange

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hiermem_core.context.placing_memory import PlacedMemory
    from hiermem_core.context.shortening import Shortened
    from hiermem_core.models.turns import Turn
    from hiermem_core.models.warnings import WarningCode
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.threads.exchanges import Unit


def section(name: str, turns: Sequence[Turn], counter: TokenCounter) -> Section:
    """Return the section of some turns."""
    ids = tuple(turn.id for turn in turns if turn.id is not None)
    return Section(name, tokens_of(turns, counter), ids)


def recall_section(memory: PlacedMemory) -> Section:
    """Return the section of what was recalled."""
    return Section("recall", memory.recall_tokens, tuple(hit.id for hit in memory.hits))


def tokens_in(sections: Sequence[Section]) -> int:
    """Return the tokens of several sections."""
    return sum(part.tokens for part in sections)


def receipt_of(
    sections: Sequence[Section], counter: TokenCounter, *, budget: int, reserve: int
) -> Receipt:
    """Return the receipt; sections with nothing in them are left out."""
    kept = tuple(part for part in sections if part.tokens or part.ids)
    exact = getattr(counter, "exact", True)
    return Receipt(budget=budget, reserve=reserve, counter=counter.id, exact=exact, sections=kept)


def leading_warnings(units: Sequence[Unit], counter: TokenCounter) -> Iterator[ContextWarning]:
    """Say what stands before the first user turn, which no provider accepts."""
    turns = [turn for unit in units if not unit.complete for turn in unit.stored]
    if turns:
        yield turns_warning("leading_turns_dropped", turns, counter)


def left_out_warnings(
    code: WarningCode, turns: Sequence[Turn], counter: TokenCounter
) -> Iterator[ContextWarning]:
    """Say which turns were left out."""
    if turns:
        yield turns_warning(
            code,
            turns,
            counter,
            exchanges=sum(map(opens_exchange, turns)),
            roles=dict(Counter(turn.role for turn in turns)),
            first_seq=turns[0].seq,
            last_seq=turns[-1].seq,
        )


def cut_warnings(
    whole: Sequence[Turn], current: Shortened, fixed: int, budget: int, counter: TokenCounter
) -> Iterator[ContextWarning]:
    """Say what of the current exchange was cut to fit."""
    needed = tokens_of(whole, counter)
    cut = needed - tokens_of(current.turns, counter)
    if not cut:
        return
    ids = tuple(turn.id for turn in current.cut if turn.id is not None)
    facts = {"needed": fixed + needed, "available": budget}
    yield ContextWarning("over_budget", len(current.cut), cut, ids, facts)
    results = [turn for turn in current.cut if turn.role == "tool"]
    if results:
        yield turns_warning("tool_result_truncated", results, counter)


def merged(warnings: Sequence[ContextWarning]) -> tuple[ContextWarning, ...]:
    """Return one warning a code, in order of first appearance, with the figures summed."""
    result: dict[str, ContextWarning] = {}
    for warning in warnings:
        other = result.get(warning.code)
        result[warning.code] = warning if other is None else _sum(other, warning)
    return tuple(result.values())


def _sum(one: ContextWarning, other: ContextWarning) -> ContextWarning:
    both = {name: _joined(name, one.detail, value) for name, value in other.detail.items()}
    return replace(
        one,
        count=one.count + other.count,
        tokens=one.tokens + other.tokens,
        ids=one.ids + other.ids,
        detail={**one.detail, **both},
    )


def _joined(name: str, facts: Mapping[str, Any], value: Any) -> Any:
    if name not in facts or isinstance(value, str):
        return value
    if name == "first_seq":
        return min(facts[name], value)
    if name == "last_seq":
        return max(facts[name], value)
    if isinstance(value, dict):
        return dict(Counter(facts[name]) + Counter(value))
    return facts[name] + value
