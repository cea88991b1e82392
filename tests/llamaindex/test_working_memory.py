"""Working memory in front of LlamaIndex's own retrievers and tools."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms import LLMMetadata, MockLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool, RetrieverTool, ToolOutput, ToolSelection

from hiermem_core import create_working_memory


class Notes(BaseRetriever):
    """A retriever that counts its loads."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def _retrieve(self, query_bundle):
        self.calls.append(query_bundle.query_str)
        node = TextNode(text=f"{query_bundle.query_str} 0", id_="n0", metadata={"parts": [0]})
        return [NodeWithScore(node=node, score=0.5)]

    async def _aretrieve(self, query_bundle):
        await asyncio.sleep(0)
        return self._retrieve(query_bundle)


@pytest.fixture
def notes():
    return Notes()


@pytest.fixture
def cached(notes):
    return create_working_memory(notes)


def test_d1_a_retriever_is_asked_once_however_the_query_is_written(notes, cached):
    found = [cached.retrieve("tea"), cached.retrieve(QueryBundle("tea")), cached.retrieve("tea")]

    assert found[0] == found[1] == found[2] == Notes().retrieve("tea")
    assert type(found[1][0]) is NodeWithScore
    assert notes.calls == ["tea"]


def test_d12_a_query_with_more_to_it_is_another_one(notes, cached):
    cached.retrieve("tea")
    cached.retrieve(QueryBundle("tea", embedding=[1.0]))
    cached.retrieve(QueryBundle("tea", custom_embedding_strs=["plum"]))

    assert len(notes.calls) == 3


@pytest.mark.anyio
async def test_d2_both_colours_of_a_retriever_share_flights_and_answers(notes, cached):
    found = await asyncio.gather(*(cached.aretrieve("tea") for _ in range(20)))

    assert found == [cached.retrieve("tea")] * 20
    assert notes.calls == ["tea"]
    assert cached.working_memory.stats().joined == 19


def test_d14_nodes_are_copies(cached):
    pristine = Notes().retrieve("tea")
    for _ in range(3):
        (hit,) = cached.retrieve("tea")
        assert [hit] == pristine
        hit.node.metadata["parts"].append("more")
        hit.node.set_content("changed")
        hit.score = 0.1


def test_d20_a_cached_retriever_is_one_in_every_use(notes, cached):
    engine = RetrieverQueryEngine.from_args(cached, llm=MockLLM())

    answers = [engine.query("tea"), engine.query("tea")]
    notes.retrieve("tea")

    assert isinstance(cached, Notes)
    assert [len(answer.source_nodes) for answer in answers] == [1, 1]
    assert notes.calls == ["tea", "tea"]
    assert "working_memory" not in dir(cached)
    assert not hasattr(notes, "working_memory")


def test_d12_what_a_retriever_is_set_to_is_part_of_the_key():
    index = VectorStoreIndex.from_documents(
        [Document(text=text) for text in ("green tea", "black tea", "plum")],
        embed_model=MockEmbedding(embed_dim=4),
    )
    retriever = index.as_retriever(similarity_top_k=1)
    cached = create_working_memory(retriever)
    counts = []

    for k in (1, 3, 1):
        retriever.similarity_top_k = k
        counts.append(len(cached.retrieve("tea")))

    assert counts == [1, 3, 1]
    assert cached.working_memory.stats().hits == 1


class Kept:
    def __init__(self):
        self.texts = []
        self.searches = 0

    def search_memories(self, query: str, limit: int = 10) -> list[str]:
        """Search what was remembered."""
        self.searches += 1
        return [text for text in self.texts if query in text][:limit]

    async def recall_memory(self, query: str) -> list[str]:
        """Search what was remembered."""
        await asyncio.sleep(0)
        return self.search_memories(query)

    def add_memory(self, memory: str) -> str:
        """Remember something."""
        self.texts.append(memory)
        return "done"

    def weather(self, place: str) -> str:
        """Tell the weather."""
        return f"sunny in {place}"


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def tools(kept):
    return [
        FunctionTool.from_defaults(kept.search_memories),
        FunctionTool.from_defaults(kept.add_memory),
        FunctionTool.from_defaults(kept.weather),
    ]


