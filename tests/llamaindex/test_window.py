"""The window of compat mode: `ChatMemoryBuffer`'s rule, exactly, but for one row."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.utils import get_tokenizer
from llamaindex.samples import (
    asking,
    assistant,
    block,
    exchange,
    notation_of,
    result,
    texts,
    thread_of,
    user,
)

from hiermem_core import FunctionCounter, HierMem, Origin, TurnDraft
from hiermem_core.testing.contracts.probes import database_bytes, reads_of
from hiermem_core.testing.contracts.transcripts import FRAGMENTS
from llamaindex_hiermem import HierMemChatMemoryBuffer
from llamaindex_hiermem.messages import message_to_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROWS = {
    "an empty thread": ("", 10, 0, ""),
    "a thread that fits": ("U2 A2 U2", 10, 0, "U2 A2 U2"),
    "a thread that fits and starts with the assistant": ("A2 U2", 10, 0, "A2 U2"),
    "a thread that fits and starts with a tool result": ("T2 U2", 10, 0, "T2 U2"),
    "a total that equals the limit": ("U5 A5", 10, 0, "U5 A5"),
    "one word too many": ("U5 A5 U1", 10, 0, "U1"),
    "no answer without its question": ("U5 A3 U2 A2", 8, 0, "U2 A2"),
    "no tool exchange without its question": ("U5 A1 T1 A1 U2", 8, 0, "U2"),
    "a system message is trimmed like any": ("S5 U5 A1 U1", 8, 0, "U5 A1 U1"),
    "a last message over the limit": ("U2 U50", 10, 0, "U50"),
    "a last answer whose question is over the limit": ("U20 A2", 10, 0, "A2"),
    "an initial count that leaves nothing": ("U2", 5, 5, "U2"),
    "an initial count that leaves room": ("U2 A2 U2 A2", 8, 4, "U2 A2"),
    "a function message opens a window": ("U5 F3 U1", 6, 0, "F3 U1"),
    "a model message opens a window": ("U5 M3 U1", 6, 0, "M3 U1"),
    "a developer message opens a window": ("U5 D3 U1", 6, 0, "D3 U1"),
    "a chatbot message opens a window": ("U5 C3 U1", 6, 0, "C3 U1"),
    "a system message opens a window": ("U5 S3 U1", 6, 0, "S3 U1"),
}

EXCHANGE_ROWS = {
    "a result over the limit": ("U2 A1 T50", "U2 A1 T50"),
    "a question over the limit": ("U20 A1 T1", "U20 A1 T1"),
    "only the newest exchange": ("U9 A1 U2 A1 T50", "U2 A1 T50"),
    "two rounds of calls": ("U9 A1 U2 A1 T9 A1 T9", "U2 A1 T9 A1 T9"),
    "no question at all": ("S9 A1 T50", "A1 T50"),
    "no question at all, and two results": ("S9 A1 T5 T50", "A1 T5 T50"),
}

SILENT_BLOCKS = {
    "a tool call": lambda: asking("c1", query="large " * 500).blocks,
    "thinking": lambda: [block("thinking", content="hm " * 500)],
    "an image": lambda: [block("image", url="https://example.org/a.png")],
    "audio": lambda: [block("audio", url="https://example.org/a.mp3")],
    "video": lambda: [block("video", url="https://example.org/a.mp4")],
    "a document": lambda: [block("document", url="https://example.org/a.pdf")],
    "nothing but large kwargs": list,
}

TOKENIZERS: dict[str, Callable[[str], list]] = {
    "words": str.split,
    "characters": list,
    "the default": get_tokenizer(),
    "a quarter of the characters": lambda text: [None] * -(-len(text) // 4),
    "words between special tokens": lambda text: ["<s>", "<bos>", *text.split(), "</s>"],
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_the_window_is_the_longest_candidate_that_fits(make_memory, call, row):
    thread, limit, initial, window = row
    memory = make_memory(token_limit=limit)
    messages = thread_of(thread)
    memory.put_messages(messages)

    returned = await call(memory.get, initial_token_count=initial)

    assert notation_of(returned) == window
    assert returned == messages[len(messages) - len(returned) :]


@pytest.mark.parametrize(("thread", "window"), EXCHANGE_ROWS.values(), ids=EXCHANGE_ROWS)
async def test_l08_a_newest_tool_result_comes_with_its_whole_exchange_and_a_warning(
    make_memory, call, thread, window
):
    memory = make_memory(token_limit=10)
    messages = thread_of(thread)
    memory.put_messages(messages)

    context = await call(memory.get_context)

    warning, *others = context.warnings
    left_out = len(messages) - len(context.messages)
    words = sum(int(term[1:]) for term in window.split())
    assert notation_of(context.messages) == window
    assert list(context.messages) == messages[-len(context.messages) :]
    assert (warning.code, warning.count) == ("over_budget", len(context.messages))
    assert (warning.detail["needed"], warning.detail["available"]) == (words, 10)
    told = [("turns_trimmed", left_out)] if left_out else []
    assert [(other.code, other.count) for other in others] == told


async def test_the_receipt_of_a_window_says_where_the_tokens_went(tenant, make_memory, call):
    memory = make_memory(token_limit=10)
    memory.put_messages(thread_of("U5 A5 U2 A3"))

    receipt = (await call(memory.get_context, initial_token_count=4)).receipt

    ids = tuple(turn.id for turn in tenant.thread("trip").turns()[2:])
    assert (receipt.budget, receipt.total, receipt.counter) == (10, 9, "tokenizer_fn")
    assert [(s.name, s.tokens, s.ids) for s in receipt.sections] == [
        ("prefix", 4, ()),
        ("window", 5, ids),
    ]


def test_turns_of_another_framework_follow_the_rule_by_their_canonical_role(tenant, make_memory):
    roles = {"user": "human", "assistant": "ai", "tool": "tool"}
    tenant.thread("trip").append(
        TurnDraft(role=role, content="one two three", origin=Origin("langchain", word, "{}"))
        for role, word in [*roles.items(), *list(roles.items())[:2]]
    )
    memory = make_memory(token_limit=14)

    windows = [notation_of(memory.model_copy(update={"token_limit": n}).get()) for n in (14, 8)]

    assert windows == ["U3 A3", "U3 A3"]


@pytest.mark.parametrize("thread", ["", "U2", "A2 U50"])
async def test_l07_an_initial_count_over_the_limit_raises_whatever_is_stored(
    make_memory, call, thread
):
    memory = make_memory(token_limit=5)
    memory.put_messages(thread_of(thread))

    with pytest.raises(ValueError, match=r"^Initial token count exceeds token limit$"):
        await call(memory.get, initial_token_count=6)


async def test_the_first_argument_of_get_is_the_input_and_no_count(make_memory, call):
    memory = make_memory(token_limit=5)
    memory.put(user("one two"))

    assert texts(await call(memory.get, 6)) == ["one two"]
    assert texts(await call(memory.get, "any question", unknown="argument")) == ["one two"]


@pytest.mark.parametrize("blocks", SILENT_BLOCKS.values(), ids=SILENT_BLOCKS)
def test_a_message_without_text_counts_one_for_it(make_memory, blocks):
    silent = ChatMessage(role="user", blocks=blocks(), additional_kwargs={"x": "large " * 500})
    memory = make_memory(token_limit=10)
    memory.put_messages([silent, user("one " * 9)])

    everything = memory.get()
    memory.token_limit = 9
    rest = memory.get()

    assert (len(everything), len(rest)) == (2, 1)


def test_the_text_blocks_of_a_message_are_joined_by_a_newline(make_memory):
    memory = make_memory(token_limit=8, tokenizer_fn=list)
    two_blocks = ChatMessage(
        role="user", blocks=[block("text", text="ab"), block("text", text="cd")]
    )
    memory.put_messages([user("x"), user("y"), two_blocks])

    assert texts(memory.get()) == ["y", "ab\ncd"][-2:]
    memory.token_limit = 6
    assert texts(memory.get()) == ["ab\ncd"]


pieces = st.sampled_from(
    (*FRAGMENTS, "tremendous", "программ", " ", "\n   ", "   \n", "\n\n", "'s", "x  ", "  x")
)
said = st.none() | st.lists(pieces, max_size=4).map("".join)
roles = st.sampled_from([*MessageRole, MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL])


@st.composite
def messages(draw: st.DrawFn) -> ChatMessage:
    """Give a message of any role; assistants may call, tools answer one of few calls."""
    role, text = draw(roles), draw(said)
    call_id = draw(st.sampled_from(("c1", "c2")))
    if role is MessageRole.TOOL:
        return result(call_id, text or "")
    if role is MessageRole.ASSISTANT and draw(st.booleans()):
        return asking(call_id, text=text)
    return ChatMessage(role=role, content=text)


@st.composite
def threads(draw: st.DrawFn) -> list[ChatMessage]:
    """Give threads, some longer than one page of the store."""
    thread = draw(st.lists(messages(), max_size=8))
    return thread * draw(st.sampled_from((1, 1, 1, 4, 30)))


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
@given(thread=threads(), limit=st.integers(1, 60) | st.integers(1, 900), initial=st.integers(0, 30))
@example(thread=[user("tremendous")] * 30, limit=33, initial=0)
@example(thread=[user("\n   ")] * 30, limit=10, initial=0)
@example(thread=[user("one two three")] * 40, limit=123, initial=0)
@example(thread=[user("Next?"), assistant("Done.")] * 200, limit=300, initial=0)
@example(
    thread=[assistant("Done.")] * 90 + [user("x"), *[assistant("yes, ")] * 90], limit=130, initial=0
)
def test_get_equals_upstream_but_for_the_orphan_result(tokenizer, thread, limit, initial):
    upstream = ChatMemoryBuffer.from_defaults(
        chat_history=thread, token_limit=limit, tokenizer_fn=tokenizer
    )
    memory = HierMemChatMemoryBuffer.from_defaults(
        chat_history=thread, token_limit=limit, tokenizer_fn=tokenizer
    )

    try:
        expected = upstream.get(initial_token_count=initial)
    except ValueError as error:
        with pytest.raises(ValueError, match=f"^{error}$"):
            memory.get(initial_token_count=initial)
    else:
        assert memory.get(initial_token_count=initial) == with_its_exchange(expected, thread)
    assert memory.get_all() == thread
    memory.close()


def with_its_exchange(
    window: Sequence[ChatMessage], thread: Sequence[ChatMessage]
) -> Sequence[ChatMessage]:
    """Return what HierMem promises where upstream returns `window`.

    The two differ exactly where upstream returns the last message of a longer thread alone and it
    is a tool result.
    """
    is_orphan = len(window) == 1 < len(thread) and window[0].role is MessageRole.TOOL
    if not is_orphan:
        return window
    for start in range(len(thread) - 1, -1, -1):
        if thread[start].role is MessageRole.USER:
            return thread[start:]
    call_id = thread[-1].additional_kwargs["tool_call_id"]
    for start in range(len(thread) - 1, -1, -1):
        if call_id in [getattr(item, "tool_call_id", None) for item in thread[start].blocks]:
            return thread[start:]
    return thread[-1:]


async def test_l27_the_window_respects_the_limit_after_a_set_of_twelve_times_as_much(
    make_memory, call
):
    memory = make_memory(token_limit=100)
    await call(memory.set, [message for n in range(120) for message in exchange(f"e{n}")])

    window = await call(memory.get)

    words = sum(len(str(text).split()) for text in texts(window))
    assert window == memory.get_all()[-20:]
    assert words == 100


@pytest.mark.parametrize("mode", ["compat", "core"])
@pytest.mark.filterwarnings("ignore::llamaindex_hiermem.memory.HierMemTrimWarning")
async def test_l08_no_window_begins_with_a_result_or_parts_it_from_its_call(
    make_memory, call, mode
):
    memory = make_memory(counting=mode)
    rounds = [asking("c1", "c2"), result("c1", "mild " * 9), result("c2", "wet " * 30)]
    for n in range(3):
        memory.put_messages([user(f"question {n}"), *rounds, assistant("so " * 5)])
    memory.put_messages([user("and now?"), *rounds])

    for limit in range(40, 300, 7):
        memory.token_limit = limit
        window = await call(memory.get)
        assert window[0].role is not MessageRole.TOOL
        assert asked(window) == answered(window)


def asked(window: Sequence[ChatMessage]) -> list[str]:
    return [call.id for m in window for call in message_to_turn(m).tool_calls]


def answered(window: Sequence[ChatMessage]) -> list[str]:
    return [m.additional_kwargs["tool_call_id"] for m in window if m.role is MessageRole.TOOL]


LENGTHS = (100, 1_000, 10_000)
PAGE = 96
"""Turns of one read; the shortest thread ends within a page."""


@pytest.fixture(scope="module")
def long_threads(tmp_path_factory):
    """Give threads of 100, 1,000 and 10,000 messages of 40 words; 3,000 words are 75 of them."""
    words = FunctionCounter(str.split, id="words")
    with HierMem.open(tmp_path_factory.mktemp("long") / "memory.db", counter=words) as hiermem:
        for length in LENGTHS:
            history = [m for n in range(length // 2) for m in exchange(f"e{n}", words=40)]
            HierMemChatMemoryBuffer.from_defaults(
                history, tenant=hiermem.tenant("alice"), chat_store_key=f"{length}"
            )
        yield hiermem


@pytest.mark.parametrize("mode", ["compat", "core"])
@pytest.mark.filterwarnings("ignore::llamaindex_hiermem.memory.HierMemTrimWarning")
async def test_l06_what_get_reads_does_not_grow_with_the_thread(long_threads, call, mode):
    rows, steps, windows = [], [], []

    for length in LENGTHS:
        memory = HierMemChatMemoryBuffer.from_defaults(
            tenant=long_threads.tenant("alice"),
            chat_store_key=f"{length}",
            counting=mode,
            tokenizer_fn=str.split,
        )
        with reads_of(long_threads) as reads:
            windows.append(await call(memory.get))
        rows.append(reads.rows)
        steps.append(reads.steps)

    assert 50 < len(windows[0]) < 100
    assert {len(window) for window in windows} == {len(windows[0])}
    assert rows[1] == rows[2] < rows[0] + PAGE
    assert steps[2] < 1.05 * steps[1]


@pytest.mark.parametrize("mode", ["compat", "core"])
@pytest.mark.filterwarnings("ignore::llamaindex_hiermem.memory.HierMemTrimWarning")
async def test_get_writes_nothing_and_leaves_get_all_whole(hiermem, make_memory, call, mode):
    memory = make_memory(token_limit=50, counting=mode)
    thread = [message for n in range(20) for message in exchange(f"e{n}")]
    memory.put_messages(thread)
    before = database_bytes(hiermem)

    windows = [await call(memory.get) for _ in range(3)]

    assert windows[0]
    assert windows[0] == windows[1] == windows[2]
    assert database_bytes(hiermem) == before
    assert await call(memory.get_all) == thread


def test_texts_are_counted_once_however_often_get_runs(make_memory):
    calls = count()
    memory = make_memory(token_limit=20, tokenizer_fn=lambda text: (next(calls), text.split())[1])
    memory.put_messages([message for n in range(30) for message in exchange(f"e{n}")])
    memory.get()
    first = next(calls)

    memory.get()

    assert next(calls) - first <= 4


def test_another_tokenizer_counts_from_the_next_get_on(make_memory):
    memory = make_memory(token_limit=6)
    memory.put_messages([user("aaa"), user("bbb"), user("ccc")])
    words = memory.get()
    memory.tokenizer_fn = list

    assert len(words) == 3
    assert texts(memory.get()) == ["ccc"]


def test_a_set_during_a_get_gives_the_old_thread_or_the_new_one(make_memory):
    old = [user(f"old {n}") for n in range(200)]
    new = [user(f"new {n}") for n in range(5)]
    calls = count()

    def tokenizer(text: str) -> list[str]:
        if next(calls) == 10:
            memory.set(new)
        return text.split()

    memory = make_memory(token_limit=1_000, tokenizer_fn=tokenizer)
    memory.put_messages(old)

    assert memory.get() in (old, new)
