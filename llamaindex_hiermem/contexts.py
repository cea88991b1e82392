"""The two ways a memory buffer builds its context: `ChatMemoryBuffer`'s, and the core's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from hiermem_core import (
    BudgetExceededError,
    ClosedError,
    Context,
    ContextWarning,
    HierMemError,
    RecallResult,
    Receipt,
    Section,
    Thread,
    ThreadNotFoundError,
    TurnHit,
    memory_block,
)
from llamaindex_hiermem.messages import FRAMEWORK, projected_message, restored_message
from llamaindex_hiermem.placing import Placed, place_hits, restored_view
from llamaindex_hiermem.reading import PAGE, newest_first
from llamaindex_hiermem.recalling import NOTHING, TurnRecall, question_of, text_of_input
from llamaindex_hiermem.window import BufferWindow, choose_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hiermem_core import Hit, Turn
    from llamaindex_hiermem.counting import Counting
    from llamaindex_hiermem.recalling import Question

_LONGEST = 32_768
"""Characters of a question, at most; more is refused."""
_WEAK = frozenset(
    {"recall_failed", "semantic_unavailable", "index_rebuilding", "unknown_namespace"}
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a context is asked for.

    Attributes:
        limit: Tokens at most; `initial` of them are what the caller sends itself.
        k: Recalled entries and turns at most; 0: nothing is recalled.
        given: What the consumer names as input; `None`: nothing.
    """

    limit: int
    initial: int
    k: int
    given: Any


def core_context(thread: Thread, recall: TurnRecall, asked: Asked) -> Context:
    """Return the core's context within the limit; its messages are turns.

    Raises:
        BudgetExceededError: What must be kept does not fit.
    """
    needs_question = asked.k > 0 or text_of_input(asked.given) is not None
    question = question_of(thread, asked.given) if needs_question else NOTHING
    if not asked.k:
        return _core(thread, asked, recall=False, question_follows=question.follows)
    made: list[Context] = []

    def look_up() -> RecallResult:
        options = {"query": question.text, "recall_limit": asked.k}
        context = _core(thread, asked, question_follows=question.follows, **options)
        made.append(context)
        told = [warning for warning in context.warnings if warning.code in _WEAK]
        return RecallResult(context.hits, warnings=told)

    hits = recall.hits(question, asked.k, look_up)
    if made:
        return made[0]
    return _core(thread, asked, question_follows=question.follows, recalled=hits)


def _core(thread: Thread, asked: Asked, **options: Any) -> Context:
    try:
        return thread.context(budget_tokens=asked.limit, prefix_tokens=asked.initial, **options)
    except ThreadNotFoundError:
        return _empty_context(thread, limit=asked.limit, initial=asked.initial)


def _empty_context(thread: Thread, *, limit: int, initial: int) -> Context:
    if initial > limit:
        raise BudgetExceededError(needed=initial, available=limit, parts={"prefix": initial})
    counter = thread.counter
    exact: bool = getattr(counter, "exact", True)
    return Context((), (), _receipt(limit, counter.id, Section("prefix", initial), exact=exact))


def compat_context(thread: Thread, recall: TurnRecall, asked: Asked, count: Counting) -> Context:
    """Return the window of `ChatMemoryBuffer`, by `count` of the joined text, and what it recalls.

    Hits take only what the window leaves of the limit.

    Raises:
        ValueError: `initial` alone exceeds the limit.
    """
    limit, initial = asked.limit, asked.initial
    if initial > limit:
        raise ValueError("Initial token count exceeds token limit")
    window = _window(thread, limit - initial, count)
    ids = tuple(str(turn.id) for turn in window.turns)
    prefix, kept = Section("prefix", initial), Section("window", window.tokens, ids)
    receipt = _receipt(limit, "tokenizer_fn", prefix, kept)
    facts = {"needed": receipt.total, "available": limit}
    over_budget = ContextWarning("over_budget", len(ids), window.tokens, ids, facts)
    told = [over_budget] if window.over_budget else []
    context = of_messages(Context(window.turns, (*told, *_trimmed(thread, window)), receipt))
    if not asked.k:
        return context
    question = question_of(thread, asked.given)
    before = window.turns[0].seq if window.turns else 1
    found = recall.hits(question, asked.k, lambda: _looked_up(thread, question, before, asked.k))
    fresh = without_shown(found, window.turns)
    messages: Any = context.messages
    placed = place_hits(
        messages, fresh, limit=limit - initial, count=count, follows=question.follows
    )
    return _with_hits(context, found, placed, count)


