"""After any change of what is searched the next search loads."""

from __future__ import annotations

from functools import partial

import pytest
from core import children
from core.working.services import opened

from hiermem_core import AsyncHierMem, WorkingMemory, create_working_memory
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.samples import said

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
