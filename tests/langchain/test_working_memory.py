"""Working memory in front of LangChain's own retrievers and tools."""

from __future__ import annotations

import asyncio
import copy

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import Field

from hiermem_core import WorkingMemory, create_working_memory
from langchain_hiermem import HierMemRetriever


class Notes(BaseRetriever):
    """A retriever that counts its loads."""

    k: int = 2
    calls: list[str] = Field(default_factory=list)

    def _get_relevant_documents(self, query, *, run_manager):
        self.calls.append(query)
        return [
            Document(page_content=f"{query} {n}", metadata={"parts": [n]}) for n in range(self.k)
        ]

    async def _aget_relevant_documents(self, query, *, run_manager):
        await asyncio.sleep(0)
        return self._get_relevant_documents(query, run_manager=run_manager)


@pytest.fixture
def notes():
    return Notes()


@pytest.fixture
def cached(notes):
    return create_working_memory(notes)


def test_d1_a_retriever_is_asked_once(notes, cached):
    first, second = cached.invoke("tea"), cached.invoke("tea", None)

    assert first == second == Notes().invoke("tea")
    assert [type(document) for document in second] == [Document, Document]
    assert notes.calls == ["tea"]


@pytest.mark.anyio
async def test_d2_both_colours_of_a_retriever_share_flights_and_answers(notes, cached):
    found = await asyncio.gather(*(cached.ainvoke("tea") for _ in range(20)))

    assert found == [cached.invoke("tea")] * 20
    assert notes.calls == ["tea"]
    assert cached.working_memory.stats().joined == 19


def test_d14_documents_are_copies(cached):
    for _ in range(3):
        document = cached.invoke("tea")[0]
        assert document == Document(page_content="tea 0", metadata={"parts": [0]})
        document.metadata["parts"].append("more")
        document.page_content = "changed"


def test_d12_callbacks_and_tags_decide_nothing_and_what_is_configured_does(notes, cached):
    cached.invoke("tea", {"tags": ["a"], "metadata": {"run": 1}, "callbacks": []})
    cached.invoke("tea", config={"run_name": "b"})
    alike = len(notes.calls)
    cached.invoke("tea", {"configurable": {"tenant": "a"}})
    cached.invoke("tea", {"configurable": {"tenant": "b"}})

    assert (alike, len(notes.calls)) == (1, 3)


def test_d20_a_cached_retriever_is_a_retriever_in_every_use(notes, cached):
    chain = cached | RunnableLambda(len)

    answers = [chain.invoke("tea"), *chain.batch(["tea", "tea"]), *chain.stream("tea")]

    assert isinstance(cached, Notes)
    assert answers == [2, 2, 2, 2]
    assert notes.calls == ["tea"]
    assert cached.model_dump() == notes.model_dump()
    assert repr(cached) == repr(notes)
    assert "working_memory" not in dir(cached)
    assert "working_memory" not in cached.model_dump_json()
    assert not hasattr(notes, "working_memory")


def test_d20_the_original_still_asks_each_time(notes, cached):
    for _ in range(3):
        cached.invoke("tea")
        notes.invoke("tea")

    assert len(notes.calls) == 4


def test_a_setting_made_on_one_is_made_on_both(notes, cached):
    cached.k = 1

    assert notes.k == 1
    assert len(notes.invoke("tea")) == 1


@pytest.mark.parametrize("copied", [lambda r: r.model_copy(update={"k": 3}), copy.deepcopy])
def test_a_copy_of_a_cached_retriever_answers_by_its_own_state(cached, copied):
    cached.invoke("tea")
    other = copied(cached)
    other.k = 3

    assert len(other.invoke("tea")) == 3
    assert len(cached.invoke("tea")) == 2


@pytest.mark.anyio
async def test_d7_an_error_of_a_retriever_reaches_all(notes):
    class Failing(Notes):
        async def _aget_relevant_documents(self, query, *, run_manager):
            await asyncio.sleep(0)
            raise ZeroDivisionError

    cached = create_working_memory(Failing())

    found = await asyncio.gather(*(cached.ainvoke("tea") for _ in range(5)), return_exceptions=True)

    assert [type(error) for error in found] == [ZeroDivisionError] * 5
    assert cached.working_memory.stats().failures == 1


class Kept:
    def __init__(self):
        self.texts = []
        self.searches = 0


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def tools(kept):
    @tool
    def search_memories(query: str, limit: int = 10) -> dict:
        """Search what was remembered."""
        kept.searches += 1
        found = [text for text in kept.texts if query in text][:limit]
        return {"success": True, "results": found, "count": len(found)}

    @tool
    def add_memory(memory: str) -> str:
        """Remember something."""
        kept.texts.append(memory)
        return "done"

    @tool
    def weather(place: str) -> str:
        """Tell the weather."""
        return f"sunny in {place}"

    return [search_memories, add_memory, weather]


def test_tools_stay_tools_and_those_that_search_are_cached(tools, kept):
    search, add, weather = cached = create_working_memory(tools)

    empty = [search.invoke({"query": "tea"}) for _ in range(3)]
    add.invoke({"memory": "green tea"})
    full = [search.invoke({"query": "tea", "limit": 10}), search.run("tea")]

    assert weather is tools[2]
    assert all(isinstance(made, StructuredTool) for made in cached)
    assert [made.name for made in cached] == ["search_memories", "add_memory", "weather"]
    assert search.args == tools[0].args
    assert empty == [{"success": True, "results": [], "count": 0}] * 3
    assert full == [{"success": True, "results": ["green tea"], "count": 1}] * 2
    assert kept.searches == 2
    assert cached.working_memory.stats().hits == 3


