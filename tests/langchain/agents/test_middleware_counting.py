"""Counting as HierMem counts, at LangChain's plug points."""

from __future__ import annotations

import warnings

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from scripted_agent import ScriptedChat, said

from hiermem_core import ApproximateCounter, HierMem
from langchain_hiermem import count_tokens, message_to_turn

MESSAGES = [
    SystemMessage("be brief"),
    HumanMessage([{"type": "text", "text": "你好 " * 50}, {"type": "image", "url": "https://x/y"}]),
    AIMessage("", tool_calls=[{"id": "c1", "name": "find", "args": {"n": 1}}]),
    ToolMessage("found", tool_call_id="c1"),
    AIMessage("done", name="ann"),
]


@pytest.mark.parametrize("counter", [None, ApproximateCounter()])
def test_the_figures_are_those_that_are_stored_with_the_turns(counter):
    with HierMem.open(":memory:", counter=counter) as hiermem:
        thread = hiermem.tenant("alice").thread("t1")
        thread.append([message_to_turn(message) for message in MESSAGES])

        counted = count_tokens(MESSAGES, counter=counter)

        assert counted == thread.info().tokens[hiermem.counter.id]
    assert counted == sum(count_tokens([message], counter=counter) for message in MESSAGES)
    assert count_tokens([]) == 0


def test_lc5_a_call_counts_once_in_every_shape():
    call = {"id": "c1", "name": "find", "args": {"text": "word " * 200}}
    block = {"type": "tool_use", "id": "c1", "name": "find", "input": call["args"]}

    counts = {
        count_tokens([AIMessage(content, tool_calls=[call])]) for content in ("", [], [block])
    }

    assert len(counts) == 1
    assert 200 < counts.pop() < 300


def test_lc3_media_count_flat():
    image = {"type": "image", "base64": "A" * 400_000, "mime_type": "image/png"}

    assert 700 < count_tokens([HumanMessage([image])]) < 800


def test_it_is_a_token_counter_of_trim_messages():
    log = [HumanMessage(f"question {n} " * 10) if n % 2 == 0 else AIMessage("a") for n in range(40)]

    kept = trim_messages(log, max_tokens=200, token_counter=count_tokens, start_on="human")

    assert 0 < count_tokens(kept) <= 200
    assert kept == log[-len(kept) :]


def test_it_is_a_token_counter_of_the_summarization_middleware():
    summary = SummarizationMiddleware(
        ScriptedChat(), trigger=("tokens", 50), keep=("messages", 2), token_counter=count_tokens
    )
    model = ScriptedChat()
    agent = create_agent(model, middleware=[summary])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        agent.invoke({"messages": [*[HumanMessage("word " * 30)] * 3, *said("hi")["messages"]]})

    assert len(model.seen) == 1
    assert len(model.seen[0]) < 4


def test_a_removal_is_no_turn():
    with pytest.raises(ValueError, match="is an operation and no turn"):
        count_tokens([RemoveMessage(id="m1")])
