"""The async mirror belongs to no loop, and blocks none."""

from __future__ import annotations

import asyncio
import threading

import pytest
from blockbuster import BlockBuster
from core.awaiting import opened, within_watch
from core.operations import (
    ENTRIES,
    IMMEDIATE,
    ON_HIERMEM,
    ON_MEMORY,
    ON_PATTERNS,
    ON_SESSION,
    ON_TENANT,
    ON_THREAD,
    SEED,
)

from hiermem_core import AsyncHierMem
from hiermem_core.errors import ConflictError
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.samples import said
from hiermem_core.tokens.counters import ApproximateCounter


def handles_of(memory, name):
    """Return a handle of every kind, on a tenant of one's own, with what is called on it."""
    tenant = memory.tenant(name)
    return (
        (memory, ON_HIERMEM),
        (tenant, ON_TENANT),
        (tenant.memory, ON_MEMORY),
        (tenant.thread("t1"), ON_THREAD),
        (tenant.patterns, ON_PATTERNS),
        (tenant.session("s1"), ON_SESSION),
    )


async def run_every_coroutine(memory, name):
    """Await every method of every async handle, on a tenant of one's own."""
    tenant = memory.tenant(name)
    await tenant.thread("t1").append(SEED)
    await tenant.memory.bulk_insert(ENTRIES)
    return [
        await unless_busy(call, handle)
        for handle, calls in handles_of(memory, name)
        for key, call in calls.items()
        if key not in IMMEDIATE
    ]


async def unless_busy(call, handle):
    """Await a call; return the error where another one of its kind has to end first."""
    try:
        return await call(handle)
    except ConflictError as busy:
        return busy


def called_sync(hiermem, name):
    """Call what `run_every_coroutine` awaits."""
    tenant = hiermem.tenant(name)
    tenant.thread("t1").append(SEED)
    tenant.memory.bulk_insert(ENTRIES)
    return [
        call(handle)
        for handle, calls in handles_of(hiermem, name)
        for key, call in calls.items()
        if key not in IMMEDIATE
    ]


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


def test_e4_no_coroutine_blocks_its_loop_in_two_loops_and_in_two_threads(location):
    memory = AsyncHierMem(opened(location))
    meet = threading.Barrier(2)

    def run(name):
        meet.wait()
        for turn in range(2):
            asyncio.run(run_every_coroutine(memory, f"{name}{turn}"))
        return "done"

    def run_here_and_there():
        ends = []
        other = threading.Thread(target=lambda: ends.append(run("there")))
        other.start()
        ends.append(run("here"))
        other.join()
        return ends

    blockbuster = BlockBuster()
    blockbuster.activate()
    try:
        ended = within_watch(run_here_and_there)
    finally:
        blockbuster.deactivate()
        memory.sync.close()

    assert ended == ["done", "done"]


def test_e4_opening_and_closing_block_no_loop(location):
    async def open_and_close():
        options = {"counter": ApproximateCounter(), "embedder": FakeEmbedder()}
        memory = await AsyncHierMem.open(location, **options)
        results = await run_every_coroutine(memory, "acme")
        await memory.close()
        async with await AsyncHierMem.open(location, **options) as again:
            return results, await again.health()

    blockbuster = BlockBuster()
    blockbuster.activate()
    try:
        results, health = within_watch(lambda: asyncio.run(open_and_close()))
    finally:
        blockbuster.deactivate()

    assert len(results) > 30
    assert health.status == "healthy"


def test_e4_the_detector_finds_a_blocking_call_here(location):
    async def block():
        opened(location).close()

    blockbuster = BlockBuster()
    blockbuster.activate()
    try:
        with pytest.raises(Exception, match="Blocking call"):
            asyncio.run(block())
    finally:
        blockbuster.deactivate()


def test_e4_many_more_calls_than_threads_all_end(location):
    async def append_all(memory):
        thread = memory.tenant("acme").thread("t1")
        await asyncio.gather(*(thread.append(said([f"{n}"])) for n in range(100)))
        return await thread.turns()

    with opened(location) as hiermem:
        turns = within_watch(lambda: asyncio.run(append_all(AsyncHierMem(hiermem))))

    assert [turn.seq for turn in turns] == list(range(1, 101))


def test_e5_sync_methods_return_inside_a_running_loop(location):
    async def call_all():
        with opened(location) as hiermem:
            return called_sync(hiermem, "acme")

    results = within_watch(lambda: asyncio.run(call_all()))

    assert len(results) > 30


def test_e5_sync_and_awaited_calls_mix_on_one_hiermem(location):
    async def mix():
        with opened(location) as hiermem:
            thread = hiermem.tenant("acme").thread("t1")
            twin = AsyncHierMem(hiermem).tenant("acme").thread("t1")
            for n in range(10):
                waiting = asyncio.ensure_future(twin.append(said([f"awaited {n}"])))
                await asyncio.to_thread(thread.append, said([f"threaded {n}"]))
                thread.append(said([f"called {n}"]))
                await waiting
            return thread.turns()

    turns = within_watch(lambda: asyncio.run(mix()))

    assert [turn.seq for turn in turns] == list(range(1, 31))
