"""The two ways a memory buffer builds its context: `ChatMemoryBuffer`'s, and the core's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core import Context, ContextWarning, Receipt, Section, Thread, ThreadNotFoundError
from llamaindex_hiermem.window import choose_window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core import Turn

_PAGE = 64


def core_context(thread: Thread, *, limit: int, initial: int) -> Context:
    """Return the core's context within `limit`, of which the caller sends `initial` itself.

    Raises:
        BudgetExceededError: What must be kept does not fit.
    """
    try:
        return thread.context(budget_tokens=limit, prefix_tokens=initial)
    except ThreadNotFoundError:
        return Context((), (), _receipt(limit, "", Section("prefix", initial)))


def compat_context(
    thread: Thread, *, limit: int, initial: int, count: Callable[[str], int]
) -> Context:
    """Return the window of `ChatMemoryBuffer`, by `count` of the joined text.

    Raises:
        ValueError: `initial` alone exceeds the limit.
    """
    if initial > limit:
        raise ValueError("Initial token count exceeds token limit")
    window = choose_window(newest_first(thread), limit - initial, count)
    ids = tuple(str(turn.id) for turn in window.turns)
    prefix, kept = Section("prefix", initial), Section("window", window.tokens, ids)
    receipt = _receipt(limit, "tokenizer_fn", prefix, kept)
    facts = {"needed": receipt.total, "available": limit}
    over_budget = ContextWarning("over_budget", len(ids), window.tokens, ids, facts)
    return Context(window.turns, (over_budget,) if window.over_budget else (), receipt)


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


def _receipt(limit: int, counter: str, *sections: Section) -> Receipt:
    return Receipt(budget=limit, reserve=0, counter=counter, exact=True, sections=sections)
