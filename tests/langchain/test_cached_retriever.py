"""The retriever with a cache: what is shared, what counts, callbacks, steering, construction."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import Field, PrivateAttr, ValidationError

from hiermem_core import ConfigurationError, HierMem, LimitExceededError, events
from langchain_hiermem import HierMemRetriever, WorkingMemoryRetriever


class Gated(BaseRetriever):
    """A retriever that counts its loads, each of which waits for the gate."""

    k: int = 2
    asked: list[str] = Field(default_factory=list)
    gate: Any = Field(default_factory=threading.Event)
    failing: bool = False

    def _get_relevant_documents(self, query, *, run_manager, k=2):
        self.asked.append(query)
        self.gate.wait(20)
        return self._found(query, k)

    async def _aget_relevant_documents(self, query, *, run_manager, k=2):
        self.asked.append(query)
        await asyncio.to_thread(self.gate.wait, 20)
        return self._found(query, k)

    def _found(self, query, k):
        if self.failing:
            raise ZeroDivisionError
        return [Document(page_content=f"{query} {n}", metadata={"parts": [n]}) for n in range(k)]


@pytest.fixture
def gated():
    return Gated()


@pytest.fixture
def plain(gated):
    """Give a retriever that answers at once."""
    gated.gate.set()
    return gated


@pytest.fixture
def cached(gated):
    return WorkingMemoryRetriever(gated)


async def joined(cached, count):
    """Wait until so many calls wait for another's load."""
    while cached.stats().joined < count:  # noqa: ASYNC110 - a count cannot be awaited
        await asyncio.sleep(0)


async def test_lc31_of_20_equal_calls_the_first_is_cancelled_and_19_get_one_answer(gated, cached):
    calls = [asyncio.ensure_future(cached.ainvoke("tea")) for _ in range(20)]
    await joined(cached, 19)

    calls[0].cancel()
    gated.gate.set()
    found = await asyncio.gather(*calls, return_exceptions=True)

    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1:] == [gated._found("tea", 2)] * 19
    assert gated.asked == ["tea"]


async def test_lc31_calls_of_both_colours_share_one_load(gated, cached):
    with ThreadPoolExecutor(10) as threads:
        loop = asyncio.get_running_loop()
        sync = [loop.run_in_executor(threads, cached.invoke, "tea") for _ in range(10)]
        awaited = [asyncio.ensure_future(cached.ainvoke("tea")) for _ in range(10)]
        await joined(cached, 19)
        gated.gate.set()
        found = await asyncio.gather(*sync, *awaited)

    assert found == [gated._found("tea", 2)] * 20
    assert gated.asked == ["tea"]


def test_lc31_20_threads_and_their_event_loops_share_one_load(gated, cached):
    def ask(number):
        if number % 2:
            return cached.invoke("tea")
        return asyncio.run(cached.ainvoke("tea"))

    with ThreadPoolExecutor(20) as threads:
        calls = [threads.submit(ask, number) for number in range(20)]
        while cached.stats().joined < 19:
            threading.Event().wait(0.001)
        gated.gate.set()
        found = [call.result() for call in calls]

    assert found == [gated._found("tea", 2)] * 20
    assert gated.asked == ["tea"]


async def test_lc31_a_failure_reaches_all_and_is_not_kept(gated, cached):
    gated.failing = True
    calls = [asyncio.ensure_future(cached.ainvoke("tea")) for _ in range(5)]
    await joined(cached, 4)
    gated.gate.set()

    found = await asyncio.gather(*calls, return_exceptions=True)
    gated.failing = False

    assert [type(error) for error in found] == [ZeroDivisionError] * 5
    assert cached.invoke("tea") == gated._found("tea", 2)
    assert gated.asked == ["tea", "tea"]


async def test_lc31_a_changed_answer_changes_no_other(plain, cached):
    for answer in (cached.invoke("tea"), await cached.ainvoke("tea"), cached.invoke("tea")):
        assert answer == plain._found("tea", 2)
        answer[0].metadata["parts"].append("more")
        answer.pop()

    assert plain.asked == ["tea"]


def test_keywords_count_beyond_the_defaults_of_the_retriever(plain, cached):
    counts = [len(cached.invoke("tea", **given)) for given in ({}, {"k": 2}, {"k": 3}, {"k": 3})]

    assert counts == [2, 2, 3, 3]
    assert plain.asked == ["tea", "tea"]


def test_scopes_and_instances_share_nothing(plain):
    for scope in (("a",), ("b",)):
        WorkingMemoryRetriever(plain, scope=scope).invoke("tea")

    assert len(plain.asked) == 2


def test_what_is_configured_where_it_runs_counts():
    asked = []

    def search(query, config):
        asked.append(config["configurable"].get("tenant"))
        return [Document(page_content=f"{query} of {asked[-1]}")]

    chain = RunnableLambda(str) | WorkingMemoryRetriever(RunnableLambda(search))

    answers = [
        chain.invoke("tea", {"configurable": {"tenant": tenant}})[0].page_content
        for tenant in ("a", "b", "a")
    ]

    assert answers == ["tea of a", "tea of b", "tea of a"]
    assert asked == ["a", "b"]


