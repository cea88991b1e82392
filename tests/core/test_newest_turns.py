"""The newest turns of threads, kept: always what is stored, and read once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import HierMem, ThreadNotFoundError, ToolCall, TurnDraft
from hiermem_core.threads import newest

ACTIONS = st.sampled_from(["append", "many", "edit", "delete", "replace", "archive", "forget"])


@pytest.fixture
def hiermem(tmp_path):
    with HierMem.open(tmp_path / "memory") as hiermem:
        yield hiermem


def said(number):
    return TurnDraft(role=("user", "assistant")[number % 2], content=f"turn {number}")


class Looking:
    """A connection that counts the turns it gives."""

    def __init__(self, connection):
        self._connection = connection
        self.dialect = connection.dialect
        self.rows = []

    def exec_driver_sql(self, *given):
        result = self._connection.exec_driver_sql(*given).freeze()
        self.rows.append(sum(row.content is not None for row in result().all()))
        return result()


def a_change(thread, action, number):
    if action == "append":
        thread.append([said(number)])
    elif action == "many":
        thread.append([said(number + extra) for extra in range(newest.MOST + 3)])
    elif action == "replace":
        thread.replace([said(number), said(number + 1)])
    elif action == "forget":
        thread.delete()
    elif turns := thread_turns(thread):
        middle = turns[len(turns) // 2].id
        if action == "edit":
            thread.edit_turn(middle, f"edited {number}")
        elif action == "delete":
            thread.delete_turns([middle])
        else:
            thread.append([said(number)], removing=[middle])


def thread_turns(thread):
    try:
        return list(thread.turns())
    except ThreadNotFoundError:
        return []


@given(steps=st.lists(st.tuples(ACTIONS, st.booleans(), st.sampled_from([1, 5, 200]))))
def test_whatever_is_done_here_or_elsewhere_what_is_kept_is_what_is_stored(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("memory")
    with HierMem.open(folder) as ours, HierMem.open(folder) as theirs:
        threads = [hiermem.tenant("ada").thread("t") for hiermem in (ours, theirs)]
        for number, (action, is_ours, size) in enumerate(steps):
            a_change(threads[not is_ours], action, number)
            stored = thread_turns(threads[1])
            for thread in threads:
                try:
                    assert list(thread.turns(last=size)) == stored[-size:]
                except ThreadNotFoundError:
                    assert not stored


def test_a_thread_of_the_same_name_made_anew_is_read_anew(hiermem):
    thread = hiermem.tenant("ada").thread("t")
    thread.append([said(0), said(1)])
    assert len(thread.turns(last=5)) == 2
    thread.delete()
    thread.append([said(7)])
    assert [turn.content for turn in thread.turns(last=5)] == ["turn 7"]


def test_tenants_with_the_same_thread_keep_their_own(hiermem):
    for name in ("ada", "bob"):
        hiermem.tenant(name).thread("t").append([TurnDraft(role="user", content=name)])
    for _ in range(2):
        for name in ("ada", "bob"):
            (turn,) = hiermem.tenant(name).thread("t").turns(last=5)
            assert turn.content == name


def test_what_a_caller_changes_in_a_turn_reaches_no_other_reader(hiermem):
    thread = hiermem.tenant("ada").thread("t")
    calls = [ToolCall("1", "look", {"where": ["here"]})]
    thread.append(
        [
            TurnDraft(role="user", content="hi", metadata={"a": {"b": 1}}),
            TurnDraft(role="assistant", content=None, tool_calls=calls),
        ]
    )
    for _ in range(2):
        first, second = thread.turns(last=2)
        assert (first.metadata, second.tool_calls[0].args) == ({"a": {"b": 1}}, {"where": ["here"]})
        first.metadata["a"]["b"] = 2
        second.tool_calls[0].args["where"].append("there")


def test_what_was_read_once_is_not_read_again(hiermem):
    thread = hiermem.tenant("ada").thread("t")
    thread.append([said(number) for number in range(100)])
    thread.turns(last=50)
    with hiermem._services.database.read() as connection:
        looked = Looking(connection)
        _, turns = hiermem._services.newest_turns.read(looked, "ada", "t", 50)
    assert (len(turns), looked.rows) == (50, [0])


def test_a_thread_too_large_to_be_kept_is_read_all_the_same(hiermem, monkeypatch):
    monkeypatch.setattr(newest, "CHARACTERS", 1000)
    thread = hiermem.tenant("ada").thread("t")
    thread.append([TurnDraft(role="user", content="x" * 5000)])
    for _ in range(2):
        assert len(thread.turns(last=1)[0].content) == 5000
    assert not hiermem._services.newest_turns._kept
