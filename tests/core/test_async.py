"""The async mirror belongs to no loop, blocks none, and ends what it began."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest
from blockbuster import BlockBuster
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

from hiermem_core import AsyncHierMem, HierMem
from hiermem_core.errors import ConflictError
from hiermem_core.pool import POOL_THREADS
from hiermem_core.testing import FakeClock, FakeEmbedder
from hiermem_core.testing.contracts.samples import said
from hiermem_core.tokens.counters import ApproximateCounter

WATCHDOG_SECONDS = 60
CALLER = contextvars.ContextVar("CALLER", default="nobody")


class GatedCounter(ApproximateCounter):
    """A counter that waits in one text until it is let go."""

    def __init__(self):
        super().__init__()
        self.reached = threading.Semaphore(0)
        self.go = threading.Event()

    def count_turn(self, turn):
        if turn.content == "wait":
            self.reached.release()
            self.go.wait()
        return super().count_turn(turn)


class Listening(ApproximateCounter):
    """A counter, an embedder and an observer that note whose call they are part of."""

    model_id = "listening"
    dimensions = 32

    def __init__(self):
        super().__init__()
        self.counted_for = set()
        self.embedded_for = set()
        self.told_for = set()

    def embed(self, texts):
        self.embedded_for.add(CALLER.get())
        return FakeEmbedder().embed(texts)

    def count_turn(self, turn):
        self.counted_for.add(CALLER.get())
        return super().count_turn(turn)

    def observe(self, event):
        self.told_for.add(CALLER.get())


def within_watch(work):
    """Run `work` in a thread and return what it returned; fail if it does not end."""
    outcome = []

    def run():
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WATCHDOG_SECONDS)
    assert not thread.is_alive(), "a deadlock"
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


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


def opened(location, **options):
    given = {"counter": ApproximateCounter(), "clock": FakeClock(), "embedder": FakeEmbedder()}
    options = given | options
    return HierMem.open(location, **options)


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


@pytest.mark.anyio
async def test_e6_a_cancelled_append_that_has_begun_is_stored_whole(location):
    counter = GatedCounter()
    with opened(location, counter=counter) as hiermem:
        thread = AsyncHierMem(hiermem).tenant("acme").thread("t1")
        batch = said(["one", "wait", "three"])
        appending = asyncio.ensure_future(thread.append(batch))
        await asyncio.to_thread(counter.reached.acquire)

        appending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(appending, 10)
        was_held = not counter.go.is_set()
        counter.go.set()
        hiermem.pool.close()

        assert was_held
        assert [turn.content for turn in hiermem.tenant("acme").thread("t1").turns()] == [
            "one",
            "wait",
            "three",
        ]


@pytest.mark.anyio
async def test_e6_a_cancelled_append_that_still_waits_its_turn_is_absent_or_whole(location):
    counter = GatedCounter()
    with opened(location, counter=counter) as hiermem:
        tenant = AsyncHierMem(hiermem).tenant("acme")
        blocked = [
            asyncio.ensure_future(tenant.thread("t0").append(said(["wait"])))
            for _ in range(POOL_THREADS)
        ]
        for _ in blocked:
            await asyncio.to_thread(counter.reached.acquire)
        queued = asyncio.ensure_future(tenant.thread("t1").append(said(["a", "b"])))
        await asyncio.sleep(0)

        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        counter.go.set()
        await asyncio.gather(*blocked)
        hiermem.pool.close()

        names = [info.thread_id for info in hiermem.tenant("acme").threads()]
        assert names == ["t0"] or len(hiermem.tenant("acme").thread("t1").turns()) == 2


@pytest.mark.anyio
async def test_e6_appends_cancelled_at_any_moment_are_whole_or_absent(location):
    with opened(location) as hiermem:
        thread = AsyncHierMem(hiermem).tenant("acme").thread("t1")
        for number in range(60):
            batch = said(f"{number}.{place}" for place in range(3))
            appending = asyncio.ensure_future(thread.append(batch))
            for _ in range(number % 6):
                await asyncio.sleep(0)
            appending.cancel()
            await asyncio.gather(appending, return_exceptions=True)
        await thread.append(said(["last.0", "last.1", "last.2"]))
        hiermem.pool.close()

        turns = hiermem.tenant("acme").thread("t1").turns()
        places = [turn.content.split(".")[1] for turn in turns]
        assert places == ["0", "1", "2"] * (len(turns) // 3)
        assert [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
        assert len({turn.content for turn in turns}) == len(turns)


@pytest.mark.anyio
async def test_e6_a_cancelled_store_that_has_begun_is_kept_whole(location):
    embedder = FakeEmbedder(gate=threading.Event())
    with opened(location, embedder=embedder) as hiermem:
        memory = AsyncHierMem(hiermem).tenant("acme").memory
        storing = asyncio.ensure_future(memory.store("likes tea", id="e1", tags=["hot"]))
        await asyncio.to_thread(embedder.waiting.wait)

        storing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(storing, 10)
        was_held = not embedder.gate.is_set()
        embedder.gate.set()
        hiermem.pool.close()

        entry = hiermem.tenant("acme").memory.retrieve("e1", include_embedding=True)
        assert was_held
        assert (entry.content, entry.tags) == ("likes tea", ("hot",))
        assert entry.embedding == pytest.approx(embedder.embed(["likes tea"])[0], abs=1e-6)


@pytest.mark.anyio
@pytest.mark.parametrize("backend", ["in_memory", "sqlite", "hybrid"])
async def test_e6_stores_cancelled_at_any_moment_are_whole_or_absent_and_all_parts_agree(
    location, backend
):
    with opened(location, backend=backend) as hiermem:
        memory = AsyncHierMem(hiermem).tenant("acme").memory
        for number in range(60):
            storing = asyncio.ensure_future(
                memory.store(f"number {number}", id=f"e{number}", key=f"k{number}", tags=["a"])
            )
            for _ in range(number % 6):
                await asyncio.sleep(0)
            storing.cancel()
            await asyncio.gather(storing, return_exceptions=True)
        await memory.store("number 99", id="e99", key="k99", tags=["a"])
        hiermem.pool.close()

        kept = hiermem.tenant("acme").memory
        entries = kept.search(limit=100)
        assert len(entries) >= 1
        for entry in entries:
            number = entry.id[1:]
            assert (entry.content, entry.key, entry.tags) == (
                f"number {number}",
                f"k{number}",
                ("a",),
            )
        assert hiermem.doctor().is_sound
        assert {hit.id for hit in kept.search("number", limit=100)} == {e.id for e in entries}


@pytest.mark.anyio
async def test_e16_counter_embedder_and_observer_see_the_context_of_the_awaiting_caller(location):
    listening = Listening()
    given = {"counter": listening, "embedder": listening, "observer": listening.observe}
    with opened(location, **given) as hiermem:
        tenant = AsyncHierMem(hiermem).tenant("acme")

        async def call_as(name):
            CALLER.set(name)
            thread = tenant.thread(name)
            await thread.append(said(["a"]))
            (turn,) = await thread.turns()
            await thread.edit_turn(turn.id, "b")
            await thread.context(current="c", budget_tokens=100)
            await tenant.remember(f"{name} likes tea")
            await tenant.recall("tea")

        await asyncio.gather(*(call_as(f"caller {n}") for n in range(12)))

    assert listening.counted_for == {f"caller {n}" for n in range(12)}
    assert listening.embedded_for == {f"caller {n}" for n in range(12)}
    assert listening.told_for == {f"caller {n}" for n in range(12)}


@pytest.mark.anyio
async def test_e16_what_a_counter_sets_stays_in_its_own_call(location):
    class Setting(ApproximateCounter):
        def count_turn(self, turn):
            CALLER.set("the counter")
            return super().count_turn(turn)

    CALLER.set("the caller")
    with opened(location, counter=Setting()) as hiermem:
        await AsyncHierMem(hiermem).tenant("acme").thread("t1").append(said(["a"]))

    assert CALLER.get() == "the caller"
