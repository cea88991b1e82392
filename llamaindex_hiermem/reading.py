"""Reading a thread that may not be there yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core import ThreadNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core import Tenant, Thread, ThreadInfo, Turn

PAGE = 96


def all_turns(thread: Thread) -> Sequence[Turn]:
    """Return the active turns of a thread; a thread that does not exist has none."""
    try:
        return thread.turns()
    except ThreadNotFoundError:
        return []


def newest_first(thread: Thread, *, page: int = PAGE) -> Iterator[Turn]:
    """Yield the turns of a thread, newest first, read in pages as they are asked for."""
    before: int | None = None
    while True:
        try:
            turns = thread.turns(last=page, before=before)
        except ThreadNotFoundError:
            return
        yield from reversed(turns)
        if len(turns) < page:
            return
        before, page = turns[0].seq, PAGE


def threads_of(tenant: Tenant) -> Iterator[ThreadInfo]:
    """Yield the threads of a tenant in the order of their first turn, read in pages."""
    offset, page = 0, tenant.threads()
    while page:
        yield from page
        offset += len(page)
        page = tenant.threads(offset=offset)
