"""The async mirror: the same names, run on a private thread pool.

Each method awaits the sync one in a thread of its own, with the caller's context variables. Nothing
here belongs to an event loop. Cancelling an awaiting caller releases it at once; a write that has
begun still completes.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from hiermem_core.errors import ClosedError
from hiermem_core.hiermem import HierMem, Tenant, Thread

if TYPE_CHECKING:
    import os

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

POOL_THREADS = 8


class _Mirror(Protocol):
    sync: Any
    pool: Pool


class Pool:
    """A bounded pool of threads, made at the first call and gone after `close`."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(POOL_THREADS, thread_name_prefix="hiermem")
        self._closed = False

    async def run(self, function: Callable[[], R]) -> R:
        """Run `function` in the pool with the caller's context variables."""
        if self._closed:
            raise ClosedError
        call = functools.partial(contextvars.copy_context().run, function)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """Let running calls end and join the threads."""
        self._closed = True
        self._executor.shutdown(wait=True)


def in_thread(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return the async twin of a sync method: same arguments, same result."""

    @functools.wraps(method)
    async def twin(self: _Mirror, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.pool.run(lambda: method(self.sync, *args, **kwargs))

    return twin


class AsyncThread:
    """`Thread`, awaited."""

    def __init__(self, sync: Thread, pool: Pool) -> None:
        self.sync = sync
        self.pool = pool

    append = in_thread(Thread.append)
    turns = in_thread(Thread.turns)
    info = in_thread(Thread.info)
    edit_turn = in_thread(Thread.edit_turn)
    delete_turns = in_thread(Thread.delete_turns)
    replace = in_thread(Thread.replace)
    prune = in_thread(Thread.prune)
    delete = in_thread(Thread.delete)
    context = in_thread(Thread.context)


class AsyncTenant:
    """`Tenant`, awaited; `thread` is immediate."""

    def __init__(self, sync: Tenant, pool: Pool) -> None:
        self.sync = sync
        self.pool = pool

    def thread(self, thread_id: str) -> AsyncThread:
        """Return the handle of a thread."""
        return AsyncThread(self.sync.thread(thread_id), self.pool)

    threads = in_thread(Tenant.threads)
    stats = in_thread(Tenant.stats)


class AsyncHierMem:
    """`HierMem`, awaited; `tenant` is immediate."""

    def __init__(self, sync: HierMem) -> None:
        self.sync = sync
        self.pool = Pool()

    @classmethod
    async def open(cls, location: str | os.PathLike[str] | None = None, **options: Any) -> Self:
        """Open a location; see `HierMem.open`."""
        pool = Pool()
        try:
            return cls(await pool.run(lambda: HierMem.open(location, **options)))
        finally:
            await _elsewhere(pool.close)

    def tenant(self, name: str) -> AsyncTenant:
        """Return the handle of a tenant."""
        return AsyncTenant(self.sync.tenant(name), self.pool)

    health = in_thread(HierMem.health)

    async def close(self) -> None:
        """Close the files and join the pool's threads. Idempotent."""
        await _elsewhere(self._close)

    async def __aenter__(self) -> Self:
        """Return itself; the block's end closes it."""
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Close."""
        await self.close()

    def _close(self) -> None:
        self.pool.close()
        self.sync.close()


async def _elsewhere(function: Callable[[], None]) -> None:
    """Run `function` in a thread of its own, which ends with it."""
    executor = ThreadPoolExecutor(1)
    try:
        await asyncio.get_running_loop().run_in_executor(executor, function)
    finally:
        executor.shutdown(wait=False)
