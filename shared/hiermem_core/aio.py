"""The async mirror: the same names, each run on the HierMem's private thread pool.

Nothing here belongs to an event loop. Cancelling an awaiting caller releases it at once; a write
that has begun still completes.
"""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from hiermem_core.hiermem import HierMem, Updates
from hiermem_core.pool import run_apart
from hiermem_core.service.memory_service import MemoryService
from hiermem_core.service.patterns import Patterns
from hiermem_core.session import SessionLog
from hiermem_core.tenant import Tenant
from hiermem_core.thread import Thread

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine

    from hiermem_core.pool import Pool

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

_LOOK_SECONDS = 0.02


def in_thread(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return the async twin of a sync method: same arguments, same result."""

    async def twin(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        pool: Pool = self._pool
        return await pool.run(method, self.sync, *args, **kwargs)

    functools.update_wrapper(twin, method)
    return twin


def opening(
    method: Callable[P, HierMem],
) -> Callable[Concatenate[type[Any], P], Coroutine[Any, Any, AsyncHierMem]]:
    """Return the async twin of a way to open a HierMem, in a thread that ends with it."""

    async def twin(cls: type[AsyncHierMem], /, *args: P.args, **kwargs: P.kwargs) -> AsyncHierMem:
        return cls(await run_apart(functools.partial(method, *args, **kwargs)))

    functools.update_wrapper(twin, getattr(method, "__func__", method))
    return twin


class _Mirrored:
    """A public fact of the sync handle, which needs no awaiting."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, mirror: Any, owner: type) -> Any:
        return self if mirror is None else getattr(mirror.sync, self._name)


class AsyncThread:
    """`Thread`, awaited."""

    id = _Mirrored()
    tenant_id = _Mirrored()
    counter = _Mirrored()

    def __init__(self, sync: Thread, pool: Pool) -> None:
        self.sync = sync
        self._pool = pool

    append = in_thread(Thread.append)
    turns = in_thread(Thread.turns)
    count = in_thread(Thread.count)
    known = in_thread(Thread.known)
    info = in_thread(Thread.info)
    generation = in_thread(Thread.generation)
    edit_turn = in_thread(Thread.edit_turn)
    delete_turns = in_thread(Thread.delete_turns)
    replace = in_thread(Thread.replace)
    prune = in_thread(Thread.prune)
    state = in_thread(Thread.state)
    save_context = in_thread(Thread.save_context)
    learn = in_thread(Thread.learn)
    reset = in_thread(Thread.reset)
    delete = in_thread(Thread.delete)
    context = in_thread(Thread.context)
    recall = in_thread(Thread.recall)


class AsyncMemoryService:
    """`MemoryService`, awaited."""

    tenant_id = _Mirrored()

    def __init__(self, sync: MemoryService, pool: Pool) -> None:
        self.sync = sync
        self._pool = pool

    embedder = _Mirrored()
    store = in_thread(MemoryService.store)
    write = in_thread(MemoryService.write)
    retrieve = in_thread(MemoryService.retrieve)
    update = in_thread(MemoryService.update)
    delete = in_thread(MemoryService.delete)
    search = in_thread(MemoryService.search)
    search_semantic = in_thread(MemoryService.search_semantic)
    list_namespaces = in_thread(MemoryService.list_namespaces)
    clear_namespace = in_thread(MemoryService.clear_namespace)
    bulk_insert = in_thread(MemoryService.bulk_insert)
    bulk_get = in_thread(MemoryService.bulk_get)
    bulk_update = in_thread(MemoryService.bulk_update)
    bulk_delete = in_thread(MemoryService.bulk_delete)
    purge_expired = in_thread(MemoryService.purge_expired)
    forget = in_thread(MemoryService.forget)
    generation = in_thread(MemoryService.generation)
    wait_for_index = in_thread(MemoryService.wait_for_index)
    health = in_thread(MemoryService.health)
    stats = in_thread(MemoryService.stats)


class AsyncPatterns:
    """`Patterns`, awaited."""

    def __init__(self, sync: Patterns, pool: Pool) -> None:
        self.sync = sync
        self._pool = pool

    learn = in_thread(Patterns.learn)
    get = in_thread(Patterns.get)
    list = in_thread(Patterns.list)
    delete = in_thread(Patterns.delete)
    find = in_thread(Patterns.find)
    reinforce = in_thread(Patterns.reinforce)


class AsyncSessionLog:
    """`SessionLog`, awaited."""

    id = _Mirrored()
    tenant_id = _Mirrored()

    def __init__(self, sync: SessionLog, pool: Pool) -> None:
        self.sync = sync
        self._pool = pool

    start = in_thread(SessionLog.start)
    end = in_thread(SessionLog.end)
    delete = in_thread(SessionLog.delete)
    log = in_thread(SessionLog.log)
    log_calls = in_thread(SessionLog.log_calls)
    steps = in_thread(SessionLog.steps)
    get = in_thread(SessionLog.get)


class AsyncTenant:
    """`Tenant`, awaited; `thread` and `session` are immediate."""

    name = _Mirrored()
    actor = _Mirrored()
    location = _Mirrored()
    counter = _Mirrored()

    def __init__(self, sync: Tenant, pool: Pool) -> None:
        self.sync = sync
        self._pool = pool

    @property
    def memory(self) -> AsyncMemoryService:
        """The long-term entries."""
        return AsyncMemoryService(self.sync.memory, self._pool)

    @property
    def patterns(self) -> AsyncPatterns:
        """The ways of doing things that were learnt."""
        return AsyncPatterns(self.sync.patterns, self._pool)

    def session(self, session_id: str) -> AsyncSessionLog:
        """Return the handle of a session."""
        return AsyncSessionLog(self.sync.session(session_id), self._pool)

    sessions = in_thread(Tenant.sessions)

    def thread(self, thread_id: str) -> AsyncThread:
        """Return the handle of a thread."""
        return AsyncThread(self.sync.thread(thread_id), self._pool)

    generation = in_thread(Tenant.generation)
    threads = in_thread(Tenant.threads)
    stats = in_thread(Tenant.stats)
    audit = in_thread(Tenant.audit)
    remember = in_thread(Tenant.remember)
    recall = in_thread(Tenant.recall)
    forget = in_thread(Tenant.forget)
    export = in_thread(Tenant.export)
    import_export = in_thread(Tenant.import_export)


class AsyncUpdates:
    """`Updates`, awaited."""

    def __init__(self, sync: Updates, pool: Pool) -> None:
        self.sync = sync
        self._pool = pool

    resume = in_thread(Updates.resume)


class AsyncHierMem:
    """`HierMem`, awaited; `tenant` is immediate. May wrap a HierMem that is used directly too."""

    location = _Mirrored()
    counter = _Mirrored()
    is_closed = _Mirrored()

    def __init__(self, sync: HierMem) -> None:
        self.sync = sync
        self._pool = sync.pool

    open = classmethod(opening(HierMem.open))

    @classmethod
    def opened(cls, location: str | os.PathLike[str]) -> AsyncHierMem | None:
        """Return the HierMem this process already holds open at a location, if there is one."""
        sync = HierMem.opened(location)
        return None if sync is None else cls(sync)

    def tenant(self, name: str, *, actor: str | None = None) -> AsyncTenant:
        """Return the handle of a tenant."""
        return AsyncTenant(self.sync.tenant(name, actor=actor), self._pool)

    @property
    def updates(self) -> AsyncUpdates:
        """The updates of notes."""
        return AsyncUpdates(self.sync.updates, self._pool)

    async def when_idle(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as the sync one
        """Do `HierMem.when_idle`, by looking now and then, so that it holds no thread."""
        ends = None if timeout is None else time.monotonic() + timeout
        while not await self._pool.run(self.sync.when_idle, 0):
            if self.sync.is_closed or (ends is not None and time.monotonic() >= ends):
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True

    health = in_thread(HierMem.health)
    doctor = in_thread(HierMem.doctor)
    reindex = in_thread(HierMem.reindex)
    backup = in_thread(HierMem.backup)

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as the sync one
        """Join the pool's threads and close the files. Idempotent."""
        await run_apart(lambda: self.sync.close(timeout))

    async def __aenter__(self) -> Self:
        """Return itself; the block's end closes it."""
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Close."""
        await self.close()
