"""The retriever: documents, what restricts them, calls, construction."""

from __future__ import annotations

import asyncio

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.runnables import RunnableLambda
from pydantic import PrivateAttr, ValidationError

from hiermem_core import (
    HierMem,
    InvalidFilterError,
    InvalidInputError,
    InvalidNamespaceError,
    UnsupportedSearchError,
)
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemRetriever

BACKENDS = ("sqlite", "chroma", "hybrid")

TEAS = [
    {
        "content": "green tea from Japan",
        "namespace": "tea",
        "metadata": {"year": 2024, "hot": True},
    },
    {"content": "black tea", "namespace": "tea/black", "metadata": {"year": 2020}},
    {"content": "tea that is drunk in the evening", "type": "episodic", "namespace": "log"},
    {"content": "how to brew tea", "type": "procedural", "namespace": "log"},
    {"content": "coffee beans", "namespace": "coffee"},
]


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def hiermem(backend, location, clock):
    options = {"backend": backend, "embedder": FakeEmbedder(), "clock": clock}
    with HierMem.open(location, **options) as hiermem:
        yield hiermem


@pytest.fixture
def tenant(hiermem):
    tenant = hiermem.tenant("acme")
    for number, entry in enumerate(TEAS):
        tenant.remember({**entry, "id": f"e{number}"})
    hiermem.tenant("other").remember("tea of another tenant")
    return tenant


@pytest.fixture
def retriever(tenant):
    return HierMemRetriever(tenant)


def ids_of(documents):
    return [document.id for document in documents]


def test_a_document_is_an_entry_with_its_facts(retriever, tenant):
    first = retriever.invoke("green tea from Japan")[0]

    (hit,) = tenant.memory.search("green tea from Japan", limit=1)
    assert first.id == "e0"
    assert first.page_content == "green tea from Japan"
    assert first.metadata == {
        "year": 2024,
        "hot": True,
        "hiermem_score": hit.score,
        "hiermem_namespace": "tea",
        "hiermem_type": "semantic",
        "hiermem_created_at": hit.created_at,
    }


def test_documents_come_best_first_and_in_the_same_order_each_time(retriever, tenant):
    runs = [ids_of(retriever.invoke("tea")) for _ in range(3)]

    assert runs == [[hit.id for hit in tenant.memory.search("tea", limit=4)]] * 3
    scores = [one.metadata["hiermem_score"] for one in retriever.invoke("tea")]
    assert scores == sorted(scores, reverse=True)


def test_lc40_a_call_takes_k_and_filter_and_the_next_is_as_before(retriever):
    before = ids_of(retriever.invoke("tea"))

    assert len(retriever.invoke("tea", k=1)) == 1
    assert ids_of(retriever.invoke("tea", filter={"year": {"$gt": 2021}})) == ["e0"]
    assert ids_of(retriever.invoke("tea", k=3, filter={})) == before[:3]
    assert ids_of(retriever.invoke("tea")) == before


def test_lc40_an_unknown_keyword_of_the_constructor_is_refused(tenant):
    for fields in ({"top_k": 3}, {"k": 0}, {"k": "many"}, {"types": []}, {"tenant": "other"}):
        with pytest.raises(ValidationError):
            HierMemRetriever(tenant, **fields)


@pytest.mark.parametrize("k", [0, -1, "3", True, 1.5])
def test_a_call_with_a_k_that_is_none_is_refused(retriever, k):
    with pytest.raises(InvalidInputError):
        retriever.invoke("tea", k=k)


def test_lc39_it_is_made_with_a_live_service_and_so_is_a_class_of_your_own(tenant):
    class Own(HierMemRetriever):
        _calls: list[str] = PrivateAttr(default_factory=list)
        loud: bool = False

        def _get_relevant_documents(self, query, *, run_manager, **given):
            self._calls.append(query)
            return super()._get_relevant_documents(query, run_manager=run_manager, **given)

    own = Own(memory=tenant, k=2, loud=True)

    assert len(own.invoke("tea")) == 2
    assert own._calls == ["tea"]
    assert not own.is_lc_serializable()


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({"namespace": "tea"}, {"e0", "e1"}),
        ({"namespace": "log"}, {"e2", "e3"}),
        ({"filter": {"year": 2020}}, {"e1"}),
        ({"types": ["episodic"]}, {"e2"}),
        ({"types": ["episodic", "procedural"]}, {"e2", "e3"}),
        ({"types": ("episodic", "semantic"), "namespace": "log"}, {"e2"}),
    ],
)
def test_fields_restrict_what_is_found(tenant, fields, ids):
    retriever = HierMemRetriever(tenant, k=10, **fields)

    found = set(ids_of(retriever.invoke("tea")))

    assert found - {"e4"} == ids


