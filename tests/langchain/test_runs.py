"""Chains under `RunnableWithMessageHistory`: what a run reads, and what it leaves stored."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import (
    FakeListChatModel,
    FakeListChatModelError,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

from hiermem_core import MissingIdentityError
from langchain_hiermem import HierMemChatMessageHistory

PROMPT = ChatPromptTemplate(
    [("system", "be brief"), MessagesPlaceholder("history"), ("human", "{question}")]
)

CALL = {"id": "c1", "name": "find", "args": {"place": "Oslo"}, "type": "tool_call"}


class ChunkModel(BaseChatModel):
    """A model that streams these chunks as they are, and then fails if it is told to."""

    chunks: list[AIMessageChunk]
    fails: bool = False

    @property
    def _llm_type(self):
        return "chunks"

    def _stream(self, messages, stop=None, run_manager=None, **kwargs: Any):
        for chunk in self.chunks:
            yield ChatGenerationChunk(message=chunk.model_copy(deep=True))
        if self.fails:
            raise ConnectionError("the provider hung up")

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        raise ConnectionError("only streams")


class Seen(RunnableLambda):
    """A model that answers `answer N` and keeps what it was asked."""

    def __init__(self):
        self.prompts: list[list[Any]] = []
        super().__init__(self._answer)

    def _answer(self, prompt):
        self.prompts.append(prompt.to_messages())
        return AIMessage(f"answer {len(self.prompts)}")


TOOL_CHUNKS = [
    AIMessageChunk(
        "",
        id="r1",
        tool_call_chunks=[{"id": "c1", "name": "find", "args": '{"pla', "index": 0}],
    ),
    AIMessageChunk(
        "",
        id="r1",
        tool_call_chunks=[{"id": None, "name": None, "args": 'ce": "Oslo"}', "index": 0}],
    ),
    AIMessageChunk(
        "",
        id="r1",
        usage_metadata={"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
        response_metadata={"model_name": "fake"},
        chunk_position="last",
    ),
]


def contents(history):
    return [message.content for message in history.messages]


async def ainvoked(chain, asked, config):
    return (await chain.ainvoke(asked, config)).content


async def astreamed(chain, asked, config):
    return "".join([chunk.content async for chunk in chain.astream(asked, config)])


async def invoked(chain, asked, config):
    return chain.invoke(asked, config).content


async def streamed(chain, asked, config):
    return "".join(chunk.content for chunk in chain.stream(asked, config))


WAYS = [invoked, ainvoked, streamed, astreamed]


@pytest.mark.parametrize("way", WAYS)
async def test_a_chain_remembers_in_each_way_of_running(remembering, configured, history, way):
    chain = remembering(PROMPT | FakeListChatModel(responses=["one", "two"]))

    answers = [await way(chain, {"question": q}, configured()) for q in ("first?", "second?")]

    assert answers == ["one", "two"]
    assert contents(history) == ["first?", "one", "second?", "two"]
    assert [type(m) for m in history.messages] == [HumanMessage, AIMessage] * 2
    assert [message.id is None for message in history.messages] == [True, False] * 2


@pytest.mark.parametrize("way", WAYS)
async def test_a_generic_fake_model_is_stored_whole(remembering, configured, history, way):
    answer = AIMessage("a longer answer", id="m1")
    chain = remembering(PROMPT | GenericFakeChatModel(messages=iter([answer])))

    assert await way(chain, {"question": "well?"}, configured()) == "a longer answer"

    assert contents(history) == ["well?", "a longer answer"]
    assert history.messages[1].id == "m1"


def test_the_model_reads_the_whole_log_and_each_message_once(remembering, configured):
    model = Seen()
    chain = remembering(PROMPT | model)

    for number in range(3):
        chain.invoke({"question": f"question {number}"}, configured())

    assert [message.content for message in model.prompts[-1]] == [
        *("be brief", "question 0", "answer 1", "question 1", "answer 2", "question 2"),
    ]


def test_bare_messages_are_stored_once_too(remembering, configured, history):
    chain = remembering(RunnableLambda(lambda messages: f"{len(messages)} read"), keys={})

    for text in ("a", "b"):
        chain.invoke([HumanMessage(text)], configured())

    assert contents(history) == ["a", "1 read", "b", "3 read"]


def test_one_chain_serves_tenants_and_threads_apart(remembering, configured):
    model = Seen()
    chain = remembering(PROMPT | model)
    places = [("ann", "t1"), ("bob", "t1"), ("ann", "t2")]

    for place in places * 2:
        chain.invoke({"question": "/".join(place)}, configured(*place))

    for place, prompt in zip(places, model.prompts[3:], strict=True):
        asked = [message.content for message in prompt if isinstance(message, HumanMessage)]
        assert asked == ["/".join(place)] * 2


def test_a_batch_over_tenants_stores_each_exchange_with_its_tenant(
    hiermem, remembering, configured
):
    chain = remembering(PROMPT | RunnableLambda(lambda prompt: prompt.messages[-1].content))
    names = [f"tenant {number}" for number in range(12)]

    chain.batch([{"question": name} for name in names], [configured(name) for name in names])

    for name in names:
        one = HierMemChatMessageHistory(hiermem, tenant_id=name, thread_id="t1")
        assert contents(one) == [name, name]


@pytest.mark.parametrize("missing", ["", None])
def test_a_missing_identity_stops_the_run_before_the_model(remembering, configured, missing):
    model = Seen()
    chain = remembering(PROMPT | model)

    for config in (configured(missing, "t1"), configured("acme", missing)):
        with pytest.raises(MissingIdentityError):
            chain.invoke({"question": "who?"}, config)
    for absent in ("tenant_id", "thread_id"):
        config = configured()
        del config["configurable"][absent]
        with pytest.raises(ValueError, match=absent):
            chain.invoke({"question": "who?"}, config)

    assert model.prompts == []


def test_lc33_a_tool_run_leaves_every_message_stored(remembering, configured, history):
    run = [
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("rain", tool_call_id="c1", artifact={"mm": 3}),
        AIMessage("It rains."),
    ]
    chain = remembering(RunnableLambda(lambda asked: run))

    chain.invoke({"question": "weather?"}, configured())

    assert history.messages == [HumanMessage("weather?"), *run]


@pytest.mark.parametrize("way", [streamed, astreamed])
async def test_lc34_a_streamed_answer_is_stored_full(remembering, configured, history, way):
    chain = remembering(PROMPT | ChunkModel(chunks=TOOL_CHUNKS))

    await way(chain, {"question": "weather?"}, configured())

    asked, answer = history.messages
    assert asked == HumanMessage("weather?")
    assert type(answer) is AIMessage
    assert answer.tool_calls == [CALL]
    assert answer.usage_metadata == TOOL_CHUNKS[-1].usage_metadata
    assert answer.response_metadata["model_name"] == "fake"
    assert answer.id == "r1"


def test_lc34_chunks_added_directly_are_stored_full(history):
    history.add_messages(TOOL_CHUNKS)

    (answer,) = history.messages
    assert type(answer) is AIMessage
    assert answer.tool_calls == [CALL]
    assert answer.usage_metadata == TOOL_CHUNKS[-1].usage_metadata


def test_lc23_two_runs_in_threads_store_each_exchange_whole_and_adjacent(
    remembering, configured, history
):
    both_have_read = Barrier(2)

    def answer(prompt):
        both_have_read.wait(timeout=30)
        return AIMessage("to " + prompt.messages[-1].content)

    chain = remembering(PROMPT | RunnableLambda(answer))

    with ThreadPoolExecutor(2) as runs:
        for first, second in (("a", "b"), ("c", "d")):
            asked = [{"question": first}, {"question": second}]
            list(runs.map(lambda one: chain.invoke(one, configured()), asked))

    assert_exchanges_are_adjacent(contents(history), "abcd")


async def test_lc23_two_runs_on_a_loop_store_each_exchange_whole_and_adjacent(
    remembering, configured, history
):
    both_have_read = asyncio.Barrier(2)

    async def answer(prompt):
        async with asyncio.timeout(30):
            await both_have_read.wait()
        return AIMessage("to " + prompt.messages[-1].content)

    chain = remembering(PROMPT | RunnableLambda(answer))

    for pair in ("ab", "cd"):
        runs = [chain.ainvoke({"question": text}, configured()) for text in pair]
        await asyncio.gather(*runs)

    assert_exchanges_are_adjacent(contents(history), "abcd")


def test_lc23_the_limit_of_bare_messages_is_documented():
    text = HierMemChatMessageHistory.__doc__

    assert "bare-message" in text
    assert "history_messages_key" in text


@pytest.mark.parametrize("way", WAYS)
async def test_lc29_a_failing_model_leaves_nothing_stored(remembering, configured, history, way):
    failing = ChunkModel(chunks=[AIMessageChunk("It ra", id="r1")], fails=True)
    history.add_messages([HumanMessage("before"), AIMessage("stored")])

    with pytest.raises(ConnectionError):
        await way(remembering(PROMPT | failing), {"question": "weather?"}, configured())

    assert contents(history) == ["before", "stored"]


@pytest.mark.parametrize("way", [streamed, astreamed])
async def test_lc29_a_stream_that_breaks_leaves_nothing_stored(
    remembering, configured, history, way
):
    model = FakeListChatModel(responses=["It rains."], error_on_chunk_number=4)

    with pytest.raises(FakeListChatModelError):
        await way(remembering(PROMPT | model), {"question": "weather?"}, configured())

    assert history.messages == []


def test_lc29_a_stream_closed_early_leaves_nothing_stored(remembering, configured, history):
    chain = remembering(PROMPT | FakeListChatModel(responses=["It rains."]))

    stream = chain.stream({"question": "weather?"}, configured())
    assert next(stream).content == "I"
    stream.close()

    assert history.messages == []


async def test_lc29_an_async_stream_closed_early_leaves_nothing_stored(
    remembering, configured, history
):
    chain = remembering(PROMPT | FakeListChatModel(responses=["It rains."]))

    stream = chain.astream({"question": "weather?"}, configured())
    assert (await anext(stream)).content == "I"
    await stream.aclose()

    assert history.messages == []


def assert_exchanges_are_adjacent(stored, asked):
    assert sorted(stored[::2]) == sorted(asked)
    assert stored[1::2] == [f"to {text}" for text in stored[::2]]
