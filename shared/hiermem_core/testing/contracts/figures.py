"""Figures: what a context shows, and texts of a wanted size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.models.turns import Turn, TurnDraft
from hiermem_core.tokens.counters import tool_schema_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hiermem_core import HierMem, Thread
    from hiermem_core.models.context import Context
    from hiermem_core.models.warnings import ContextWarning, WarningCode
    from hiermem_core.protocols import TokenCounter


def warning(context: Context, code: WarningCode) -> ContextWarning:
    """Return the one warning of a code."""
    (found,) = [told for told in context.warnings if told.code == code]
    return found


def contents(context: Context) -> list[str | None]:
    """Return what the messages say."""
    return [turn.content for turn in context.messages]


def seqs(context: Context) -> tuple[int, ...]:
    """Return the places of the messages in their thread."""
    return tuple(turn.seq for turn in context.messages)


def windows_of(thread: Thread, budgets: Iterable[int]) -> set[tuple[int, ...]]:
    """Return the windows that some budgets give, by the seqs of their turns."""
    return {seqs(thread.context(budget_tokens=budget, recall=False)) for budget in budgets}


def tokens(counter: TokenCounter, turns: Sequence[TurnDraft | Turn]) -> int:
    """Return the tokens of turns, counted anew."""
    return sum(counter.count_turn(turn) for turn in turns)


def system_turn(text: str) -> TurnDraft:
    """Return the turn of a system prompt."""
    return TurnDraft(role="system", content=text)


def tool(hiermem: HierMem, text: str) -> int:
    """Return the tokens of a tool of this description."""
    schema = {"name": "find", "description": text}
    return tool_schema_tokens(hiermem.counter.count, schema)


def filler(wanted: int, count: Any) -> str:
    """Return a text of exactly, or if that cannot be just above, `wanted` tokens."""
    low, high = 0, 1
    while count(" a" * high) < wanted:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(" a" * middle) < wanted else (low, middle)
    return " a" * high