def test_each_call_of_a_model_gets_its_own_message(tools, kept):
    search = create_working_memory(tools)[0]
    calls = [
        {"name": "search_memories", "args": {"query": "tea"}, "id": name, "type": "tool_call"}
        for name in ("one", "two")
    ]

    messages = [search.invoke(call) for call in calls]

    assert [type(message) for message in messages] == [ToolMessage, ToolMessage]
    assert [message.tool_call_id for message in messages] == ["one", "two"]
    assert messages[0].content == messages[1].content
    assert kept.searches == 1


def test_callbacks_of_a_tool_are_told_of_hits_too(tools):
    search = create_working_memory(tools)[0]
    told = []

    class Telling(BaseCallbackHandler):
        def on_tool_end(self, output, **kwargs):
            told.append(output)

    for _ in range(2):
        search.invoke({"query": "tea"}, {"callbacks": [Telling()]})

    assert len(told) == 2


@pytest.mark.anyio
async def test_tools_are_awaited_and_share_flights(kept):
    @tool
    async def search_memories(query: str) -> list:
        """Search what was remembered."""
        kept.searches += 1
        await asyncio.sleep(0)
        return [query]

    search = create_working_memory(search_memories)

    found = await asyncio.gather(*(search.ainvoke({"query": "tea"}) for _ in range(20)))

    assert found == [["tea"]] * 20
    assert kept.searches == 1
    assert search.working_memory.stats().joined == 19


@pytest.mark.anyio
async def test_a_tool_without_a_coroutine_is_awaited_too(tools, kept):
    search, add, _ = create_working_memory(tools)

    first = await search.ainvoke({"query": "tea"})
    await add.ainvoke({"memory": "green tea"})

    assert first["count"] == 0
    assert (await search.ainvoke({"query": "tea"}))["count"] == 1
    assert search.invoke({"query": "tea"})["count"] == 1
    assert kept.searches == 2


def test_d12_what_a_retriever_is_set_to_is_part_of_the_key(notes, cached):
    counts = []
    for k in (2, 1, 2, 1):
        notes.k = k
        counts.append(len(cached.invoke("tea")))

    assert counts == [2, 1, 2, 1]
    assert len(notes.calls) == 2


def test_d12_what_a_vector_store_is_asked_with_is_part_of_the_key():
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_texts(["green tea", "black tea", "plum"])
    retriever = store.as_retriever(search_kwargs={"k": 1})
    memory = WorkingMemory(retriever.invoke)
    few = memory.search("tea")

    retriever.search_kwargs["k"] = 3
    many = memory.search("tea")
    retriever.vectorstore = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    none = memory.search("tea")

    assert (len(few), len(many), len(none)) == (1, 3, 0)
    assert memory.stats().bypassed == 0


@pytest.fixture
def entries(hiermem):
    tenant = hiermem.tenant("acme")
    tenant.remember("green tea", namespace="hot")
    tenant.remember("black tea")
    return tenant


@pytest.mark.parametrize(
    ("field", "value"),
    [("k", 1), ("namespace", "hot"), ("filter", {"a": 1}), ("types", ["working"])],
)
def test_d12_a_retriever_of_hiermem_answers_by_its_fields_of_now(entries, field, value):
    retriever = HierMemRetriever(entries)
    cached = create_working_memory(retriever)
    cached.invoke("tea")

    setattr(retriever, field, value)

    assert cached.invoke("tea") == retriever.invoke("tea")
    assert len(cached.invoke("tea")) < 2


def test_d17_a_retriever_of_hiermem_never_answers_with_what_expired(entries, clock):
    entries.remember("white tea", ttl=30)
    retriever = HierMemRetriever(entries)
    cached = create_working_memory(retriever, clock=clock)
    before = cached.invoke("tea")

    clock.advance(31)

    assert len(before) == 3
    assert cached.invoke("tea") == retriever.invoke("tea")
    assert len(cached.invoke("tea")) == 2
    assert sorted("hiermem_expires_at" in found.metadata for found in before) == [0, 0, 1]


def test_a_tool_that_reads_its_config_is_cached_by_what_is_configured(kept):
    @tool
    def search_memories(query: str, config: RunnableConfig) -> str:
        """Search what was remembered."""
        kept.searches += 1
        return f"{query} of {config['configurable']['tenant']}"

    (search,) = create_working_memory([search_memories])

    answers = [
        search.invoke({"query": "tea"}, {"configurable": {"tenant": tenant, "checkpoint_id": n}})
        for n, tenant in enumerate(["a", "b", "a"])
    ]

    assert answers == ["tea of a", "tea of b", "tea of a"]
    assert kept.searches == 2


def test_a_tool_that_is_a_class_is_cached_too(kept):
    class Recall(BaseTool):
        name: str = "recall"
        description: str = "Recall something."

        def _run(self, query: str, run_manager=None):
            kept.searches += 1
            return [query]

    (recall,) = create_working_memory([Recall()])

    assert [recall.invoke({"query": "tea"}) for _ in range(2)] == [["tea"], ["tea"]]
    assert kept.searches == 1


def test_an_agent_uses_the_cached_tools(tools, kept):
    agents = pytest.importorskip("langchain.agents.factory", reason="needs the extra agents")

    class Calling(GenericFakeChatModel):
        def bind_tools(self, tools, **kwargs):
            return self

    def call(number):
        args = {"query": "tea"}
        return AIMessage("", tool_calls=[{"name": "search_memories", "args": args, "id": number}])

    model = Calling(messages=iter([call("1"), call("2"), call("3"), AIMessage("done")]))
    agent = agents.create_agent(model, create_working_memory(tools))

    said = agent.invoke({"messages": [("user", "what tea?")]})["messages"]

    assert said[-1].content == "done"
    assert [m.tool_call_id for m in said if isinstance(m, ToolMessage)] == ["1", "2", "3"]
    assert kept.searches == 1