def test_a_configurable_retriever_answers_as_it_is_configured(plain):
    retriever = HierMemRetrieverOf(plain).configurable_fields(k=ConfigurableField("k"))
    chain = RunnableLambda(str) | WorkingMemoryRetriever(retriever)

    counts = [len(chain.invoke("tea", {"configurable": {"k": k}})) for k in (1, 3, 1)]

    assert counts == [1, 3, 1]


class HierMemRetrieverOf(BaseRetriever):
    """A retriever that asks another one for its own `k`."""

    k: int = 2
    _behind: Any = PrivateAttr()

    def __init__(self, behind=None, **fields):
        super().__init__(**fields)
        self._behind = behind or Gated()
        self._behind.gate.set()

    def _get_relevant_documents(self, query, *, run_manager):
        return self._behind._found(query, self.k)


@pytest.fixture
def tenant(hiermem):
    tenant = hiermem.tenant("acme")
    tenant.remember("green tea")
    return tenant


def test_a_write_by_any_handle_is_never_missed(tenant, location):
    cached = WorkingMemoryRetriever(HierMemRetriever(tenant))
    before = [len(cached.invoke("tea")) for _ in range(2)]

    tenant.remember("black tea")
    here = len(cached.invoke("tea"))
    with HierMem.open(location) as other:
        other.tenant("acme").remember("white tea")

    assert (before, here, len(cached.invoke("tea"))) == ([1, 1], 2, 3)
    assert cached.stats().hits == 1


class Told(BaseCallbackHandler):
    def __init__(self):
        self.starts, self.ends = [], []

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
        self.starts.append((run_id, parent_run_id))

    def on_retriever_end(self, documents, **kwargs):
        self.ends.append(documents)


class ToldLater(AsyncCallbackHandler):
    def __init__(self):
        self.starts = []

    async def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
        self.starts.append((run_id, parent_run_id))


def test_the_callbacks_of_the_retriever_run_as_children_and_only_where_it_is_asked(plain, cached):
    first, second = Told(), Told()

    cached.invoke("tea", {"callbacks": [first]})
    cached.invoke("tea", {"callbacks": [second]})

    (outer, no_parent), (_, parent) = first.starts
    assert (no_parent, parent) == (None, outer)
    assert len(second.starts) == 1
    assert second.ends == [plain._found("tea", 2)]


async def test_the_callbacks_run_so_when_awaited(plain, cached):
    first, second = ToldLater(), ToldLater()

    await cached.ainvoke("tea", {"callbacks": [first]})
    await cached.ainvoke("tea", {"callbacks": [second]})

    assert [parent for _, parent in first.starts] == [None, first.starts[0][0]]
    assert len(second.starts) == 1


def test_it_is_steered_and_tells_how_it_served(plain):
    told = []
    cached = WorkingMemoryRetriever(plain, ttl_seconds=0, max_entries=4, observer=told.append)

    cached.pin("tea", k=3)
    pinned = [len(cached.invoke("tea", k=3)) for _ in range(2)]
    dropped = cached.invalidate("tea")
    released = (cached.unpin("tea", k=3), cached.unpin("tea", k=3))

    assert (pinned, dropped, released) == ([3, 3], 1, (True, False))
    assert plain.asked == ["tea"]
    assert {type(event) for event in told} == {events.RecallServed}
    cached.clear()
    assert cached.stats().hits == 0


async def test_a_pin_is_awaited_and_at_most_half_is_pinned(plain):
    cached = WorkingMemoryRetriever(plain, max_entries=2)

    await cached.apin("tea")

    with pytest.raises(LimitExceededError):
        await cached.apin("plum")
    assert cached.invoke("tea") == plain._found("tea", 2)
    assert plain.asked == ["tea"]


def test_texts_count_as_normalized_and_switched_off_it_asks_each_time(plain):
    folded = WorkingMemoryRetriever(plain, normalize=str.casefold)
    off = WorkingMemoryRetriever(plain, enabled=False)

    for cached in (folded, off):
        cached.invoke("tea")
        cached.invoke("TEA")

    assert plain.asked == ["tea", "tea", "TEA"]


async def test_lc26_it_never_blocks_the_loop(tenant):
    cached = WorkingMemoryRetriever(HierMemRetriever(tenant))

    with blockbuster_ctx():
        await cached.apin("tea")
        found = [await cached.ainvoke("tea") for _ in range(2)]

    assert [len(documents) for documents in found] == [1, 1]


def test_lc39_it_is_made_with_a_live_retriever_and_refuses_what_it_does_not_know(plain):
    class Own(WorkingMemoryRetriever):
        _calls: list[str] = PrivateAttr(default_factory=list)

    assert Own(plain, tags=["a"], name="mine").invoke("tea") == plain._found("tea", 2)
    assert not Own(plain).is_lc_serializable()
    with pytest.raises(ValidationError):
        WorkingMemoryRetriever(plain, ttl=3)
    with pytest.raises(ConfigurationError):
        WorkingMemoryRetriever(plain, max_entries=0)
    with pytest.raises(ConfigurationError):
        WorkingMemoryRetriever(object())


def test_the_retriever_itself_stays_as_it_is(plain, cached):
    cached.invoke("tea")
    plain.invoke("tea")

    assert plain.asked == ["tea", "tea"]
    assert not hasattr(plain, "working_memory")