def test_tools_stay_tools_and_those_that_search_are_cached(tools, kept):
    search, add, weather = cached = create_working_memory(tools)

    empty = [search.call(query="tea"), search(query="tea"), search.call("tea", limit=10)]
    add.call(memory="green tea")
    full = search(query="tea")

    assert weather is tools[2]
    assert all(isinstance(made, FunctionTool) for made in cached)
    assert search.metadata == tools[0].metadata
    assert [type(output) for output in empty] == [ToolOutput] * 3
    assert [output.raw_output for output in empty] == [[], [], []]
    assert full.raw_output == ["green tea"]
    assert kept.searches == 2


@pytest.mark.anyio
async def test_tools_are_awaited_and_share_flights(kept):
    (recall,) = create_working_memory([FunctionTool.from_defaults(async_fn=kept.recall_memory)])

    found = await asyncio.gather(*(recall.acall(query="tea") for _ in range(20)))

    assert [output.raw_output for output in found] == [[]] * 20
    assert kept.searches == 1


@pytest.mark.anyio
async def test_a_tool_without_a_coroutine_is_awaited_too(tools, kept):
    search, add, _ = create_working_memory(tools)

    first = await search.acall(query="tea")
    await add.acall(memory="green tea")

    assert first.raw_output == []
    assert (await search.acall(query="tea")).raw_output == ["green tea"]
    assert search.call(query="tea").raw_output == ["green tea"]
    assert kept.searches == 2


def test_d8_the_output_of_a_failed_tool_is_not_kept(kept):
    def search_failing(query: str) -> dict:
        """Fail."""
        kept.searches += 1
        return ToolOutput(content="no", tool_name="t", raw_input={}, raw_output="", is_error=True)

    search = create_working_memory(
        FunctionTool.from_defaults(search_failing, callback=lambda output: output)
    )

    outputs = [search.call(query="tea") for _ in range(2)]

    assert [output.is_error for output in outputs] == [True, True]
    assert kept.searches == 2


def test_a_retriever_tool_is_cached(notes):
    tool = RetrieverTool.from_defaults(notes, name="search_notes", description="Notes.")
    (search,) = create_working_memory([tool])

    outputs = [search.call("tea"), search.call("tea")]

    assert outputs[0].content == outputs[1].content
    assert len(notes.calls) == 1


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_an_agent_uses_the_cached_tools(tools, kept):
    class Calling(FunctionCallingLLM):
        left: int = 6

        @property
        def metadata(self):
            return LLMMetadata(is_function_calling_model=True)

        def _prepare_chat_with_tools(self, tools, **kwargs):
            return {"messages": []}

        async def achat_with_tools(self, *args, **kwargs):
            return ChatResponse(message=ChatMessage(role="assistant", content="done"))

        async def astream_chat_with_tools(self, *args, **kwargs):
            async def stream():
                yield ChatResponse(message=ChatMessage(role="assistant", content="done"), delta="")

            return stream()

        def get_tool_calls_from_response(self, response, **kwargs):
            self.left -= 1
            if self.left < 0:
                return []
            call = {"tool_id": str(self.left), "tool_name": "search_memories"}
            return [ToolSelection(**call, tool_kwargs={"query": "tea"})]

        chat = complete = stream_chat = stream_complete = MockLLM.complete
        achat = acomplete = astream_chat = astream_complete = MockLLM.acomplete

    agent = FunctionAgent(tools=create_working_memory(tools), llm=Calling())

    response = await agent.run("what tea?")

    assert str(response) == "done"
    assert len(response.tool_calls) > 1
    assert kept.searches == 1
