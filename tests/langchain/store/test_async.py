"""A LangGraph store on an event loop: equal to its sync side, and never in the loop's way."""

from __future__ import annotations

import asyncio
import threading

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from hiermem_core import HierMem, InvalidInputError
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemStore

BACKENDS = ("sqlite", "chroma", "hybrid", "in_memory")


@pytest.fixture(params=BACKENDS)
def pair(request, tmp_path, clock):
    """Give two empty stores of their own locations."""
    opened = [
        HierMem.open(tmp_path / name, backend=request.param, embedder=FakeEmbedder(), clock=clock)
        for name in ("one", "other")
    ]
    yield [HierMemStore(hiermem.tenant("acme"), ttl={"default_ttl": 5}) for hiermem in opened]
    for hiermem in opened:
        hiermem.close()


@pytest.fixture
def store(pair):
    return pair[0]


BATCHES = [
    *([PutOp(("a",), f"k{n}", {"n": n, "text": f"tea {n}"}, ttl=n or None)] for n in range(4)),
    [GetOp(("a",), "k1"), GetOp(("a",), "none"), SearchOp(("a",), filter={"n": {"$gt": 1}})],
    [SearchOp(("a",), query="tea 2", limit=2), ListNamespacesOp(), PutOp(("a",), "k0", None)],
    [SearchOp(()), ListNamespacesOp(max_depth=1)],
]


def plain(results):
    """Return results as values that compare."""
    return [
        [one.dict() if hasattr(one, "dict") else one for one in result]
        if isinstance(result, list)
        else result and result.dict()
        for result in results
    ]


async def test_lc44_and_lc25_each_batch_gives_equal_results_and_leaves_equal_items(pair, clock):
    one, other = pair

    for batch in BATCHES:
        synchronous = await asyncio.to_thread(one.batch, batch)
        asynchronous = await other.abatch(batch)
        assert plain(asynchronous) == plain(synchronous)
        clock.advance(1)
    clock.advance(2 * 60)

    assert await other.asweep_ttl() == one.sweep_ttl() == 2
    assert plain([await other.asearch(())]) == plain([one.search(())])


async def test_lc44_every_asynchronous_method_works(store):
    await store.aput(("a",), "k", {"text": "tea"}, index=["text"], ttl=1)

    assert (await store.aget(("a",), "k")).value == {"text": "tea"}
    assert [item.key for item in await store.asearch(("a",), query="tea")] == ["k"]
    assert await store.alist_namespaces() == [("a",)]
    await store.adelete(("a",), "k")
    assert await store.aget(("a",), "k") is None
    with pytest.raises(InvalidInputError):
        await store.aput(("a",), "k", {"n": {1}})


async def test_lc26_no_method_blocks_the_loop(store):
    with blockbuster_ctx():
        await store.aput(("a",), "k", {"text": "tea"}, ttl=1)
        await store.aget(("a",), "k")
        await store.asearch(("a",), query="tea")
        await store.alist_namespaces()
        await store.asweep_ttl()
        await store.adelete(("a",), "k")


async def test_lc27_a_sync_method_on_a_running_loop_returns(store):
    store.put(("a",), "k", {"text": "tea"})

    assert store.get(("a",), "k").value == {"text": "tea"}
    assert [item.key for item in store.search(("a",), query="tea")] == ["k"]


class Awaited(Embeddings):
    """Embeddings whose asynchronous side is their own."""

    def __init__(self):
        self.fake = FakeEmbedder()
        self.threads = set()

    def embed_documents(self, texts):
        raise AssertionError("the synchronous side was called")

    def embed_query(self, text):
        raise AssertionError("the synchronous side was called")

    async def aembed_documents(self, texts):
        self.threads.add(threading.get_ident())
        return self.fake.embed(texts)

    async def aembed_query(self, text):
        self.threads.add(threading.get_ident())
        return self.fake.embed([text])[0]


async def test_embeddings_of_an_index_are_awaited_on_the_callers_loop(tmp_path):
    embed = Awaited()
    with HierMem.open(tmp_path / "memory") as hiermem:
        store = HierMemStore(hiermem.tenant("acme"), index={"embed": embed})
        await store.aput(("a",), "k", {"text": "tea"})
        found = await store.asearch(("a",), query="tea")

    assert [item.score is None for item in found] == [False]
    assert embed.threads == {threading.get_ident()}


async def test_an_asynchronous_function_embeds_on_the_asynchronous_side_only(tmp_path):
    fake = FakeEmbedder()

    async def embed(texts):
        return fake.embed(texts)

    with HierMem.open(tmp_path / "memory") as hiermem:
        store = HierMemStore(hiermem.tenant("acme"), index={"embed": embed})
        await store.aput(("a",), "k", {"text": "tea"})
        assert (await store.asearch(("a",), query="tea"))[0].score is not None
        with pytest.raises(ValueError, match="async"):
            store.search(("a",), query="tea")


async def test_one_store_serves_many_callers_at_once(store):
    async def use(number):
        await store.aput(("a", str(number % 3)), str(number), {"n": number})
        return (await store.aget(("a", str(number % 3)), str(number))).value["n"]

    used = await asyncio.gather(*(use(number) for number in range(30)))

    assert used == list(range(30))
    assert len(await store.asearch(("a",), limit=100)) == 30
