"""The retriever: nodes of one tenant's entries, what restricts them, and what it leaves alone."""

from __future__ import annotations

import asyncio

import pytest
from blockbuster import blockbuster_ctx
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, QueryBundle
from llama_index.core.tools import RetrieverTool
from llamaindex.models import ListeningLLM
from llamaindex.samples import texts

from hiermem_core import (
    HierMem,
    InvalidFilterError,
    InvalidInputError,
    UnsupportedSearchError,
    create_working_memory,
)
from hiermem_core.testing import FakeEmbedder
from llamaindex_hiermem import HierMemChatMemoryBuffer, HierMemRetriever

NESTED = {"year": 2024, "tags": ["a", {"deep": [1, None]}], "by": {"name": "Zoë"}}


@pytest.fixture(params=["sqlite", "chroma", "hybrid"])
def hiermem(request, durable_location):
    if request.param == "chroma":
        pytest.importorskip("chromadb")
    options = {"backend": request.param, "embedder": FakeEmbedder()}
    with HierMem.open(durable_location, **options) as hiermem:
        yield hiermem


@pytest.fixture
def tenant(hiermem):
    tenant = hiermem.tenant("acme")
    tenant.remember("green tea from Japan", id="e0", namespace="tea", metadata=NESTED)
    tenant.remember("black tea", id="e1", namespace="tea/black", metadata={"year": 2020})
    tenant.remember("tea in the evening", id="e2", namespace="log", type="episodic")
    tenant.remember("how to brew tea", id="e3", namespace="log", type="procedural")
    hiermem.tenant("other").remember("tea of another tenant", id="x")
    return tenant


@pytest.fixture(params=["sync", "async"])
def retrieve(request):
    async def in_a_colour(retriever, asked):
        return (
            retriever.retrieve(asked)
            if request.param == "sync"
            else (await retriever.aretrieve(asked))
        )

    return in_a_colour


def ids(nodes):
    return [found.node.node_id for found in nodes]


async def test_nodes_are_entries_best_first(tenant, retrieve):
    found = await retrieve(HierMemRetriever(tenant), "green tea from Japan")

    best = found[0]
    assert (best.node.node_id, best.node.get_content()) == ("e0", "green tea from Japan")
    assert set(ids(found)) <= {"e0", "e1", "e2", "e3"}
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


async def test_l33_nested_metadata_is_restored_beside_flat_facts(tenant, retrieve):
    (best, *_) = await retrieve(HierMemRetriever(tenant), "green tea from Japan")

    metadata = dict(best.node.metadata)
    facts = {name: metadata.pop(name) for name in list(metadata) if name.startswith("hiermem_")}
    assert metadata == NESTED
    assert sorted(facts) == [
        "hiermem_created_at",
        "hiermem_namespace",
        "hiermem_score",
        "hiermem_type",
    ]
    assert all(isinstance(fact, str | float) for fact in facts.values())
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "hiermem_" not in best.node.get_content(mode)


RESTRICTED = {
    "k": ({"k": 1}, 1),
    "namespace": ({"namespace": "tea"}, {"e0", "e1"}),
    "filter": ({"filter": {"year": {"$gte": 2021}}}, {"e0"}),
    "one type": ({"types": ["episodic"]}, {"e2"}),
    "two types": ({"types": ["episodic", "procedural"]}, {"e2", "e3"}),
    "least score": ({"min_score": 1.01}, set()),
    "mode": ({"mode": "keyword"}, {"e0", "e1", "e2", "e3"}),
}


@pytest.mark.parametrize(("options", "wanted"), RESTRICTED.values(), ids=RESTRICTED)
async def test_restrictions_hold(hiermem, tenant, retrieve, options, wanted):
    retriever = HierMemRetriever(tenant, **options)

    try:
        found = ids(await retrieve(retriever, "tea"))
    except UnsupportedSearchError:
        assert options == {"mode": "keyword"}
        return
    except InvalidInputError:
        assert "min_score" in options
        return

    assert len(found) == wanted if isinstance(wanted, int) else set(found) == wanted


async def test_an_embedding_that_comes_with_the_question_is_used(tenant, retrieve, request):
    vector = list(FakeEmbedder().embed(["green tea from Japan"])[0])
    has_vectors = "sqlite" not in request.node.name

    found = await retrieve(HierMemRetriever(tenant), QueryBundle("black tea", embedding=vector))
    unknown = await retrieve(HierMemRetriever(tenant), QueryBundle("zebra", embedding=vector))

    assert "e1" in ids(found)
    assert ids(unknown)[:1] == (["e0"] if has_vectors else [])


