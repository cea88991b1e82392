"""What is cancelled while it is awaited is whole, or absent."""

from __future__ import annotations

import asyncio
import threading

import pytest
from core.awaiting import opened

from hiermem_core import AsyncHierMem
from hiermem_core.pool import POOL_THREADS
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.samples import said
from hiermem_core.tokens.counters import ApproximateCounter


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


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


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
