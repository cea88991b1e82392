"""Working memory in front of a memory service, a tenant, and their async twins."""

from __future__ import annotations

import asyncio
import contextvars
from functools import partial

import pytest
from blockbuster import BlockBuster
from core import children
from core.test_async import within_watch
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import (
    ApproximateCounter,
    AsyncHierMem,
    HierMem,
    MemoryQuery,
    MemoryService,
    WorkingMemory,
    create_working_memory,
)
from hiermem_core.models.events import RecallServed, SearchServed
from hiermem_core.testing import FakeClock, FakeEmbedder
from hiermem_core.testing.contracts.samples import said

CALLER = contextvars.ContextVar("CALLER", default="nobody")
BACKENDS = ["in_memory", "sqlite", "hybrid"]


class Telling(FakeEmbedder):
    """An embedder that notes whose call it is part of."""

    def __init__(self):
        super().__init__()
        self.callers = set()

    def embed(self, texts):
        self.callers.add(CALLER.get())
        return super().embed(texts)


def opened(location, **options):
    given = {"counter": ApproximateCounter(), "embedder": FakeEmbedder(), "clock": FakeClock()}
    return HierMem.open(location, **given | options)


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


@pytest.fixture
def events():
    return []


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def hiermem(location, backend, events, clock):
    with opened(location, backend=backend, observer=events.append, clock=clock) as hiermem:
        yield hiermem


@pytest.fixture
def service(hiermem):
    service = hiermem.tenant("acme").memory
    service.bulk_insert(
        {"id": f"e{n}", "content": f"plum tea {n}", "metadata": {"n": [n]}} for n in range(5)
    )
    return service


def loads(events):
    """Count the searches that reached the service."""
    return sum(isinstance(event, SearchServed) for event in events)


def test_d1_a_hit_equals_what_the_service_answers(service, events):
    memory = WorkingMemory(service)
    calls = [
        (("plum",), {}),
        (("plum",), {"limit": 2, "explain": True}),
        (("tea",), {"include_embedding": True}),
        ((), {}),
        ((MemoryQuery(text="plum", limit=3),), {}),
        (("plum",), {"filter": {"n": [3]}}),
    ]

    for args, given_fields in calls:
        plain = service.search(*args, **given_fields)
        answers = [memory.search(*args, **given_fields) for _ in range(3)]
        for answer in answers:
            assert answer == plain
            assert type(answer) is type(plain)
            assert list(map(type, answer)) == list(map(type, plain))
            assert repr(answer) == repr(plain)

    assert memory.stats().misses == len(calls)
    assert loads(events) == 2 * len(calls)


def test_d10_the_defaults_of_a_query_are_those_of_the_service(service, events):
    memory = WorkingMemory(service)

    memory.search("plum")
    memory.search("plum", limit=10)
    memory.search("plum", offset=0, explain=False, tags=())
    memory.search(MemoryQuery(text="plum"))
    memory.search(MemoryQuery(text="plum", limit=10), subtree=True)
    alike = loads(events)
    memory.search("plum", limit=5)

    assert (alike, loads(events)) == (1, 2)


def test_d11_keyword_search_declares_that_case_and_outer_spaces_are_ignored(service, events):
    memory = WorkingMemory(service)

    same = memory.search("Plum", mode="keyword") == memory.search(" plum ", mode="keyword")
    of_words = loads(events)
    memory.search("Plum", mode="prefix")
    memory.search(" plum ", mode="prefix")

    assert same
    assert (of_words, loads(events)) == (1, 3)
    assert memory.invalidate(" PLUM ") == 1


@given(text=st.text("aBZ İßé \t?.", max_size=12))
def test_d11_what_keyword_search_ignores_changes_no_answer(text):
    with opened(":memory:", backend="sqlite") as hiermem:
        service = hiermem.tenant("acme").memory
        service.bulk_insert(["a b", "AB İ", "ß z", "ss é", "i̇", "straße"])
        memory = WorkingMemory(service)
        memory.search(text.swapcase(), mode="keyword")

        assert memory.search(text, mode="keyword") == service.search(text, mode="keyword")


def test_d13_tenants_share_no_answer(hiermem, service, events):
    ours, theirs = WorkingMemory(service), WorkingMemory(hiermem.tenant("other").memory)

    found = ours.search("plum"), theirs.search("plum")

    assert list(map(len, found)) == [5, 0]
    assert loads(events) == 2


WRITES = {
    "store": lambda s: s.store("plum cake"),
    "store again": lambda s: s.store("plum pie", id="e1"),
    "update": lambda s: s.update("e1", content="plum pie"),
    "delete": lambda s: s.delete("e1"),
    "bulk_insert": lambda s: s.bulk_insert(["plum cake"]),
    "bulk_update": lambda s: s.bulk_update([("e1", {"tags": ["t"]})]),
    "bulk_delete": lambda s: s.bulk_delete(["e1"]),
    "clear_namespace": lambda s: s.clear_namespace("default"),
    "forget": lambda s: s.forget(ids=["e1"]),
}


