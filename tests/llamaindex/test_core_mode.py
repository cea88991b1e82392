"""Core mode: everything counts, what must stay stays, and the limit holds."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager

import pytest
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.llms.mock import MockLLM
from llamaindex.samples import (
    asking,
    assistant,
    block,
    exchange,
    result,
    system,
    texts,
    thinking,
    user,
)

from hiermem_core import BudgetExceededError, HierMem, ToolCall
from hiermem_core.models.events import TurnsTrimmed
from hiermem_core.tokens.counters import MEDIA_TOKENS
from llamaindex_hiermem import HierMemChatMemoryBuffer
from llamaindex_hiermem.memory import HierMemTrimWarning

FRAMING = 4
"""Words counted for a message beside its text: 3 and its role."""
REPLY = 3

LEGACY_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Oslo and surroundings"}'},
}


class Smell(type(block("text", text=""))):
    """A block kind that nobody here knows."""

    block_type: str = "smell"


@pytest.fixture
def core_memory(make_memory):
    def make(messages=(), **options):
        return make_memory(counting="core", chat_history=list(messages), **options)

    return make


@contextmanager
def trimming():
    """Expect the one Python warning of a memory that leaves messages out."""
    with pytest.warns(HierMemTrimWarning) as told:
        yield told


async def test_a_thread_that_fits_is_returned_whole(core_memory, call):
    messages = [system("Be brief."), *exchange("one"), *exchange("other")]
    memory = core_memory(messages, token_limit=2 + 4 * 5 + 5 * FRAMING + REPLY)

    context = await call(memory.get_context)

    assert list(context.messages) == messages
    assert context.warnings == ()
    assert (context.receipt.total, context.receipt.budget) == (45, 45)
    assert (context.receipt.counter, context.receipt.exact) == ("words", True)


async def test_trimming_is_told_once_a_memory_and_every_time_in_the_context(
    location, counter, call
):
    events = []
    with HierMem.open(location, counter=counter, observer=events.append) as hiermem:
        memory = HierMemChatMemoryBuffer.from_defaults(
            [m for n in range(10) for m in exchange(f"e{n}")],
            tenant=hiermem.tenant("alice"),
            chat_store_key="trip",
            token_limit=60,
            counting="core",
        )
        with trimming() as told:
            contexts = [await call(memory.get_context) for _ in range(3)]
            window = await call(memory.get)
        twin = memory.model_copy()
        with trimming() as told_again:
            await call(twin.get)

    assert window == list(contexts[0].messages) == memory_tail(6, 10)
    assert [w.category for w in told] == [w.category for w in told_again] == [HierMemTrimWarning]
    assert "60" in str(told[0].message)
    for context in contexts:
        (warning,) = context.warnings
        assert (warning.code, warning.count) == ("turns_trimmed", 14)
        assert (warning.detail["first_seq"], warning.detail["last_seq"]) == (1, 14)
    assert len([event for event in events if isinstance(event, TurnsTrimmed)]) == 5


def memory_tail(last: int, exchanges: int) -> list[ChatMessage]:
    return [m for n in range(exchanges) for m in exchange(f"e{n}")][-last:]


def test_the_warning_points_at_the_caller(core_memory):
    memory = core_memory([m for n in range(10) for m in exchange(f"e{n}")], token_limit=60)

    with trimming() as told:
        memory.get()

    assert told[0].filename == __file__


async def test_l29_the_initial_count_is_taken_off_the_limit(core_memory, call):
    memory = core_memory([m for n in range(4) for m in exchange(f"e{n}")], token_limit=75)
    whole = await call(memory.get_context)

    with trimming():
        context = await call(memory.get_context, initial_token_count=40)

    assert len(whole.messages) == 8
    assert whole.receipt.tokens("prefix") == 0
    assert context.receipt.tokens("prefix") == 40
    assert context.receipt.total == 40 + REPLY + 2 * (5 + FRAMING) <= 75
    assert list(context.messages) == memory_tail(2, 4)


@pytest.mark.parametrize("state", ["never written", "emptied", "written"])
async def test_l07_a_prefix_over_the_limit_raises_with_the_numbers(core_memory, call, state):
    memory = core_memory([] if state == "never written" else exchange("e"), token_limit=20)
    if state == "emptied":
        memory.reset()

    with pytest.raises(BudgetExceededError) as refused:
        await call(memory.get, initial_token_count=21)

    assert refused.value.needed > refused.value.available == 20
    assert refused.value.parts["prefix"] == 21


async def test_a_thread_never_written_reads_as_an_emptied_one(core_memory, call):
    emptied = core_memory(exchange("e"), chat_store_key="emptied")
    emptied.reset()
    never = core_memory(chat_store_key="never")

    for memory in (emptied, never):
        context = await call(memory.get_context, None, 7)
        receipt = context.receipt
        assert (context.messages, context.warnings) == ((), ())
        assert (receipt.tokens("prefix"), receipt.budget) == (7, 3000)
        assert (receipt.counter, receipt.exact) == ("words", True)


async def test_l07_a_prefix_that_leaves_little_room_cuts_the_newest_question_and_warns(
    core_memory, call
):
    question = user("what " * 60)
    memory = core_memory([*exchange("old"), question], token_limit=70)

    with trimming():
        context = await call(memory.get_context, initial_token_count=30)

    (shown,) = context.messages
    warning = next(w for w in context.warnings if w.code == "over_budget")
    assert shown.role is MessageRole.USER
    assert shown.content.startswith("what what")
    assert "characters cut" in shown.content
    assert {w.code for w in context.warnings} == {"turns_trimmed", "over_budget"}
    assert context.receipt.total <= 70
    assert (warning.detail["needed"], warning.detail["available"]) == (
        30 + 60 + FRAMING + REPLY,
        70,
    )
    assert memory.get_all()[-1] == question


async def test_l10_a_leading_system_message_stays_in_front(core_memory, call):
    memory = core_memory(
        [system("Be brief."), *(m for n in range(10) for m in exchange(f"e{n}"))], token_limit=60
    )

    with trimming():
        window = await call(memory.get)

    assert window == [system("Be brief."), *memory_tail(4, 10)]


async def test_l10_kept_messages_over_the_limit_are_named(core_memory, call):
    memory = core_memory([system("rule " * 100), *exchange("e")], token_limit=60)

    with pytest.raises(BudgetExceededError) as refused:
        await call(memory.get)

    assert refused.value.parts["pinned"] == 100 + FRAMING
    assert "pinned" in str(refused.value)
    assert (refused.value.available, refused.value.needed) == (60, 104 + REPLY + 2 * 9)


async def test_l38_an_alternating_thread_stays_alternating(core_memory, call):
    rules = [system("Be brief."), ChatMessage(role="developer", content="Be kind.")]
    memory = core_memory([*rules, *(m for n in range(30) for m in exchange(f"e{n}"))])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HierMemTrimWarning)
        for limit in range(40, 400, 11):
            memory.token_limit = limit
            window = await call(memory.get)
            roles = [message.role.value for message in window[2:]]
            assert window[:2] == rules
            assert roles == ["user", "assistant"] * (len(roles) // 2)
            assert window[2:] == memory_tail(len(roles), 30)


async def test_l42_questions_without_answer_are_grouped_without_loss(core_memory, call):
    thread = [user("one?"), user("two?"), user("three?"), assistant("Three.")]
    memory = core_memory(thread)

    context = await call(memory.get_context)

    assert list(context.messages) == thread
    assert context.warnings == ()


BLOCKS = {
    "text": (lambda: block("text", text="seven words " * 7), 14),
    "thinking": (lambda: block("thinking", content="hm " * 20), 20),
    "thinking with its count": (lambda: block("thinking", content="hm", num_tokens=33), 33),
    "a citable source": (
        lambda: block("citable", title="", source="", content=[block("text", text="so " * 9)]),
        9,
    ),
    "a citation": (
        lambda: block(
            "citation",
            title="",
            source="",
            cited_content=block("text", text="so " * 9),
            additional_location_info={},
        ),
        9,
    ),
    "an image": (lambda: block("image", url="https://example.org/a.png"), MEDIA_TOKENS["image"]),
    "audio": (lambda: block("audio", url="https://example.org/a.mp3"), MEDIA_TOKENS["audio"]),
    "a document": (
        lambda: block("document", url="https://example.org/a.pdf"),
        MEDIA_TOKENS["document"],
    ),
}


@pytest.mark.parametrize(("make_block", "tokens"), BLOCKS.values(), ids=BLOCKS)
def test_l09_every_block_counts(core_memory, make_block, tokens):
    message = ChatMessage(role="user", blocks=[block("text", text="look"), make_block()])
    memory = core_memory([message], token_limit=5_000)

    receipt = memory.get_context().receipt

    assert receipt.tokens("current") == FRAMING + 1 + tokens


def test_l09_large_arguments_of_a_call_count(core_memory):
    memory = core_memory([user("hi"), asking("c1", query="large " * 200)], token_limit=5_000)

    assert memory.get_context().receipt.tokens("current") > 200


def test_l09_a_block_nobody_knows_counts(core_memory):
    plain = ChatMessage(role="user", blocks=[block("text", text="look")])
    strange = ChatMessage(role="user", blocks=[block("text", text="look")])
    strange.blocks.append(Smell(text="like roses " * 10))
    memories = [core_memory([m], chat_store_key=str(n)) for n, m in enumerate((plain, strange))]

    tokens = [memory.get_context().receipt.tokens("current") for memory in memories]

    assert tokens[1] >= tokens[0] + 20


def test_l09_the_window_respects_the_limit_whatever_it_is_made_of(core_memory):
    rich = [make() for name, (make, _) in BLOCKS.items() if "thinking" not in name or thinking("")]
    thread = []
    for n in range(6):
        thread += [
            user(f"question {n}"),
            asking("c1", query="large " * 30),
            result("c1", "so " * 40),
        ]
        thread += [ChatMessage(role="assistant", blocks=rich)]
    memory = core_memory([*thread, user("and now?")])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HierMemTrimWarning)
        for limit in (50, 500, 3_000, 8_000, 30_000):
            memory.token_limit = limit
            context = memory.get_context()
            assert context.receipt.total <= limit
            assert context.messages[-1] == user("and now?")


@pytest.fixture(scope="module")
def touched():
    """Give what lists the files and addresses this process touches while it is told to."""
    seen, listening = [], []

    def hook(event, arguments):
        if listening and event in {"open", "socket.connect", "socket.getaddrinfo"}:
            seen.append((event, str(arguments[0])))

    sys.addaudithook(hook)

    @contextmanager
    def listen():
        seen.clear()
        listening.append(True)
        try:
            yield seen
        finally:
            listening.clear()

    return listen


def test_l28_fifty_images_count_flat_and_nothing_is_fetched(core_memory, touched, tmp_path):
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"not to be read")
    places = [{"url": f"https://example.org/{n}.png"} for n in range(49)] + [{"path": picture}]
    message = ChatMessage(role="user", blocks=[block("image", **place) for place in places])
    memory = core_memory(token_limit=100_000)

    with touched() as seen:
        memory.put(message)
        context = memory.get_context()

    assert context.receipt.tokens("current") == FRAMING + 50 * MEDIA_TOKENS["image"]
    assert list(context.messages) == [message]
    assert [what for what in seen if "picture" in what[1] or what[0] != "open"] == []


async def test_l35_legacy_calls_of_a_provider_are_neutral_calls(tenant, core_memory, call):
    turn_to_langchain = pytest.importorskip("langchain_hiermem").turn_to_message
    message = ChatMessage(
        role="assistant", content="", additional_kwargs={"tool_calls": [LEGACY_CALL]}
    )
    memory = core_memory()
    await call(memory.put_messages, [user("warm?"), message, result("c1", "22")])

    (turn, answer) = tenant.thread("trip").turns()[1:]
    seen_by_langchain = turn_to_langchain(turn)

    assert turn.tool_calls == (ToolCall("c1", "weather", {"city": "Oslo and surroundings"}),)
    assert (seen_by_langchain.tool_calls[0]["id"], seen_by_langchain.tool_calls[0]["name"]) == (
        "c1",
        "weather",
    )
    assert turn_to_langchain(answer).tool_call_id == "c1"
    assert await call(memory.get_all) == [user("warm?"), message, result("c1", "22")]
    assert memory.get() == [user("warm?"), message, result("c1", "22")]


def test_l35_legacy_calls_count_once(core_memory):
    legacy = ChatMessage(
        role="assistant", content="", additional_kwargs={"tool_calls": [LEGACY_CALL]}
    )
    modern = asking("c1", text="", city="Oslo and surroundings")
    both = asking("c1", text="", city="Oslo and surroundings")
    both.additional_kwargs["tool_calls"] = [LEGACY_CALL]
    threads = enumerate((legacy, modern, both))
    memories = [core_memory([user("hi"), m], chat_store_key=str(n)) for n, m in threads]

    tokens = [memory.get_context().receipt.tokens("current") for memory in memories]

    assert tokens[0] == tokens[1] == tokens[2] > 2 * FRAMING + 1


def test_a_pending_call_of_the_current_exchange_stays(core_memory):
    memory = core_memory([user("warm?"), asking("c1")])

    assert memory.get() == [user("warm?"), asking("c1")]
    assert texts(memory.get()) == ["warm?", None]


def test_a_limit_taken_from_a_model_holds(tenant):
    memory = HierMemChatMemoryBuffer.from_defaults(
        llm=MockLLM(), tenant=tenant, chat_store_key="trip", counting="core"
    )

    assert memory.get_context().receipt.budget == memory.token_limit
