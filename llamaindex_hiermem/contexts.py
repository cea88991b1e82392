"""The two ways a memory buffer builds its context: `ChatMemoryBuffer`'s, and the core's."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from hiermem_core import (
    BudgetExceededError,
    Context,
    ContextWarning,
    Receipt,
    Section,
    Thread,
    ThreadNotFoundError,
)
from llamaindex_hiermem.messages import FRAMEWORK, projected_message, restored_message
from llamaindex_hiermem.window import BufferWindow, Count, choose_window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core import Turn

_PAGE = 96
_CACHED_COUNTS = 4096
_CACHED_CHARACTERS = 2000


def core_context(thread: Thread, *, limit: int, initial: int) -> Context:
    """Return the core's context within `limit`, of which the caller sends `initial` itself.

    Raises:
        BudgetExceededError: What must be kept does not fit.
    """
    try:
        return thread.context(budget_tokens=limit, prefix_tokens=initial, recall=False)
    except ThreadNotFoundError:
        return _empty_context(thread, limit=limit, initial=initial)


def _empty_context(thread: Thread, *, limit: int, initial: int) -> Context:
    if initial > limit:
        raise BudgetExceededError(needed=initial, available=limit, parts={"prefix": initial})
    counter = thread.counter
    exact: bool = getattr(counter, "exact", True)
    return Context((), (), _receipt(limit, counter.id, Section("prefix", initial), exact=exact))


def compat_context(thread: Thread, *, limit: int, initial: int, count: Count) -> Context:
    """Return the window of `ChatMemoryBuffer`, by `count` of the joined text.

    Raises:
        ValueError: `initial` alone exceeds the limit.
    """
    if initial > limit:
        raise ValueError("Initial token count exceeds token limit")
    window = _window(thread, limit - initial, count)
    ids = tuple(str(turn.id) for turn in window.turns)
    prefix, kept = Section("prefix", initial), Section("window", window.tokens, ids)
    receipt = _receipt(limit, "tokenizer_fn", prefix, kept)
    facts = {"needed": receipt.total, "available": limit}
    over_budget = ContextWarning("over_budget", len(ids), window.tokens, ids, facts)
    told = [over_budget] if window.over_budget else []
    return Context(window.turns, (*told, *_trimmed(thread, window)), receipt)


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
    restored = [restored_message(turn) for turn in context.messages]
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


def counting_with(tokenizer: Callable[[str], list[Any]]) -> Count:
    """Return what counts texts by a tokenizer; it remembers the short ones."""

    def length(text: str) -> int:
        return len(tokenizer(text))

    cached = lru_cache(_CACHED_COUNTS)(length)
    return lambda text: length(text) if len(text) > _CACHED_CHARACTERS else cached(text)


def _window(thread: Thread, limit: int, count: Count) -> BufferWindow:
    """Return the window of the thread as it was at one moment."""
    while True:
        turns = newest_first(thread)
        newest = next(turns, None)
        if newest is None:
            return BufferWindow((), 0)
        window = choose_window(chain([newest], turns), limit, count)
        is_of_one_page = len(window.turns) < _PAGE and not window.over_budget
        if is_of_one_page or _is_active(thread, newest):
            return window


def _is_active(thread: Thread, turn: Turn) -> bool:
    """Tell whether a turn is still there; then no older one was replaced since it was read."""
    try:
        return bool(thread.turns(after=turn.seq - 1, before=turn.seq + 1))
    except ThreadNotFoundError:
        return False


def newest_first(thread: Thread) -> Iterator[Turn]:
    """Yield the turns of a thread, newest first, read in pages as they are asked for."""
    before: int | None = None
    while True:
        try:
            page = thread.turns(last=_PAGE, before=before)
        except ThreadNotFoundError:
            return
        yield from reversed(page)
        if len(page) < _PAGE:
            return
        before = page[0].seq


def _receipt(limit: int, counter: str, *sections: Section, exact: bool = True) -> Receipt:
    return Receipt(budget=limit, reserve=0, counter=counter, exact=exact, sections=sections)
