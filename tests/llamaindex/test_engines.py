"""The chat engines of the framework, with a buffer in the place of theirs."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llamaindex.models import ListeningLLM
from llamaindex.samples import (
    CORE,
    WATCHDOG_SECONDS,
    Facts,
    LoopShy,
    assistant,
    exchange,
    texts,
    user,
)

from llamaindex_hiermem import HierMemChatMemoryBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.chat_engine.types import BaseChatEngine

    from hiermem_core import HierMem

ANSWER = "text text text"
EXCHANGE = [user("Is it warm?"), assistant(ANSWER)]
WAITS_FOR_THE_LAST_WORD = CORE < (0, 14, 25)
AFTER_LEAVING = [EXCHANGE, EXCHANGE[:1], []] if WAITS_FOR_THE_LAST_WORD else [EXCHANGE]
"""Older engines put nothing, or only the question, before the last word of an answer was read."""


def simple(llm: MockLLM, **options: Any) -> BaseChatEngine:
    return SimpleChatEngine.from_defaults(llm=llm, **options)


def context(llm: MockLLM, **options: Any) -> BaseChatEngine:
    return ContextChatEngine.from_defaults(Facts(), llm=llm, **options)


def condense_plus_context(llm: MockLLM, **options: Any) -> BaseChatEngine:
    return CondensePlusContextChatEngine.from_defaults(Facts(), llm=llm, **options)


def condense_question(llm: MockLLM, **options: Any) -> BaseChatEngine:
    query_engine = RetrieverQueryEngine.from_args(Facts(), llm=llm)
    return CondenseQuestionChatEngine.from_defaults(query_engine, llm=llm, **options)


ENGINES: list[Callable[..., BaseChatEngine]] = [
    simple,
    context,
    condense_plus_context,
    condense_question,
]
ENGINES_WITH_MEMORY_CLS = [simple, condense_question]


async def chat(engine: BaseChatEngine, text: str, **options: Any) -> str:
    return engine.chat(text, **options).response


async def achat(engine: BaseChatEngine, text: str, **options: Any) -> str:
    return (await engine.achat(text, **options)).response


async def stream_chat(engine: BaseChatEngine, text: str, **options: Any) -> str:
    return "".join(engine.stream_chat(text, **options).response_gen)


async def astream_chat(engine: BaseChatEngine, text: str, **options: Any) -> str:
    response = await engine.astream_chat(text, **options)
    return "".join([token async for token in response.async_response_gen()])


WAYS = [chat, achat, stream_chat, astream_chat]

engines = pytest.mark.parametrize("engine_of", ENGINES, ids=lambda made: made.__name__)
ways = pytest.mark.parametrize("say", WAYS, ids=lambda way: way.__name__)


class Failing(MockLLM):
    """A model that is down."""

    def chat(self, *arguments: Any, **options: Any) -> Any:
        raise ConnectionError("the model is down")

    async def achat(self, *arguments: Any, **options: Any) -> Any:
        raise ConnectionError("the model is down")


def durable_class(hiermem: HierMem) -> type[HierMemChatMemoryBuffer]:
    class Durable(HierMemChatMemoryBuffer):
        @classmethod
        def from_defaults(cls, *arguments: Any, **options: Any) -> Any:
            fixed = {"tenant": hiermem.tenant("alice"), "chat_store_key": "trip"}
            return super().from_defaults(*arguments, **{**options, **fixed})

    return Durable


@engines
@ways
async def test_two_exchanges_are_stored_and_the_second_sees_the_first(make_memory, engine_of, say):
    llm = ListeningLLM(max_tokens=3)
    memory = make_memory()
    engine = engine_of(llm, memory=memory)

    answers = [await say(engine, "Is it warm?"), await say(engine, "And deep?")]

    wanted = [user("Is it warm?"), assistant(ANSWER), user("And deep?"), assistant(ANSWER)]
    assert answers == [ANSWER, ANSWER]
    assert memory.get_all() == make_memory().get_all() == wanted
    assert engine.chat_history == wanted
    if engine_of is not condense_question:
        seen = " ".join(filter(None, texts(llm.heard)))
        assert "Is it warm?" in seen
        assert "And deep?" in seen


@engines
@ways
async def test_a_conversation_leaves_what_the_frameworks_own_buffer_keeps(
    make_memory, engine_of, say
):
    memories = [make_memory(token_limit=12), ChatMemoryBuffer.from_defaults(token_limit=12)]

    for memory in memories:
        engine = engine_of(ListeningLLM(max_tokens=3), memory=memory)
        for text in ("Is it warm?", "And deep?", "Is there snow on the hills now?"):
            await say(engine, text)

    assert memories[0].get_all() == memories[1].get_all()
    assert memories[0].get() == memories[1].get()


@engines
@ways
async def test_an_empty_history_given_to_a_call_means_what_it_means_to_the_frameworks_buffer(
    make_memory, engine_of, say
):
    memories = [make_memory(), ChatMemoryBuffer.from_defaults()]

    for memory in memories:
        memory.set(exchange("old"))
        engine = engine_of(ListeningLLM(max_tokens=3), memory=memory)
        await say(engine, "Is it warm?", chat_history=[])

    assert memories[0].get_all() == memories[1].get_all()


@engines
async def test_l18_an_empty_memory_is_the_one_an_engine_uses(make_memory, engine_of):
    memory = make_memory()

    engine = engine_of(ListeningLLM(max_tokens=3), memory=memory)

    assert engine._memory is memory


@pytest.mark.parametrize("engine_of", ENGINES_WITH_MEMORY_CLS, ids=lambda made: made.__name__)
@ways
async def test_memory_cls_makes_a_memory_in_this_process(engine_of, say):
    history = exchange("old")
    llm = ListeningLLM(max_tokens=3)
    engine = engine_of(llm, memory_cls=HierMemChatMemoryBuffer, chat_history=history)

    await say(engine, "Is it warm?")

    assert engine.chat_history == [*history, user("Is it warm?"), assistant(ANSWER)]
    assert engine._memory.token_limit == llm.metadata.context_window - 256


@pytest.mark.parametrize("engine_of", ENGINES_WITH_MEMORY_CLS, ids=lambda made: made.__name__)
@pytest.mark.parametrize("history", [None, []])
async def test_l02_a_durable_memory_cls_keeps_the_thread(hiermem, engine_of, history):
    durable = durable_class(hiermem)
    for text in ("Is it warm?", "And deep?"):
        engine = engine_of(ListeningLLM(max_tokens=3), memory_cls=durable, chat_history=history)
        engine.chat(text)

    wanted = [user("Is it warm?"), assistant(ANSWER), user("And deep?"), assistant(ANSWER)]
    assert engine.chat_history == durable.from_defaults().get_all() == wanted


@ways
async def test_a_history_given_to_a_call_replaces_the_thread(make_memory, tenant, say):
    memory = make_memory(chat_history=exchange("old"))
    engine = simple(ListeningLLM(max_tokens=3), memory=memory)

    await say(engine, "Is it warm?", chat_history=exchange("new"))

    archived = tenant.thread("trip").turns(status="archived")
    assert memory.get_all() == [*exchange("new"), user("Is it warm?"), assistant(ANSWER)]
    assert [turn.content for turn in archived] == texts(exchange("old"))


@engines
def test_reset_of_an_engine_empties_the_thread(make_memory, engine_of):
    memory = make_memory(chat_history=exchange("old"))

    engine_of(ListeningLLM(max_tokens=3), memory=memory).reset()

    assert memory.get_all() == []


@engines
@pytest.mark.parametrize("say", [achat, astream_chat], ids=lambda way: way.__name__)
async def test_l20_an_async_call_runs_no_sync_method_on_the_loop(tenant, engine_of, say):
    memory = LoopShy.from_defaults(tenant=tenant, chat_store_key="trip")
    engine = engine_of(ListeningLLM(max_tokens=3), memory=memory)

    await say(engine, "Is it warm?")
    stored = await memory.aget_all()

    assert stored == [user("Is it warm?"), assistant(ANSWER)]
    with pytest.raises(AssertionError):
        memory.get_all()


@ways
async def test_l07_a_prefix_over_the_limit_leaves_the_question_stored(make_memory, say):
    memory = make_memory(token_limit=5)
    engine = simple(ListeningLLM(max_tokens=3), memory=memory, system_prompt="be brief " * 5)

    with pytest.raises(ValueError, match=r"^Initial token count exceeds token limit$"):
        await say(engine, "Is it warm?")

    assert memory.get_all() == [user("Is it warm?")]


async def test_the_prefix_of_an_engine_counts_against_the_window(make_memory):
    llm = ListeningLLM(max_tokens=3)
    memory = make_memory(token_limit=14, chat_history=[*exchange("old"), *exchange("new", words=2)])
    engine = simple(llm, memory=memory, system_prompt="be very brief please and kind")

    engine.chat("Is it warm?")

    assert texts(llm.heard)[1:] == [*texts(exchange("new", words=2)), "Is it warm?"]


@pytest.mark.parametrize("say", [chat, achat], ids=lambda way: way.__name__)
async def test_l42_questions_of_failed_calls_stay_and_read_as_one_history(make_memory, say):
    memory = make_memory(counting="core")
    for text in ("one?", "two?"):
        with pytest.raises(ConnectionError):
            await say(simple(Failing(), memory=memory), text)

    await say(simple(ListeningLLM(max_tokens=3), memory=memory), "three?")

    wanted = [user("one?"), user("two?"), user("three?"), assistant(ANSWER)]
    context = memory.get_context()
    assert memory.get_all() == list(context.messages) == wanted
    assert context.warnings == ()


def wait_for_writers():
    """Wait for the threads in which engines read an answer on and store it."""
    for thread in threading.enumerate():
        if thread.name.startswith("Thread-"):
            thread.join(WATCHDOG_SECONDS)


@engines
def test_l21_a_client_that_leaves_a_stream_leaves_the_answer_stored_once(make_memory, engine_of):
    memory = make_memory()
    response = engine_of(ListeningLLM(max_tokens=3), memory=memory).stream_chat("Is it warm?")
    tokens = response.response_gen

    seen = next(tokens)
    tokens.close()
    at_once = memory.get_all()
    wait_for_writers()

    assert at_once in AFTER_LEAVING
    assert memory.get_all() in AFTER_LEAVING
    assert ANSWER.startswith(seen.strip())


@engines
async def test_l21_a_client_that_leaves_an_async_stream_leaves_the_answer_stored_once(
    make_memory, engine_of
):
    memory = make_memory()
    engine = engine_of(ListeningLLM(max_tokens=3), memory=memory)
    response = await engine.astream_chat("Is it warm?")
    tokens = response.async_response_gen()

    seen = await anext(tokens)
    await tokens.aclose()

    assert memory.get_all() in AFTER_LEAVING
    assert ANSWER.startswith(seen.strip())


async def test_l21_a_client_whose_task_is_cancelled_leaves_the_answer_stored_once(make_memory):
    memory = make_memory()
    engine = simple(ListeningLLM(max_tokens=3), memory=memory)
    response = await engine.astream_chat("Is it warm?")
    storing, reached = response.awrite_response_to_history_task, asyncio.Event()

    async def read() -> None:
        async for _ in response.async_response_gen():
            reached.set()
            await asyncio.Event().wait()

    client = asyncio.create_task(read())
    await reached.wait()
    client.cancel()
    with pytest.raises(asyncio.CancelledError):
        await client
    await storing

    assert memory.get_all() == [user("Is it warm?"), assistant(ANSWER)]


def test_l21_a_partial_answer_may_be_put_from_any_thread(make_memory):
    memory = make_memory(chat_history=[user("Is it warm?")])
    partial = assistant("It is w")

    thread = threading.Thread(target=memory.put, args=(partial,))
    thread.start()
    thread.join()
    partial.blocks[0].text = "changed"

    assert memory.get_all() == [user("Is it warm?"), assistant("It is w")]
