"""Token counts of turns, and warnings that carry them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.models.warnings import ContextWarning, WarningCode
from hiermem_core.tokens.counters import GuardedCounter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hiermem_core.models.turns import Turn, TurnDraft
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.threads.exchanges import Unit
    from hiermem_core.threads.tally import Count


def stored_counts(draft: TurnDraft, counter: TokenCounter) -> dict[str, int]:
    """Return the counts to store with a turn; none where the counter fails on it."""
    guard = GuardedCounter(counter)
    tokens = guard.count_turn(draft)
    return {} if guard.failures else {counter.id: tokens}


def turn_tokens(turn: Turn, counter: TokenCounter) -> int:
    """Return the tokens of a turn: as stored, else counted now."""
    stored = turn.token_counts.get(counter.id)
    return counter.count_turn(turn) if stored is None else stored


def tokens_of(turns: Iterable[Turn], counter: TokenCounter) -> int:
    """Return the tokens of several turns."""
    name, total = counter.id, 0
    for turn in turns:
        stored = turn.token_counts.get(name)
        total += counter.count_turn(turn) if stored is None else stored
    return total


def count_warning(
    code: WarningCode, count: Count, counter: TokenCounter, detail: Mapping[str, Any]
) -> ContextWarning:
    """Return a warning about turns of which only the stored counts are known.

    `uncounted` says how many of them were stored under another counter; their tokens are missing.
    """
    uncounted = count.turns - count.counted[counter.id]
    facts = {**detail, "uncounted": uncounted} if uncounted else dict(detail)
    return ContextWarning(code, count.turns, count.tokens[counter.id], detail=facts)


def turns_warning(
    code: WarningCode, turns: Sequence[Turn], counter: TokenCounter, **detail: Any
) -> ContextWarning:
    """Return a warning about turns at hand."""
    ids = tuple(turn.id for turn in turns if turn.id is not None)
    return ContextWarning(code, len(turns), tokens_of(turns, counter), ids, detail)


def unit_warnings(units: Iterable[Unit], counter: TokenCounter) -> Iterator[ContextWarning]:
    """Say what was left out inside units that are kept."""
    units = list(units)
    orphans = [turn for unit in units for turn in unit.orphans]
    blanks = [turn for unit in units for turn in unit.blanks]
    pending = sum(unit.pending for unit in units)
    if orphans:
        yield turns_warning("orphan_results_dropped", orphans, counter)
    if blanks:
        yield turns_warning("blank_turns_dropped", blanks, counter)
    if pending:
        yield ContextWarning("pending_calls_dropped", detail={"calls": pending})


def unreadable_warnings(turns: Iterable[Turn], counter: TokenCounter) -> Iterator[ContextWarning]:
    """Say which of the turns that are shown are placeholders."""
    unreadable = [turn for turn in turns if turn.unreadable is not None]
    if unreadable:
        yield turns_warning("turn_unreadable", unreadable, counter)
