"""Working memory awaited: the twins of a service, running loops, contexts."""

from __future__ import annotations

import asyncio
import contextvars

import pytest
from blockbuster import BlockBuster
from core.awaiting import within_watch
from core.working.services import loads, opened

from hiermem_core import AsyncHierMem, WorkingMemory, create_working_memory
from hiermem_core.testing import FakeEmbedder

CALLER = contextvars.ContextVar("CALLER", default="nobody")


class Telling(FakeEmbedder):
    """An embedder that notes whose call it is part of."""

    def __init__(self):
        super().__init__()
        self.callers = set()

    def embed(self, texts):
        self.callers.add(CALLER.get())
        return super().embed(texts)


@pytest.mark.anyio
async def test_the_async_twins_share_answers_with_the_sync_side(hiermem, service, events):
    twin = AsyncHierMem(hiermem).tenant("acme")
    memory = WorkingMemory(twin.memory)

    awaited = await asyncio.gather(*(memory.asearch("plum") for _ in range(20)))
    called = memory.search("plum")

    assert awaited == [called] * 20
    assert loads(events) == 1
    assert (memory.stats().misses, memory.stats().joined + memory.stats().hits) == (1, 20)


@pytest.mark.anyio
async def test_async_lookalikes_are_awaited(hiermem, service, events):
    twin = AsyncHierMem(hiermem).tenant("acme")
    memory, tenant = create_working_memory(twin.memory), create_working_memory(twin)

    found = await memory.search("plum"), await memory.search("plum")
    recalled = await tenant.recall("plum", threads=None), await tenant.recall("plum", threads=None)
    await memory.store("plum cake")

    assert found[0] == found[1]
    assert recalled[0] == recalled[1]
    assert loads(events) == 2
    assert len(await memory.search("plum")) == len(await tenant.recall("plum", threads=None)) == 6


async def every_coroutine(hiermem):
    """Await every coroutine of Layer 1, in front of each kind of searcher."""
    twin = AsyncHierMem(hiermem).tenant("acme")
    ended = []
    for searcher in (hiermem.tenant("acme").memory, twin.memory, lambda q: [q], twin):
        memory = WorkingMemory(searcher)
        given_fields = {"threads": None} if searcher is twin else {}
        ended += [await memory.asearch("plum", **given_fields) for _ in range(2)]
        ended.append(await memory.asearch_with_source("plum", **given_fields))
        ended.append(await memory.aget("plum", **given_fields))
        await memory.apin("plum", **given_fields)
        ended.append(memory.unpin("plum", **given_fields))
        ended += await asyncio.gather(*(memory.asearch("tea", **given_fields) for _ in range(20)))
        memory.invalidate("plum")
        memory.clear()
    cached = create_working_memory(twin.memory, auto_populate=True)
    await cached.store("plum pie", id="pie")
    ended.append(await cached.search("plum"))
    return ended


@pytest.mark.parametrize("backend", ["sqlite", "hybrid"], indirect=True)
def test_e4_no_coroutine_blocks_its_loop_in_two_loops_and_in_two_threads(hiermem, service):
    async def both():
        other = asyncio.to_thread(lambda: asyncio.run(every_coroutine(hiermem)))
        return await asyncio.gather(every_coroutine(hiermem), other)

    def in_two_threads():
        asyncio.run(every_coroutine(hiermem))
        return asyncio.run(both())

    blockbuster = BlockBuster()
    blockbuster.activate()
    try:
        here, there = within_watch(in_two_threads)
    finally:
        blockbuster.deactivate()

    assert len(here) == len(there) == 4 * 25 + 1


def test_e5_sync_searches_return_inside_a_running_loop(service):
    async def call():
        memory = WorkingMemory(service)
        waiting = asyncio.ensure_future(memory.asearch("plum"))
        await asyncio.sleep(0)
        return memory.search("plum"), await waiting

    called, awaited = within_watch(lambda: asyncio.run(call()))

    assert called == awaited


@pytest.mark.parametrize("twin", [False, True])
def test_e16_embedder_and_observer_see_the_context_of_the_awaiting_caller(location, twin):
    embedder, told_for = Telling(), set()
    with opened(location, embedder=embedder) as hiermem:
        searcher = hiermem.tenant("acme").memory
        searcher.store("plum")
        embedder.callers.clear()
        if twin:
            searcher = AsyncHierMem(hiermem).tenant("acme").memory
        memory = WorkingMemory(searcher, observer=lambda event: told_for.add(CALLER.get()))

        async def call_as(name):
            CALLER.set(name)
            await memory.asearch(f"plum of {name}")

        async def all_callers():
            await asyncio.gather(*(call_as(f"caller {n}") for n in range(12)))

        asyncio.run(all_callers())

    assert embedder.callers == told_for == {f"caller {n}" for n in range(12)}


@pytest.mark.anyio
async def test_e16_what_a_searcher_sets_stays_in_its_own_call():
    async def search(query):
        CALLER.set("the searcher")
        return [query]

    CALLER.set("the caller")
    await WorkingMemory(search).asearch("tea")

    assert CALLER.get() == "the caller"
