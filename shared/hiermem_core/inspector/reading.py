"""What the pages show: threads, entries and contexts of one tenant, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from hiermem_core.errors import NotFoundError
from hiermem_core.models.threads import Profile, ThreadOptions
from hiermem_core.settings import HierMemSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.models.context import Context
    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.queries import Hit
    from hiermem_core.models.threads import ThreadInfo
    from hiermem_core.models.turns import Turn
    from hiermem_core.tenant import Tenant
    from hiermem_core.thread import Thread

PAGE = 25
"""Things on a page."""

LEAST, MOST, STEP = 200, 16_000, 100
"""Of the budget slider, in tokens; a longer thread stretches it."""

_WITH_NOTES = Profile("notes", ThreadOptions(strategy="summary_buffer"))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of many.

    Attributes:
        newer: The offset of the page before; `None`: this is the first.
        older: The offset of the page after; `None`: this is the last.
    """

    items: Sequence[T]
    newer: int | None
    older: int | None


def page_of(items: Sequence[T], offset: int) -> Page[T]:
    """Return a page of what was read from an offset on, one more than fits if there is more."""
    newer = max(0, offset - PAGE) if offset else None
    return Page(items[:PAGE], newer, offset + PAGE if len(items) > PAGE else None)


def threads_page(tenant: Tenant, offset: int) -> Page[ThreadInfo]:
    """Return threads in the order of their first turn."""
    return page_of(tenant.threads(limit=PAGE + 1, offset=offset), offset)


def entries_page(tenant: Tenant, namespace: str | None, offset: int) -> Page[Hit]:
    """Return entries, newest change first."""
    found = tenant.memory.search(namespace=namespace, limit=PAGE + 1, offset=offset)
    return page_of(list(found), offset)


def turns_page(thread: Thread, before: int | None) -> tuple[Sequence[Turn], int | None]:
    """Return the turns before a seq, newest first, and where the page after them begins."""
    turns = thread.turns(before=before, last=PAGE + 1)[::-1]
    return turns[:PAGE], turns[PAGE - 1].seq if len(turns) > PAGE else None


def entry_of(tenant: Tenant, entry_id: str) -> MemoryEntry:
    """Return an entry.

    Raises:
        NotFoundError: The tenant has none of this id.
    """
    entry = tenant.memory.retrieve(entry_id)
    if entry is None:
        raise NotFoundError(f"there is no entry {entry_id!r}; it may have expired")
    return entry


def context_of(thread: Thread, question: str, budget: int) -> Context:
    """Return what a model would read of a thread for a question; writes nothing."""
    return thread.context(
        current=question or None, budget_tokens=budget, profile=profile_showing(thread)
    )


def profile_showing(thread: Thread) -> Profile | None:
    """Return how to load a thread so that its notes are in its context, where it has some.

    `None`: it has none, or a setting says how threads are loaded.

    Raises:
        ThreadNotFoundError: There is no such thread.
    """
    has_notes = thread.state().turn_count > 0
    return _WITH_NOTES if has_notes and HierMemSettings.read().strategy is None else None


def most_tokens(info: ThreadInfo) -> int:
    """Return the end of the budget slider for a thread."""
    whole = max(info.tokens.values(), default=0) * 5 // 4
    return max(MOST, whole - whole % STEP)
