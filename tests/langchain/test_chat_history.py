"""The history is the whole log of one thread: in order, equal, and nobody else's."""

from __future__ import annotations

import inspect
from copy import deepcopy
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    get_buffer_string,
)

from hiermem_core import HierMem, MissingIdentityError, TurnDraft
from hiermem_core.testing.contracts.probes import database_bytes, reads_of, spoil_turn
from langchain_hiermem import HISTORY_FIELDS, HierMemChatMessageHistory, history_factory

CALL = {"id": "c1", "name": "find", "args": {"place": "Oslo", "days": 2}, "type": "tool_call"}

TOOL_RUN = [
    HumanMessage("weather?"),
    AIMessage("", tool_calls=[CALL, {**CALL, "id": "c2", "args": {"place": "Rome"}}]),
    ToolMessage("rain", tool_call_id="c1", name="find", artifact={"mm": 3}),
    ToolMessage("sun", tool_call_id="c2", status="error"),
    AIMessage("Rain in Oslo, sun in Rome."),
]

EVERY_KIND = [
    SystemMessage("be brief"),
    *TOOL_RUN,
    FunctionMessage("42", name="add"),
    ChatMessage("hm", role="critic"),
    HumanMessage([{"type": "text", "text": "look"}, {"type": "image", "url": "https://x.org/a"}]),
]

ODD_NAMES = [
    *("acme", "acme-corp", "john_doe", "john-doe", "a%", "ab", "a_", "A", "a/b", ".."),
    *("\u00e9", "e\u0301", "acme\nt1", " acme"),
]
"""Pairs that a pattern, a path, a joined key or a folded letter would mix up."""


def history_of(hiermem, tenant_id="acme", thread_id="t1", **options):
    return HierMemChatMessageHistory(hiermem, tenant_id=tenant_id, thread_id=thread_id, **options)


def contents(history):
    return [message.content for message in history.messages]


def test_a_new_thread_reads_empty_and_reading_creates_nothing(hiermem, history):
    assert history.messages == []
    assert history.window(1000) == []
    assert str(history) == ""
    assert hiermem.tenant("acme").threads() == []


def test_messages_of_every_kind_come_back_equal_and_in_order(history):
    history.add_messages(EVERY_KIND)

    assert history.messages == EVERY_KIND
    assert [type(message) for message in history.messages] == [type(m) for m in EVERY_KIND]


def test_the_log_is_never_trimmed(hiermem):
    with HierMem.open(":memory:", window_exchanges=1) as small:
        history = history_of(small)
        for number in range(300):
            history.add_messages([HumanMessage(f"question {number}"), AIMessage("word " * 50)])

        assert len(history.messages) == 600
        assert history.messages[0] == HumanMessage("question 0")


def test_the_text_form_is_the_buffer_string(history):
    history.add_messages(EVERY_KIND)

    assert str(history) == get_buffer_string(history.messages)
    assert "AI: Rain in Oslo" in str(history)


def test_the_conveniences_of_the_base_class_store_messages(history):
    assert isinstance(history, BaseChatMessageHistory)

    history.add_user_message("hi")
    history.add_ai_message("hello")
    history.add_message(SystemMessage("be kind"))

    assert history.messages == [HumanMessage("hi"), AIMessage("hello"), SystemMessage("be kind")]


def test_an_empty_batch_changes_nothing(hiermem, history):
    history.add_messages([])

    assert hiermem.tenant("acme").threads() == []


def test_every_access_gives_a_fresh_list(history):
    history.add_messages(EVERY_KIND)

    for read in (lambda: history.messages, lambda: history.window(5000)):
        taken = read()
        taken.clear()
        assert len(read()) >= len(TOOL_RUN)


def test_changing_what_was_added_or_read_changes_nothing_stored(history):
    given_messages = deepcopy(EVERY_KIND)
    history.add_messages(given_messages)

    for messages in (given_messages, history.messages, history.window(5000)):
        for message in messages:
            message.additional_kwargs["seen"] = True
            message.response_metadata["seen"] = True
            if isinstance(message.content, list):
                message.content.append({"type": "text", "text": "more"})
            if isinstance(message, AIMessage):
                for call in message.tool_calls:
                    call["args"]["place"] = "nowhere"
            message.content = "changed"
        del messages[1:]

    assert history.messages == EVERY_KIND


def test_lc33_every_message_of_a_tool_run_is_stored_in_order(history):
    history.add_messages(TOOL_RUN)

    assert history.messages == TOOL_RUN
    assert history.messages[1].tool_calls == TOOL_RUN[1].tool_calls
    assert history.messages[2].artifact == {"mm": 3}
    assert history.messages[3].status == "error"
    assert history.window(5000) == TOOL_RUN


def test_lc22_order_is_the_order_of_adding_whatever_the_clock_says(history, clock):
    for step, text in ((0, "a"), (0, "b"), (-3600, "c"), (-1, "d"), (7200, "e")):
        clock.advance(step)
        history.add_messages([HumanMessage(text), AIMessage(text.upper())])

    assert "".join(contents(history)) == "aAbBcCdDeE"


def test_lc22_the_newest_messages_come_oldest_first(history, clock):
    for text in "abcdefgh":
        clock.advance(-60)
        history.add_messages([HumanMessage(text * 40), AIMessage(text.upper() * 40)])

    window = history.window(120)

    assert 2 <= len(window) < 16
    assert window == history.messages[-len(window) :]


def test_lc18_look_alike_tenants_and_threads_see_only_their_own(hiermem):
    for tenant, thread in permutations(ODD_NAMES, 2):
        history_of(hiermem, tenant, thread).add_user_message(f"{tenant} | {thread}")

    for tenant, thread in permutations(ODD_NAMES, 2):
        own = history_of(hiermem, tenant, thread)
        assert own.messages == own.window(1000) == [HumanMessage(f"{tenant} | {thread}")]
        assert history_of(hiermem, tenant, tenant).messages == []


