"""Times to live of a LangGraph store's items."""

from __future__ import annotations

import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp

from hiermem_core import HierMem, InvalidInputError
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemStore

MINUTE = 60


@pytest.fixture(params=["sqlite", "hybrid", "in_memory"])
def hiermem(request, location, clock):
    options = {"backend": request.param, "embedder": FakeEmbedder(), "clock": clock}
    with HierMem.open(location, **options) as hiermem:
        yield hiermem


@pytest.fixture
def made(hiermem):
    return lambda **ttl: HierMemStore(hiermem.tenant("acme"), ttl=ttl)


def test_an_item_is_absent_once_its_minutes_are_over(made, clock):
    store = made(refresh_on_read=False)
    store.put(("n",), "k", {"text": "tea"}, ttl=1.5)

    clock.advance(1.5 * MINUTE - 0.001)
    assert store.get(("n",), "k") is not None
    clock.advance(0.001)

    assert store.get(("n",), "k") is None
    assert store.search(("n",)) == store.search(("n",), query="tea") == []
    assert store.list_namespaces() == []


def test_the_default_counts_where_none_is_given_and_none_means_never(made, clock):
    store = made(default_ttl=1, refresh_on_read=False)
    store.put(("n",), "default", {})
    store.put(("n",), "never", {}, ttl=None)
    store.put(("n",), "longer", {}, ttl=2)
    store.batch([PutOp(("n",), "direct", {})])

    clock.advance(MINUTE)

    assert {item.key for item in store.search(("n",))} == {"never", "longer", "direct"}


@pytest.mark.parametrize(
    ("options", "lives"),
    [
        (({}, {}), True),
        (({}, {"refresh_ttl": False}), False),
        (({"refresh_on_read": False}, {}), False),
        (({"refresh_on_read": False}, {"refresh_ttl": True}), True),
    ],
)
@pytest.mark.parametrize("way", ["get", "search", "query"])
def test_a_read_refreshes_where_operation_or_configuration_says_so(
    made, clock, way, options, lives
):
    ttl, asked = options
    store = made(**ttl)
    store.put(("n",), "k", {"text": "tea"}, ttl=1)
    store.put(("n",), "other", {"text": "tea"}, ttl=1)
    clock.advance(0.75 * MINUTE)

    if way == "get":
        store.get(("n",), "k", **asked)
    else:
        query = "tea" if way == "query" else None
        store.search(("n",), query=query, filter={"text": "tea"}, limit=2, **asked)

    clock.advance(0.75 * MINUTE)
    assert (store.get(("n",), "k", refresh_ttl=False) is not None) == lives


def test_only_what_a_read_returns_is_refreshed_and_nothing_else_of_it_changes(made, hiermem, clock):
    store = made()
    memory = hiermem.tenant("acme").memory
    for key in ("a", "b"):
        store.put(("n",), key, {"key": key}, ttl=1)
    before = {hit.key: hit for hit in memory.search()}
    clock.advance(30)

    store.search(("n",), filter={"key": "a"})

    after = {hit.key: hit for hit in memory.search()}
    assert (after["a"].version, after["a"].updated_at) == (1, before["a"].updated_at)
    assert (after["a"].expires_at - before["a"].expires_at).total_seconds() == 30
    assert after["b"] == before["b"]


def test_a_batch_refreshes_what_it_reads_but_not_what_it_puts_or_deletes(made, hiermem, clock):
    store = made()
    for key in ("read", "put", "gone"):
        store.put(("n",), key, {"n": 1}, ttl=1)
    clock.advance(30)

    store.batch(
        [
            *(GetOp(("n",), key) for key in ("read", "put", "gone")),
            PutOp(("n",), "put", {"n": 2}, ttl=10),
            PutOp(("n",), "gone", None),
            SearchOp(("n",)),
        ]
    )

    left = {hit.key: hit.expires_at - clock.now() for hit in hiermem.tenant("acme").memory.search()}
    assert {key: span.total_seconds() for key, span in left.items()} == {"read": 60, "put": 600}


def test_reading_what_never_expires_writes_nothing(made, hiermem):
    store = made()
    store.put(("n",), "k", {"text": "tea"})
    generation = hiermem.tenant("acme").memory.generation()

    store.get(("n",), "k")
    store.search(("n",), query="tea")

    assert hiermem.tenant("acme").memory.generation() == generation


@pytest.mark.parametrize("ttl", [0, -1, float("inf"), "5"])
def test_a_time_to_live_that_is_none_is_refused(made, ttl):
    store = made()

    with pytest.raises(InvalidInputError):
        store.put(("n",), "k", {}, ttl=ttl)
    assert store.search(("n",)) == []


def test_a_sweep_removes_all_that_expired_and_says_how_many(made, hiermem, clock):
    store = made()
    store.batch([PutOp(("n",), f"{number}", {}, ttl=1) for number in range(1100)])
    store.put(("n",), "never", {})
    clock.advance(MINUTE)

    assert store.sweep_ttl() == 1100
    assert store.sweep_ttl() == 0
    assert hiermem.tenant("acme").memory.stats().expired == 0
    assert [item.key for item in store.search(("n",))] == ["never"]


def test_a_sweep_per_tenant_is_of_the_tenant_named(hiermem, clock):
    store = HierMemStore.per_tenant(hiermem)
    for tenant in ("one", "two"):
        store.put((tenant, "n"), "k", {}, ttl=1)
    clock.advance(MINUTE)

    assert store.sweep_ttl("one") == 1
    assert hiermem.tenant("two").memory.stats().expired == 1
