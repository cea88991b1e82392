"""Message ids: kept, never invented, and what makes a repeated write harmless."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage

from hiermem_core import HierMem
from hiermem_core.testing.contracts.probes import database_bytes, spoil_turn
from langchain_hiermem import HierMemChatMessageHistory

EVERYTHING = RemoveMessage(id="__remove_all__")
IDS = ("m1", "m2", "m3")


def history_of(hiermem, thread_id="t1"):
    return HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id=thread_id)


def contents(history):
    return [message.content for message in history.messages]


def test_a_message_without_id_reads_back_without_id(history):
    history.add_messages([HumanMessage("hi"), AIMessage("hello", id="m1"), HumanMessage("hi")])

    assert [message.id for message in history.messages] == [None, "m1", None]
    assert [message.id for message in history.window(1000)] == [None, "m1", None]


@pytest.mark.parametrize("message_id", [None, "m1"])
def test_a_message_shortened_for_the_window_keeps_its_own_id(history, message_id):
    history.add_messages([HumanMessage("word " * 500, id=message_id)])

    (shortened,) = history.window(60)

    assert "characters cut" in shortened.content
    assert shortened.id == message_id


@pytest.mark.parametrize("message_id", [None, "m1"])
def test_a_message_that_lost_a_pending_call_keeps_its_own_id(history, message_id):
    call = {"id": "c1", "name": "find", "args": {}}
    asked = AIMessage("let me see", tool_calls=[call], id=message_id)
    history.add_messages([HumanMessage("a"), asked, HumanMessage("b")])

    (_, view, _) = history.window(1000)

    assert (view.content, view.tool_calls) == ("let me see", [])
    assert view.id == message_id


def test_a_repeated_write_stores_a_message_once(history):
    exchange = [HumanMessage("hi", id="m1"), AIMessage("hello", id="m2")]

    history.add_messages(exchange)
    history.add_messages(exchange)
    history.add_messages([exchange[1], exchange[1], AIMessage("more", id="m3")])

    assert history.messages == [*exchange, AIMessage("more", id="m3")]


def test_messages_without_id_are_stored_each_time(history):
    history.add_messages([HumanMessage("hi"), HumanMessage("hi")])
    history.add_messages([HumanMessage("hi")])

    assert contents(history) == ["hi"] * 3


def test_an_id_with_other_content_is_a_further_turn(history):
    versions = [HumanMessage(text, id="m1") for text in ("draft", "final")]

    for message in (*versions, *versions):
        history.add_messages([message])

    assert history.messages == versions


def test_an_id_with_other_content_in_one_call_is_a_further_turn(history):
    versions = [HumanMessage("draft", id="m1"), HumanMessage("final", id="m1")]

    history.add_messages([*versions, *versions])

    assert history.messages == versions


def test_one_id_may_stand_in_several_threads(hiermem):
    for thread_id in ("t1", "t2"):
        history_of(hiermem, thread_id).add_messages([HumanMessage("hi", id="m1")])

    assert history_of(hiermem, "t1").messages == history_of(hiermem, "t2").messages
    assert history_of(hiermem, "t2").messages == [HumanMessage("hi", id="m1")]


def test_a_message_whose_stored_turn_was_edited_is_a_further_turn(history, thread):
    message = HumanMessage("as said", id="m1")
    history.add_messages([message, AIMessage("fine", id="m2")])
    thread.edit_turn(thread.turns()[0].id, "as edited")

    history.add_messages([message])

    assert contents(history) == ["as edited", "fine", "as said"]
    assert history.messages[-1] == message


def test_after_an_edit_too_a_repeated_write_stores_a_message_once(history, thread):
    message = HumanMessage("as said", id="m1")
    history.add_messages([message])
    thread.edit_turn(thread.turns()[0].id, "as edited")

    for _ in range(3):
        history.add_messages([message, AIMessage("fine", id="m2")])

    assert contents(history) == ["as edited", "as said", "fine"]


def test_the_order_of_keys_in_arguments_is_no_other_content(history):
    one, other = (
        AIMessage("", id="m1", tool_calls=[{"id": "c1", "name": "find", "args": args}])
        for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one == other

    history.add_messages([one])
    history.add_messages([other])

    assert history.messages == [one]


@given(st.lists(st.tuples(st.sampled_from(IDS), st.text(max_size=3) | st.just("a\x00b"))))
def test_adding_again_what_was_read_changes_nothing(pairs):
    with HierMem.open(":memory:") as hiermem:
        history = history_of(hiermem)
        history.add_messages([HumanMessage(text, id=name) for name, text in pairs])
        before = history.messages

        history.add_messages(before)

        assert history.messages == before


def test_remove_takes_out_the_message_of_that_id(history):
    history.add_messages([HumanMessage("a", id="m1"), AIMessage("b", id="m2"), HumanMessage("c")])

    history.add_messages([RemoveMessage(id="m2")])

    assert contents(history) == ["a", "c"]
    assert [message.content for message in history.window(1000)] == ["a", "c"]


def test_remove_takes_out_every_turn_of_that_id(history):
    versions = [HumanMessage("draft", id="m1"), HumanMessage("final", id="m1"), AIMessage("ok")]
    history.add_messages(versions)

    history.add_messages([RemoveMessage(id="m1")])

    assert contents(history) == ["ok"]


def test_remove_knows_turns_of_another_origin_by_their_id(history, thread):
    thread.append([{"role": "user", "content": "a", "id": "u1"}])

    history.add_messages([RemoveMessage(id="u1")])

    assert history.messages == []


def test_remove_all_empties_the_thread_and_keeps_it(history, thread):
    history.add_messages([HumanMessage("a", id="m1"), AIMessage("b")])

    history.add_messages([EVERYTHING])

    assert history.messages == []
    assert history.window(1000) == []
    assert len(thread.turns(status="archived")) == 2


def test_remove_all_of_an_empty_thread_is_no_error(hiermem, history):
    history.add_messages([EVERYTHING])

    assert history.messages == []


def test_remove_all_spares_other_threads_and_tenants(hiermem, history):
    others = [
        history_of(hiermem, "t2"),
        HierMemChatMessageHistory(hiermem, tenant_id="bob", thread_id="t1"),
    ]
    for one in (history, *others):
        one.add_messages([HumanMessage("a", id="m1")])

    history.add_messages([EVERYTHING])

    assert [contents(other) for other in others] == [["a"], ["a"]]


@pytest.mark.parametrize("others", [[], [HumanMessage("new", id="m2")], [RemoveMessage(id="m1")]])
def test_an_unknown_id_raises_and_the_whole_call_stores_nothing(hiermem, history, others):
    history.add_messages([HumanMessage("a", id="m1"), AIMessage("b")])
    before = database_bytes(hiermem)

    with pytest.raises(ValueError, match="ghost"):
        history.add_messages([*others, RemoveMessage(id="ghost"), *others])

    assert contents(history) == ["a", "b"]
    assert database_bytes(hiermem) == before


def test_an_id_of_another_thread_or_tenant_is_unknown(hiermem, history):
    history.add_messages([HumanMessage("mine", id="m1")])
    stranger = HierMemChatMessageHistory(hiermem, tenant_id="bob", thread_id="t1")

    for foreign in (history_of(hiermem, "t2"), stranger):
        with pytest.raises(ValueError, match="m1"):
            foreign.add_messages([RemoveMessage(id="m1")])

    assert contents(history) == ["mine"]


def test_remove_and_add_in_one_call_follow_the_order_of_the_call(history):
    history.add_messages([HumanMessage("a", id="m1"), AIMessage("b", id="m2")])

    history.add_messages(
        [
            HumanMessage("c", id="m3"),
            RemoveMessage(id="m1"),
            RemoveMessage(id="m3"),
            HumanMessage("d", id="m4"),
        ]
    )

    assert contents(history) == ["b", "d"]


def test_remove_all_and_add_in_one_call_leave_what_comes_after(history):
    history.add_messages([HumanMessage("a", id="m1")])

    history.add_messages([HumanMessage("b"), EVERYTHING, HumanMessage("c"), AIMessage("d")])

    assert contents(history) == ["c", "d"]


def test_a_removed_message_can_be_added_again_at_the_end(history):
    first = HumanMessage("a", id="m1")
    history.add_messages([first, AIMessage("b", id="m2")])

    history.add_messages([RemoveMessage(id="m1"), first])
    history.add_messages([RemoveMessage(id="m2")])
    history.add_messages([AIMessage("b", id="m2")])

    assert history.messages == [first, AIMessage("b", id="m2")]


def test_remove_works_beside_a_turn_whose_dump_is_damaged(history, thread):
    history.add_messages([HumanMessage("a", id="m1"), AIMessage("b", id="m2")])
    spoil_turn(thread, 1, dump="{broken")

    history.add_messages([RemoveMessage(id="m2")])

    assert contents(history) == ["a"]


def test_a_result_whose_call_was_removed_is_not_in_the_window(history):
    call = {"id": "c1", "name": "find", "args": {}}
    history.add_messages([HumanMessage("a"), AIMessage("", tool_calls=[call], id="m1")])
    history.add_messages([ToolMessage("found", tool_call_id="c1"), AIMessage("done")])

    history.add_messages([RemoveMessage(id="m1")])

    assert [message.content for message in history.window(1000)] == ["a", "done"]


def test_of_concurrent_removals_each_succeeds_or_finds_no_such_id(hiermem, history):
    for number in range(20):
        history.add_messages([HumanMessage("a", id=f"m{number}")])
    start = Barrier(4)

    def remove(message_id):
        start.wait()
        try:
            history_of(hiermem).add_messages([RemoveMessage(id=message_id)])
        except ValueError:
            return "unknown"
        return "removed"

    with ThreadPoolExecutor(4) as workers:
        for number in range(20):
            outcomes = list(workers.map(remove, [f"m{number}"] * 4))
            assert "removed" in outcomes
            assert set(outcomes) <= {"removed", "unknown"}

    assert history.messages == []


def test_remove_all_and_a_concurrent_removal_both_succeed_or_name_the_id(hiermem, history):
    start = Barrier(2)

    def remove(message_id):
        start.wait()
        try:
            history_of(hiermem).add_messages([RemoveMessage(id=message_id)])
        except ValueError:
            return message_id
        return None

    with ThreadPoolExecutor(2) as workers:
        for _ in range(30):
            history.add_messages([HumanMessage("a", id="m1"), AIMessage("b", id="m2")])
            refused = set(workers.map(remove, [EVERYTHING.id, "m1"]))
            assert refused <= {None, "m1"}
            assert history.messages == []