def test_lc19_one_factory_and_one_thread_id_serve_two_tenants_apart(hiermem):
    factory = history_factory(hiermem)
    ann, bob = factory("ann", "t1"), factory("bob", "t1")
    ann.add_messages([HumanMessage("ann asks", id="m1"), AIMessage("to ann", id="m2")])
    bob.add_messages([HumanMessage("bob asks", id="m1")])

    bob.add_messages([AIMessage("to bob", id="m2")])

    assert contents(ann) == ["ann asks", "to ann"]
    assert contents(bob) == [message.content for message in bob.window(1000)]
    assert contents(bob) == ["bob asks", "to bob"]


def test_lc19_a_foreign_thread_reads_and_clears_like_one_that_does_not_exist(hiermem, history):
    history.add_messages(TOOL_RUN)
    stranger = history_of(hiermem, "bob", "t1")

    stranger.clear()

    assert stranger.messages == []
    assert stranger.window(1000) == []
    assert history.messages == TOOL_RUN


def test_clear_deletes_this_thread_and_nothing_else(hiermem, history):
    others = [history_of(hiermem, "acme", "t2"), history_of(hiermem, "bob", "t1")]
    for one in (history, *others):
        one.add_messages([HumanMessage("hi", id="m1"), AIMessage("hello")])

    history.clear()

    assert history.messages == []
    assert [contents(other) for other in others] == [["hi", "hello"]] * 2
    assert [info.thread_id for info in hiermem.tenant("acme").threads()] == ["t2"]


def test_a_cleared_thread_leaves_no_turn_behind_and_begins_anew(hiermem, history, thread):
    history.add_messages([HumanMessage("secret word", id="m1"), AIMessage("so be it")])
    history.clear()
    history.clear()

    history.add_messages([HumanMessage("secret word", id="m1")])

    assert history.messages == [HumanMessage("secret word", id="m1")]
    assert thread.turns(status="archived") == []
    assert thread.turns()[0].seq == 1


@pytest.mark.parametrize("missing", ["", None])
def test_a_missing_tenant_or_thread_is_refused_before_anything_is_read(hiermem, missing):
    for names in ((missing, "t1"), ("acme", missing)):
        with pytest.raises(MissingIdentityError) as refused, reads_of(hiermem) as reads:
            history_of(hiermem, *names)
        with pytest.raises(ValueError, match="no default"):
            history_factory(hiermem)(*names)

        assert refused.value.name in {"tenant", "thread"}
        assert reads.steps == 0


def test_lc32_the_factory_is_a_plain_function_of_tenant_and_thread(hiermem):
    factory = history_factory(hiermem, strict=True)

    assert not inspect.iscoroutinefunction(history_factory)
    assert inspect.isfunction(factory)
    assert not inspect.iscoroutinefunction(factory)
    assert list(inspect.signature(factory).parameters) == ["tenant_id", "thread_id"]
    made = factory(thread_id="t1", tenant_id="acme")
    assert isinstance(made, HierMemChatMessageHistory)


def test_lc32_the_factory_does_nothing_to_the_database(hiermem):
    factory = history_factory(hiermem)
    before = database_bytes(hiermem)

    with reads_of(hiermem) as reads:
        histories = [factory("acme", f"t{number}") for number in range(100)]

    assert len(histories) == 100
    assert (reads.rows, reads.steps) == (0, 0)
    assert database_bytes(hiermem) == before


def test_the_fields_name_what_the_factory_takes_and_have_no_default(hiermem):
    parameters = inspect.signature(history_factory(hiermem)).parameters

    assert [field.id for field in HISTORY_FIELDS] == list(parameters)
    assert all(field.annotation is str and field.is_shared for field in HISTORY_FIELDS)
    assert all(field.default is None and field.name for field in HISTORY_FIELDS)


def test_turns_of_another_origin_are_read_too(history, thread):
    thread.append([{"role": "user", "content": "from the core", "id": "u1"}])
    thread.append([TurnDraft(role="assistant", content="an answer", id="a1")])

    assert history.messages == [
        HumanMessage("from the core", id="u1"),
        AIMessage("an answer", id="a1"),
    ]


@pytest.mark.parametrize("damage", [{"dump": "{broken"}, {"body": "{broken"}, {"role": "narrator"}])
def test_one_damaged_turn_never_blocks_the_thread(history, thread, damage):
    history.add_messages(TOOL_RUN)
    spoil_turn(thread, 3, **damage)

    messages = history.messages

    assert len(messages) == len(TOOL_RUN)
    assert [*messages[:2], *messages[3:]] == [*TOOL_RUN[:2], *TOOL_RUN[3:]]
    assert history.window(5000)


def test_chunks_of_one_stream_are_stored_as_one_full_message(history):
    pieces = [AIMessageChunk("Hel", id="r1"), AIMessageChunk("lo", id="r1")]

    history.add_messages([HumanMessage("hi"), *pieces, AIMessageChunk("!", id="r2")])

    assert history.messages == [
        HumanMessage("hi"),
        AIMessage("Hello", id="r1"),
        AIMessage("!", id="r2"),
    ]
    assert {type(message) for message in history.messages} == {HumanMessage, AIMessage}


@given(st.lists(st.sampled_from(EVERY_KIND), max_size=8), st.data())
def test_any_split_into_batches_gives_the_same_log(messages, data):
    with HierMem.open(":memory:") as hiermem:
        history, rest = history_of(hiermem), list(messages)
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            history.add_messages(rest[:size])
            rest = rest[size:]

        assert history.messages == messages