def test_several_types_apply_before_k(hiermem):
    tenant = hiermem.tenant("many")
    tenant.memory.bulk_insert(
        {"content": f"tea number {n}", "type": "semantic" if n % 4 else "working", "id": f"{n:03}"}
        for n in range(120)
    )
    tenant.remember("tea number of an episode", type="episodic", id="episode")

    found = HierMemRetriever(tenant, k=31, types=["working", "episodic"]).invoke("tea number")

    expected = {f"{n:03}" for n in range(0, 120, 4)} | {"episode"}
    assert set(ids_of(found)) == expected


def test_the_least_score_holds(tenant):
    scores = [one.metadata["hiermem_score"] for one in HierMemRetriever(tenant, k=9).invoke("tea")]
    middle = scores[1]

    found = HierMemRetriever(tenant, k=9, min_score=middle).invoke("tea")

    assert [one.metadata["hiermem_score"] for one in found] == [s for s in scores if s >= middle]


def test_a_mode_is_asked_for_and_one_the_backend_lacks_is_refused(tenant, backend):
    for mode in ("keyword", "semantic"):
        retriever = HierMemRetriever(tenant, mode=mode)
        if {"sqlite": "semantic", "chroma": "keyword"}.get(backend) == mode:
            with pytest.raises(UnsupportedSearchError):
                retriever.invoke("tea")
        else:
            assert "e0" in ids_of(retriever.invoke("green tea from Japan"))


def test_what_cannot_be_understood_is_refused_in_a_call(tenant):
    with pytest.raises(InvalidFilterError):
        HierMemRetriever(tenant, filter={"a": {"$like": 1}}).invoke("tea")
    with pytest.raises(InvalidNamespaceError):
        HierMemRetriever(tenant, namespace="a//b").invoke("tea")


def test_lc43_metadata_of_every_kind_is_a_copy(hiermem):
    tenant = hiermem.tenant("acme")
    metadata = {"a": None, "b": [], "c": {}, "d": [1, "x", {"e": [2]}], "f": 1.5, "g": True}
    tenant.remember("tea", metadata=metadata)
    retriever = HierMemRetriever(tenant)

    found = retriever.invoke("tea")[0].metadata
    assert {name: found[name] for name in metadata} == metadata
    found["d"][2]["e"].append(3)

    assert retriever.invoke("tea")[0].metadata["d"] == metadata["d"]
    for given_filter in ({}, {"f": 1.5, "g": True}, {"c": {}}, {"d": [1, "x", {"e": [2]}]}):
        assert len(retriever.invoke("tea", filter=given_filter)) == 1


def test_lc18_nothing_of_another_tenant_is_found(hiermem, tenant):
    retriever = HierMemRetriever(tenant, k=100)

    assert set(ids_of(retriever.invoke("tea of another tenant"))) <= {f"e{n}" for n in range(5)}
    assert len(HierMemRetriever(hiermem.tenant("nobody")).invoke("tea")) == 0


def test_the_generation_grows_with_every_change(retriever, tenant):
    before = retriever.generation()
    retriever.invoke("tea")
    assert retriever.generation() == before

    tenant.memory.delete("e0")

    assert retriever.generation() > before
    assert "e0" not in ids_of(retriever.invoke("green tea from Japan"))


async def test_lc44_the_asynchronous_side_gives_equal_documents_and_errors(retriever):
    for given in ({}, {"k": 2}, {"filter": {"year": 2020}}):
        expected = await asyncio.to_thread(retriever.invoke, "tea", **given)
        assert await retriever.ainvoke("tea", **given) == expected
    with pytest.raises(InvalidInputError):
        await retriever.ainvoke("tea", k=0)


async def test_lc26_the_asynchronous_side_never_blocks_the_loop(retriever):
    with blockbuster_ctx():
        documents = await retriever.ainvoke("tea")

    assert len(documents) == 4


async def test_lc27_the_sync_side_returns_on_a_running_loop(retriever):
    assert len(retriever.invoke("tea")) == 4


def test_it_is_a_part_of_a_chain(retriever):
    chain = retriever | RunnableLambda(lambda documents: [one.page_content for one in documents])

    assert "green tea from Japan" in chain.invoke("green tea from Japan")


def test_making_one_does_nothing(tenant):
    tenant._services.database.close()

    assert HierMemRetriever(tenant, namespace="tea").k == 4