def _with_hits(context: Context, found: RecallResult, placed: Placed, count: Counting) -> Context:
    """Return a context with its messages as placed, and what is to be said of it."""
    ids = tuple(hit.id for hit in placed.hits)
    prefix, kept = context.receipt.sections
    recalled = Section("recall", placed.tokens - kept.tokens, ids)
    receipt = replace(context.receipt, sections=(prefix, kept, recalled))
    told = (*context.warnings, *found.warnings, *_left_out(found, placed.hits, count))
    shown: Any = placed.messages
    return replace(context, messages=shown, warnings=told, receipt=receipt, hits=placed.hits)


def _looked_up(thread: Thread, question: Question, before: int, k: int) -> RecallResult:
    """Return what the thread and the tenant's entries know beside a window; never raises for it."""
    try:
        return thread.recall(question.text[:_LONGEST], before=before, limit=k)
    except ClosedError:
        raise
    except HierMemError as error:
        facts = {"error": type(error).__name__}
        return RecallResult(warnings=[ContextWarning("recall_failed", detail=facts)])


def without_shown(hits: Iterable[Hit | TurnHit], turns: Sequence[Turn]) -> Sequence[Hit | TurnHit]:
    """Return the hits that say what no turn says, each text once."""
    ids = {turn.id for turn in turns}
    seen = {(turn.content or "").strip() for turn in turns}
    kept = []
    for hit in hits:
        text = hit.content.strip()
        if text not in seen and not (isinstance(hit, TurnHit) and hit.id in ids):
            kept.append(hit)
            seen.add(text)
    return kept


def _left_out(
    found: Sequence[Hit | TurnHit], kept: Sequence[Hit | TurnHit], count: Counting
) -> Iterator[ContextWarning]:
    ids = {hit.id for hit in kept}
    missed = [hit for hit in found if hit.id not in ids]
    if missed:
        tokens = sum(count(hit.content) for hit in missed)
        names = tuple(hit.id for hit in missed)
        yield ContextWarning("recall_trimmed", 0, tokens, names, {"hits": len(missed)})


def _trimmed(thread: Thread, window: BufferWindow) -> Iterator[ContextWarning]:
    try:
        info = thread.info()
    except ThreadNotFoundError:
        return
    if info.turns > len(window.turns):
        yield ContextWarning("turns_trimmed", info.turns - len(window.turns))


def of_messages(context: Context) -> Context:
    """Return a context whose messages are chat messages.

    Warns of turns that cannot be read, or not by the installed core; they are placeholders.
    """
    block = memory_block(context.notes, context.hits)
    restored = [restored_message(turn) or restored_view(turn, block) for turn in context.messages]
    pairs = list(zip(context.messages, restored, strict=True))
    messages: Any = tuple(
        projected_message(turn) if message is None else message for turn, message in pairs
    )
    unreadable = [turn for turn, message in pairs if message is None and _should_restore(turn)]
    if not unreadable:
        return replace(context, messages=messages)
    others = [warning for warning in context.warnings if warning.code != "turn_unreadable"]
    warning = _unreadable_warning(unreadable, context.receipt.counter)
    return replace(context, messages=messages, warnings=(*others, warning))


def _should_restore(turn: Turn) -> bool:
    origin = turn.origin
    is_ours = origin is not None and origin.framework == FRAMEWORK and not origin.is_stale
    return is_ours or turn.unreadable is not None


def _unreadable_warning(turns: list[Turn], counter: str) -> ContextWarning:
    ids = tuple(str(turn.id) for turn in turns)
    tokens = sum(turn.token_counts.get(counter, 0) for turn in turns)
    return ContextWarning("turn_unreadable", len(turns), tokens, ids)


def _window(thread: Thread, limit: int, count: Counting) -> BufferWindow:
    """Return the window of the thread as it was at one moment."""
    while True:
        turns = newest_first(thread)
        newest = next(turns, None)
        if newest is None:
            return BufferWindow((), 0)
        window = choose_window(chain([newest], turns), limit, count)
        is_of_one_page = len(window.turns) < PAGE and not window.over_budget
        if is_of_one_page or _is_active(thread, newest):
            return window


def _is_active(thread: Thread, turn: Turn) -> bool:
    """Tell whether a turn is still there; then no older one was replaced since it was read."""
    try:
        return bool(thread.turns(after=turn.seq - 1, before=turn.seq + 1))
    except ThreadNotFoundError:
        return False


def _receipt(limit: int, counter: str, *sections: Section, exact: bool = True) -> Receipt:
    return Receipt(budget=limit, reserve=0, counter=counter, exact=exact, sections=sections)