@pytest.mark.parametrize("write", WRITES)
def test_d17_after_any_write_of_the_service_the_next_search_loads(service, write):
    memory = WorkingMemory(service)
    memory.search("plum")

    WRITES[write](service)
    served = memory.search_with_source("plum")

    assert served.source == "backend"
    assert served.result == service.search("plum")
    assert memory.search_with_source("plum").source == "cache"


def test_d17_after_a_purge_the_next_search_loads(service, clock):
    memory = WorkingMemory(service)
    service.store("plum pie", ttl=60)
    memory.search("plum")
    clock.advance(60)

    service.purge_expired()

    assert memory.search_with_source("plum").source == "backend"


def test_d17_an_entry_that_expires_takes_the_answers_that_hold_it_along(service, clock):
    memory = WorkingMemory(service, clock=clock, ttl_seconds=1000)
    service.store("plum pie", id="pie", ttl=60)
    memory.pin("plum")
    before = memory.search("plum"), memory.search("tea")
    clock.advance(59.9)
    kept = memory.search_with_source("plum").source
    clock.advance(0.1)

    after = memory.search_with_source("plum")

    assert "pie" in {hit.id for hit in before[0]}
    assert kept == "cache"
    assert after.source == "backend"
    assert after.result == service.search("plum")


@pytest.mark.parametrize("backend", ["sqlite", "hybrid"], indirect=True)
def test_d17_after_a_write_of_another_process_the_next_search_loads(service, location):
    memory = WorkingMemory(service)
    memory.search("plum")
    hit = memory.search_with_source("plum").source

    children.run(WRITING, location)

    assert hit == "cache"
    assert memory.search("plum")[0].content.startswith("plum")
    assert {one.content for one in memory.search("plum")} >= {"plum of another process"}


WRITING = """
from hiermem_core import HierMem, ApproximateCounter
from hiermem_core.testing import FakeEmbedder

with HierMem.open(sys.argv[1], counter=ApproximateCounter(), embedder=FakeEmbedder()) as hiermem:
    hiermem.tenant("acme").memory.store("plum of another process")
"""


def test_a_weaker_answer_is_given_and_not_kept(location):
    embedder = FakeEmbedder()
    with opened(location, embedder=embedder) as hiermem:
        service = hiermem.tenant("acme").memory
        service.store("plum tea")
        memory = WorkingMemory(service)
        embedder.failing = {"plum"}
        weaker = memory.search("plum")
        embedder.failing = ()

        served = memory.search_with_source("plum")

    assert weaker.warnings
    assert served.source == "backend"
    assert not served.result.warnings


def test_d20_a_service_stays_what_it_is(service, events):
    looks = dir(service)

    cached = create_working_memory(service)
    found = cached.search("plum"), cached.search("plum")
    once = loads(events)
    service.search("plum")

    assert isinstance(cached, MemoryService)
    assert found[0] == found[1] == service.search("plum")
    assert once == 1
    assert dir(service) == looks == dir(cached)
    assert cached.retrieve("e1") == service.retrieve("e1")


def test_d20_what_searches_by_way_of_search_is_cached_too(location, events):
    with opened(location, observer=events.append) as hiermem:
        cached = create_working_memory(hiermem.tenant("acme").memory)
        cached.store("plum tea")

        found = [cached.search_semantic("plum", 3) for _ in range(3)]

    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 1
    assert loads(events) == 1


def test_d21_auto_populate_answers_as_the_service_does(service):
    cached = create_working_memory(service, auto_populate=True)
    cached.working_memory.pin("plum")

    cached.store("plum cake")
    served = [cached.working_memory.search_with_source(q) for q in ("plum", "plum cake")]

    assert [one.source for one in served] == ["cache", "cache"]
    assert [one.result for one in served] == [service.search(q) for q in ("plum", "plum cake")]


def test_d22_a_write_drops_a_pinned_answer(service):
    memory = WorkingMemory(service)
    memory.pin("plum")

    service.store("plum cake")

    assert memory.search_with_source("plum").source == "backend"
    assert memory.search_with_source("plum").source == "cache"
    assert memory.stats().pinned == 1


def test_a_recall_is_cached_until_an_entry_changes(hiermem, service):
    plain = hiermem.tenant("acme")
    plain.recall("plum")
    tenant = create_working_memory(plain)

    found = tenant.recall("plum"), tenant.recall("plum")
    tenant.remember("plum cake")
    after = tenant.recall("plum")

    assert found[0] == found[1]
    assert tenant.working_memory.stats().hits == 1
    assert after == plain.recall("plum")
    assert len(after) == 6


