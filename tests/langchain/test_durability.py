"""What a call has stored outlives the process, and is read by others."""

from __future__ import annotations

import json
import signal

import pytest
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from hiermem_core import HierMem
from langchain_hiermem import HierMemChatMessageHistory

LOG = [
    SystemMessage("be brief"),
    HumanMessage([{"type": "text", "text": "größe 👍🏽"}], id="m1", name="ann"),
    AIMessage(
        "",
        tool_calls=[{"id": "c1", "name": "find", "args": {"n": 1, "deep": [None, 1.5]}}],
        invalid_tool_calls=[{"id": "c2", "name": "find", "args": "{", "error": "cut"}],
        usage_metadata={"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
        response_metadata={"model_name": "fake"},
        id="m2",
    ),
    ToolMessage("found", tool_call_id="c1", artifact={"rows": [1, 2]}, status="error"),
    FunctionMessage("42", name="add"),
    ChatMessage("hm", role="critic"),
    AIMessage("done"),
]

READ = """
    import json, sys
    from langchain_core.messages import messages_to_dict
    from hiermem_core import HierMem
    from langchain_hiermem import HierMemChatMessageHistory

    with HierMem.open(sys.argv[1]) as hiermem:
        history = HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id="t1")
        read = [messages_to_dict(history.messages), messages_to_dict(history.window(100_000))]
        print(json.dumps(read))
"""

ADD_AND_DIE = """
    import os, signal, sys
    from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
    from hiermem_core import HierMem
    from hiermem_core.testing import FaultPlan
    from langchain_hiermem import HierMemChatMessageHistory

    location, point = sys.argv[1:]
    hiermem = HierMem.open(location)
    history = HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id="t1")
    history.add_messages([HumanMessage("a", id="m1"), AIMessage("b", id="m2")])
    batch = [RemoveMessage(id="m1"), HumanMessage("c"), AIMessage("word " * 100_000)]
    if point == "returned":
        history.add_messages(batch)
        os.kill(os.getpid(), signal.SIGKILL)
    with FaultPlan(point, action="kill"):
        history.add_messages(batch)
"""


def contents(hiermem):
    history = HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id="t1")
    return [message.content for message in history.messages]


def test_another_process_reads_equal_messages(run_python, hiermem, location, history):
    history.add_messages(LOG)

    ended = run_python(READ, location)

    assert ended.returncode == 0, ended.stderr
    messages, window = json.loads(ended.stdout)
    assert messages == messages_to_dict(LOG)
    assert window == messages_to_dict(history.window(100_000))
    assert len(window) >= 5


def test_a_second_hiermem_on_the_location_reads_equal_messages_after_a_restart(location):
    with HierMem.open(location) as first:
        HierMemChatMessageHistory(first, tenant_id="acme", thread_id="t1").add_messages(LOG)

    with HierMem.open(location) as second:
        history = HierMemChatMessageHistory(second, tenant_id="acme", thread_id="t1")
        assert history.messages == LOG
        history.add_messages(LOG[1:3])
        assert history.messages == LOG


def test_two_open_hiermems_see_each_other(location, history):
    with HierMem.open(location) as other:
        twin = HierMemChatMessageHistory(other, tenant_id="acme", thread_id="t1")
        twin.add_messages([HumanMessage("a")])
        history.add_messages([AIMessage("b")])
        twin.add_messages([HumanMessage("c")])

        told = [HumanMessage("a"), AIMessage("b"), HumanMessage("c")]
        assert history.messages == told
        assert twin.messages == told


@pytest.mark.parametrize(
    ("point", "stored"),
    [
        ("returned", ["b", "c", "word " * 100_000]),
        ("rows.after_commit", ["b", "c", "word " * 100_000]),
        ("rows.before_commit", ["a", "b"]),
    ],
)
def test_a_killed_process_leaves_a_call_stored_whole_or_not_at_all(
    run_python, location, point, stored
):
    ended = run_python(ADD_AND_DIE, location, point)

    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with HierMem.open(location) as hiermem:
        assert contents(hiermem) == stored
        assert hiermem.health().status == "healthy"
