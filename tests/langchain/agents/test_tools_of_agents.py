"""The tools in agents: whose memory they use, what a model sees of them, what it does wrong."""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from scripted_agent import ALICE, BOB, ScriptedChat, agent_of, said

from hiermem_core import MissingIdentityError
from langchain_hiermem import HierMemContext, create_memory_tools


def test_the_schemas_describe_everything_and_name_no_tenant_namespace_or_thread(hiermem):
    for source in (hiermem, hiermem.tenant("alice")):
        tools = create_memory_tools(source, namespace="notes", k=7)

        assert [tool.name for tool in tools] == ["remember", "recall", "forget"]
        schemas = [convert_to_openai_tool(tool)["function"] for tool in tools]
        assert [sorted(schema["parameters"]["properties"]) for schema in schemas] == [
            ["content"],
            ["limit", "query"],
            ["id"],
        ]
        assert schemas[1]["parameters"]["properties"]["limit"]["default"] == 7
        for schema in schemas:
            assert len(schema["description"]) > 20
            for field in schema["parameters"]["properties"].values():
                assert len(field["description"]) > 10


def remembering(messages):
    """Remember what the user said, then recall it, then say what came of it."""
    results = [message for message in messages if message.type == "tool"]
    steps = [
        {"id": "c1", "name": "remember", "args": {"content": messages[0].content}},
        {"id": "c2", "name": "recall", "args": {"query": "likes"}},
    ]
    if len(results) < len(steps):
        return AIMessage("", tool_calls=[steps[len(results)]])
    return AIMessage(results[-1].content)


async def test_lc19_in_an_agent_the_tenant_is_the_one_of_the_run(hiermem):
    agent = create_agent(
        ScriptedChat(reply=remembering),
        create_memory_tools(hiermem),
        context_schema=HierMemContext,
    )

    said_by = {"alice": "Ann likes tea", "bob": "Ben likes beer"}
    first = await asyncio.to_thread(agent.invoke, said(said_by["alice"]), context=ALICE)
    second = await agent.ainvoke(said(said_by["bob"]), context=BOB)

    for out, text in ((first, said_by["alice"]), (second, said_by["bob"])):
        (found,) = json.loads(out["messages"][-1].content)["memories"]
        assert found["content"] == text


def test_lc20_a_run_without_a_tenant_raises_through_the_agent(hiermem):
    agent = create_agent(ScriptedChat(reply=remembering), create_memory_tools(hiermem))

    with pytest.raises(MissingIdentityError):
        agent.invoke(said("Ann likes tea"))


def test_bad_arguments_in_an_agent_end_in_a_message_and_the_run_goes_on(hiermem):
    def reply(messages):
        if messages[-1].type == "tool":
            return AIMessage(f"status {messages[-1].status}")
        bad = {"id": "c1", "name": "recall", "args": {"limit": -1, "runtime": "forged"}}
        return AIMessage("", tool_calls=[bad])

    agent, _ = agent_of(hiermem, reply=reply, tools=create_memory_tools(hiermem))

    out = agent.invoke(said("hi"), context=ALICE)

    assert out["messages"][-1].content == "status error"