@pytest.mark.parametrize("change", ["append", "edit", "delete", "replace", "forget"])
def test_a_recall_is_cached_until_a_turn_changes(hiermem, service, change):
    plain = hiermem.tenant("acme")
    thread = plain.thread("t1")
    turn = thread.append(said(["plum said first", "plum said second"]))[0]
    plain.recall("plum")
    memory = WorkingMemory(plain)
    sources = [memory.search_with_source("plum").source for _ in range(2)]

    if change == "append":
        thread.append(said(["plum once more"]))
    elif change == "edit":
        thread.edit_turn(str(turn.id), "no fruit at all")
    elif change == "delete":
        thread.delete_turns([str(turn.id)])
    elif change == "replace":
        thread.replace(said(["plum anew"]))
    else:
        plain.forget(thread_id="t1")
    served = memory.search_with_source("plum")

    assert sources == ["backend", "cache"]
    assert served.source == "backend"
    assert served.result == plain.recall("plum")


WAYS = {
    "thread": lambda tenant: create_working_memory(tenant.thread("t1")).recall,
    "thread's recall": lambda tenant: create_working_memory(tenant.thread("t1").recall),
    "tenant's recall": lambda tenant: create_working_memory(tenant.recall),
    "part of a recall": lambda tenant: WorkingMemory(partial(tenant.recall, limit=9)).search,
    "memory's search": lambda tenant: create_working_memory(tenant.memory.search),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_d17_threads_and_bound_methods_see_every_change(hiermem, service, way):
    tenant = hiermem.tenant("acme")
    tenant.thread("t1").append(said(["hello"]))
    ask = way(tenant)
    contents = [[hit.content for hit in ask("plum cake")] for _ in range(2)]

    service.store("plum cake")
    after = [hit.content for hit in ask("plum cake")]

    assert contents[0] == contents[1]
    assert "plum cake" not in contents[0]
    assert "plum cake" in after


def test_a_bound_search_reads_its_queries_as_its_memory_does(service, events):
    memory = WorkingMemory(service.search)

    memory.search("plum", mode="keyword")
    memory.search(MemoryQuery(text=" Plum ", mode="keyword"), limit=10)

    assert memory.stats().hits == 1


@pytest.mark.anyio
async def test_d17_bound_methods_of_the_async_twins_see_every_change(hiermem, service):
    tenant = AsyncHierMem(hiermem).tenant("acme")
    await tenant.thread("t1").append(said(["hello"]))
    ways = [tenant.recall, tenant.thread("t1").recall, tenant.memory.search]
    asked = [create_working_memory(way) for way in ways]
    before = [len(await ask("plum")) for ask in asked]

    service.store("plum cake")

    assert [len(await ask("plum")) for ask in asked] == [count + 1 for count in before]


@pytest.mark.parametrize("kind", ["entry", "turn"])
def test_an_answer_goes_when_vectors_come_that_it_lacked(location, clock, kind):
    embedder = FakeEmbedder()
    with opened(location, embedder=embedder, clock=clock) as hiermem:
        tenant = hiermem.tenant("acme")
        embedder.failing = {"plum tea"}
        if kind == "entry":
            tenant.remember("plum tea")
        else:
            tenant.thread("t1").append(said(["plum tea"]))
        embedder.failing = ()
        before = tenant.generation()

        assert tenant.memory.wait_for_index(30)

        after = tenant.generation()
        assert before != after
        assert (before[0] != after[0], before[1] != after[1]) == (kind == "entry", kind == "turn")


def test_a_recall_is_never_without_a_turn_that_was_appended_before(hiermem, service):
    tenant = create_working_memory(hiermem.tenant("acme"))
    thread = hiermem.tenant("acme").thread("t1")

    for number in range(3):
        tenant.recall("plum")
        thread.append(said([f"plum said {number}"]))

        assert tenant.recall("plum") == hiermem.tenant("acme").recall("plum")


def test_a_recall_of_turns_is_cached_under_a_generation_that_knows_of_turns(hiermem, service):
    plain = hiermem.tenant("acme")
    turns = [0]
    memory = WorkingMemory(plain, generation=lambda: turns[0])

    sources = [memory.search_with_source("plum").source for _ in range(2)]
    turns[0] += 1

    assert sources == ["backend", "cache"]
    assert memory.search_with_source("plum").source == "backend"


def test_an_observer_is_told_the_tenant(hiermem, service):
    told = []
    memory = WorkingMemory(hiermem.tenant("acme"), observer=told.append)

    memory.search("plum", threads=None)

    assert [(type(event), event.tenant_id, event.hits) for event in told] == [
        (RecallServed, "acme", 5)
    ]


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
