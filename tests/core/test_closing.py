"""What opening takes, closing gives back."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from core.operations import (
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
from hiermem_core.errors import ClosedError
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.samples import said
from hiermem_core.tokens.counters import ApproximateCounter

CALLS = (ON_HIERMEM, ON_TENANT, ON_MEMORY, ON_THREAD, ON_PATTERNS, ON_SESSION)
EVERY_CALL = [(place, name) for place, calls in enumerate(CALLS) for name in calls]

NOTHING_TO_DO = {
    "append": lambda tenant: tenant.thread("t1").append([]),
    "replace": lambda tenant: tenant.thread("t1").replace(None),
    "delete_turns": lambda tenant: tenant.thread("t1").delete_turns([]),
    "bulk_insert": lambda tenant: tenant.memory.bulk_insert([]),
    "bulk_get": lambda tenant: tenant.memory.bulk_get([]),
    "bulk_update": lambda tenant: tenant.memory.bulk_update([]),
    "bulk_delete": lambda tenant: tenant.memory.bulk_delete([]),
    "search": lambda tenant: tenant.memory.search("x", limit=0),
    "recall": lambda tenant: tenant.recall(""),
}


class Held:
    """A tenant whose handles were made before it was closed."""

    def __init__(self, tenant, thread):
        self.memory, self.recall = tenant.memory, tenant.recall
        self._thread = thread

    def thread(self, thread_id):
        return self._thread


class Recorder:
    """An observer of the user's own."""

    def __init__(self):
        self.events = []

    def __call__(self, event):
        self.events.append(event)


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


@pytest.fixture(params=["hybrid", "in_memory"])
def closed(request, location):
    """Give the handles of a HierMem that is closed, and their async twins."""
    hiermem = HierMem.open(location, counter=ApproximateCounter(), backend=request.param)
    tenant = hiermem.tenant("acme")
    tenant.thread("t1").append(SEED)
    twin = AsyncHierMem(hiermem)
    acme = twin.tenant("acme")
    twins = (twin, *handles_of(acme))
    handles = (hiermem, *handles_of(tenant))
    hiermem.close()
    return {"sync": handles, "async": twins}


def handles_of(tenant):
    """Return every handle of a tenant, in the order of `CALLS`."""
    return tenant, tenant.memory, tenant.thread("t1"), tenant.patterns, tenant.session("s1")


def opened_and_used(location):
    given = {"counter": ApproximateCounter(), "embedder": FakeEmbedder()}
    with HierMem.open(location, **given) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.thread("t1").append(said(["a"]))
        tenant.remember("a", key="k")
        tenant.recall("a")


def threads_left():
    """Return how many threads are alive once those that are ending have ended."""
    for thread in threading.enumerate():
        if thread.name.startswith(("hiermem", "apart")):
            thread.join(20)
    return threading.active_count()


async def opened_and_awaited(location):
    given = {"counter": ApproximateCounter(), "embedder": FakeEmbedder()}
    async with await AsyncHierMem.open(location, **given) as memory:
        await memory.tenant("acme").thread("t1").append(said(["a"]))
        await memory.tenant("acme").remember("a", key="k")
        await memory.tenant("acme").recall("a")


def test_e12_a_hundred_opens_and_closes_leave_threads_and_files_as_before(location):
    process = psutil.Process()
    opened_and_used(location)
    gc.collect()  # what other tests have left
    before = threading.active_count(), process.num_fds(), len(process.open_files())

    for _ in range(100):
        opened_and_used(location)

    after = threading.active_count(), process.num_fds(), len(process.open_files())
    assert all(now <= then for now, then in zip(after, before, strict=True)), (after, before)


def test_e12_a_hundred_awaited_opens_and_closes_leave_threads_and_files_as_before(location):
    process = psutil.Process()

    async def open_often():
        before = threads_left(), process.num_fds()
        for _ in range(100):
            await opened_and_awaited(location)
        return before, (threads_left(), process.num_fds())

    asyncio.run(opened_and_awaited(location))
    before, after = asyncio.run(open_often())

    assert after == before


def test_e12_closing_joins_the_threads_that_awaiting_started(location):
    before = set(threading.enumerate())
    hiermem = HierMem.open(location, counter=ApproximateCounter())
    asyncio.run(AsyncHierMem(hiermem).tenant("acme").thread("t1").append(said(["a"])))
    started = set(threading.enumerate()) - before

    hiermem.close()

    assert started
    assert not [thread for thread in started if thread.is_alive()]


def test_e12_a_failed_open_leaves_no_file_open(tmp_path):
    (tmp_path / "notes.db").write_text("no database " * 999)
    process = psutil.Process()
    before = process.num_fds()

    for _ in range(10):
        with pytest.raises(Exception, match="failed"):
            HierMem.open(tmp_path / "notes.db", counter=ApproximateCounter())

    assert process.num_fds() == before


@pytest.mark.parametrize(("place", "name"), EVERY_CALL)
def test_e14_a_sync_method_of_a_closed_hiermem_raises(closed, place, name):
    with pytest.raises(ClosedError):
        CALLS[place][name](closed["sync"][place])


@pytest.mark.anyio
@pytest.mark.parametrize(("place", "name"), EVERY_CALL)
async def test_e14_an_async_method_of_a_closed_hiermem_raises(closed, place, name):
    async def ask():
        answer = CALLS[place][name](closed["async"][place])
        return answer if name in IMMEDIATE else await answer

    with pytest.raises(ClosedError):
        await ask()


@pytest.mark.parametrize("call", NOTHING_TO_DO.values(), ids=NOTHING_TO_DO.keys())
def test_e14_a_call_with_nothing_to_do_raises_too(location, call):
    hiermem = HierMem.open(location, counter=ApproximateCounter())
    tenant = hiermem.tenant("acme")
    thread = tenant.thread("t1")
    hiermem.close()

    with pytest.raises(ClosedError):
        call(Held(tenant, thread))


@pytest.mark.anyio
async def test_e14_a_closed_async_mirror_raises_and_closes_the_hiermem_it_wraps(location):
    memory = await AsyncHierMem.open(location, counter=ApproximateCounter())
    thread = memory.tenant("acme").thread("t1")
    await memory.close()
    await memory.close()

    with pytest.raises(ClosedError):
        await thread.turns()
    with pytest.raises(ClosedError):
        memory.sync.tenant("acme")


def test_e14_what_the_user_gave_still_works(location):
    counter, embedder, observer = ApproximateCounter(), FakeEmbedder(), Recorder()
    given = {"counter": counter, "embedder": embedder, "observer": observer}
    hiermem = HierMem.open(location, **given)
    hiermem.tenant("acme").thread("t1").append(said(["a"]))
    hiermem.tenant("acme").remember("a")

    hiermem.close()

    assert counter.count("still counting") > 0
    assert len(embedder.embed(["still embedding"])) == 1
    observer("still told")
    assert observer.events[-1] == "still told"
    with HierMem.open(location, **given) as again:
        again.tenant("acme").thread("t1").append(said(["b"]))
        assert [turn.content for turn in again.tenant("acme").thread("t1").turns()] == ["a", "b"]


def test_closing_twice_and_from_two_threads_is_harmless(location):
    hiermem = HierMem.open(location, counter=ApproximateCounter())
    asyncio.run(AsyncHierMem(hiermem).tenant("acme").thread("t1").append(said(["a"])))

    with ThreadPoolExecutor(2) as workers:
        ends = [workers.submit(hiermem.close) for _ in range(2)]
    hiermem.close()

    assert [end.result() for end in ends] == [None, None]
