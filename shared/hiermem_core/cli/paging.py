"""Reading everything there is, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core import Tenant, Thread, ThreadInfo, Turn
    from hiermem_core.service.memory_service import MemoryService

PAGE = 500


def all_threads(tenant: Tenant) -> Iterator[ThreadInfo]:
    """Yield every thread of a tenant, in the order of their first turn."""
    offset = 0
    while page := tenant.threads(limit=PAGE, offset=offset):
        yield from page
        offset += len(page)


def all_namespaces(memory: MemoryService, under: str | None) -> Iterator[str]:
    """Yield every namespace at or below one that holds an entry, sorted."""
    offset = 0
    while page := memory.list_namespaces(under, limit=PAGE, offset=offset):
        yield from page
        offset += len(page)


def turns_of(thread: Thread, *, last: int | None, archived: bool) -> Iterator[Turn]:
    """Yield the turns of a thread in order: all, or the newest `last`.

    Raises:
        ThreadNotFoundError: The tenant has no such thread.
    """
    status: Literal["archived", "active"] = "archived" if archived else "active"
    if last is not None:
        yield from thread.turns(last=last, status=status)
        return
    for after in range(0, thread.info().last_seq, PAGE):
        yield from thread.turns(after=after, before=after + PAGE + 1, status=status)
