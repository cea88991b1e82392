"""Working memory in front of a memory service."""

from __future__ import annotations

from core.working.services import loads, opened
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import MemoryQuery, MemoryService, WorkingMemory, create_working_memory
from hiermem_core.models.events import RecallServed
from hiermem_core.testing import FakeEmbedder


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


def test_a_bound_search_reads_its_queries_as_its_memory_does(service, events):
    memory = WorkingMemory(service.search)

    memory.search("plum", mode="keyword")
    memory.search(MemoryQuery(text=" Plum ", mode="keyword"), limit=10)

    assert memory.stats().hits == 1


def test_an_observer_is_told_the_tenant(hiermem, service):
    told = []
    memory = WorkingMemory(hiermem.tenant("acme"), observer=told.append)

    memory.search("plum", threads=None)

    assert [(type(event), event.tenant_id, event.hits) for event in told] == [
        (RecallServed, "acme", 5)
    ]