async def test_a_store_without_an_embedder_is_searched_by_words(retrieve):
    with HierMem.open(":memory:", local_embedder=False) as hiermem:
        alice = hiermem.tenant("alice")
        retriever = HierMemRetriever(alice)
        empty = await retrieve(retriever, "tea")
        alice.remember("black tea", id="e1")

        assert empty == []
        assert ids(await retrieve(retriever, "tea")) == ["e1"]
        assert await retrieve(retriever, "  ") == []


async def test_l16_retrievers_of_two_tenants_share_nothing(hiermem, tenant, retrieve):
    other = HierMemRetriever(hiermem.tenant("other"))

    assert ids(await retrieve(other, "green tea from Japan")) == ["x"]


async def test_l33_foreign_rows_of_a_chroma_folder_are_skipped(tmp_path, retrieve):
    chromadb = pytest.importorskip("chromadb")
    options = {"backend": "chroma", "embedder": FakeEmbedder()}
    with HierMem.open(tmp_path / "memory", **options) as hiermem:
        hiermem.tenant("acme").remember("green tea", id="e0", metadata=NESTED)
        assert hiermem.tenant("acme").memory.wait_for_index(30)
    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(tmp_path / "memory" / "chroma"), settings)
    vector = list(map(float, FakeEmbedder().embed(["green tea"])[0]))
    for collection in client.list_collections():
        collection.add(ids=["foreign"], embeddings=[vector], metadatas=[{"their": "row"}])
    client.create_collection("theirs").add(ids=["theirs"], embeddings=[vector])
    client.close()

    with HierMem.open(tmp_path / "memory", **options) as hiermem:
        found = await retrieve(HierMemRetriever(hiermem.tenant("acme")), "green tea")

    assert ids(found) == ["e0"]
    assert {name: found[0].node.metadata[name] for name in NESTED} == NESTED


@pytest.mark.parametrize("k", [0, -1, True, "3"])
def test_a_number_below_one_is_refused(tenant, k):
    with pytest.raises(InvalidInputError, match="k"):
        HierMemRetriever(tenant, k=k)


def test_a_filter_that_cannot_be_understood_is_refused_by_the_call(tenant):
    with pytest.raises(InvalidFilterError):
        HierMemRetriever(tenant, filter={"year": {"$near": 1}}).retrieve("tea")


def test_it_writes_nothing_and_its_generation_follows_the_entries(tenant):
    retriever = HierMemRetriever(tenant)
    before = retriever.generation()
    retriever.retrieve("tea")
    same = retriever.generation()
    tenant.remember("white tea")

    assert isinstance(retriever, BaseRetriever)
    assert before == same != retriever.generation()


def test_engines_and_tools_use_it(tenant):
    retriever = HierMemRetriever(tenant, k=2)
    llm = ListeningLLM(max_tokens=3)
    memory = HierMemChatMemoryBuffer.from_defaults(tenant=tenant, chat_store_key="t")

    answer = ContextChatEngine.from_defaults(retriever, llm=llm, memory=memory).chat("Japan tea?")
    seen = "\n".join(filter(None, texts(llm.heard)))
    condensed = CondensePlusContextChatEngine.from_defaults(
        retriever, llm=MockLLM(max_tokens=3), memory=memory
    ).chat("And black tea?")
    queried = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(max_tokens=3)).query("tea")
    tool = RetrieverTool.from_defaults(retriever, name="search", description="Entries.")

    assert "green tea from Japan" in seen
    assert "hiermem_" not in seen
    assert len(answer.source_nodes) == len(queried.source_nodes) == 2
    assert condensed.response
    assert "tea" in tool.call("tea").content


async def test_working_memory_in_front_of_it_never_misses_a_change(tenant):
    cached = create_working_memory(HierMemRetriever(tenant))

    found = [cached.retrieve("tea"), await cached.aretrieve("tea")]
    tenant.remember("tea, the newest", id="new")

    assert ids(found[0]) == ids(found[1])
    assert cached.working_memory.stats().hits == 1
    assert "new" in ids(cached.retrieve("tea"))


async def test_a_call_does_not_block_the_loop_and_belongs_to_none(tenant):
    retriever = HierMemRetriever(tenant)

    with blockbuster_ctx():
        found = await retriever.aretrieve("tea")
    other = await asyncio.to_thread(lambda: asyncio.run(retriever.aretrieve("tea")))

    assert ids(found) == ids(other)
