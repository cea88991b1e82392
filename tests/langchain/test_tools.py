"""The tools by which a model remembers, recalls and forgets; alone, and in agents."""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from scripted_agent import ALICE, BOB, ScriptedChat, agent_of, said

from hiermem_core import InvalidInputError, MissingExtraError, MissingIdentityError
from langchain_hiermem import HierMemContext, create_memory_tools

NAMES = ["remember", "recall", "forget"]


def by_name(tools):
    return {tool.name: tool for tool in tools}


def ask(tool, **arguments):
    return json.loads(tool.invoke(arguments))


def call(tool, **arguments):
    """Call a tool as an agent does, and return the message."""
    return tool.invoke({"type": "tool_call", "id": "c1", "name": tool.name, "args": arguments})


@pytest.fixture
def alice(hiermem):
    return hiermem.tenant("alice")


@pytest.fixture
def tools(alice):
    return by_name(create_memory_tools(alice))


def test_a_model_remembers_recalls_and_forgets(tools, alice):
    entry_id = ask(tools["remember"], content="Ann likes green tea")["id"]

    (found,) = ask(tools["recall"], query="green tea")["memories"]
    assert (found["id"], found["content"]) == (entry_id, "Ann likes green tea")
    assert alice.memory.retrieve(entry_id).source == "assistant"
    assert ask(tools["forget"], id=entry_id) == {"id": entry_id, "status": "forgotten"}
    assert ask(tools["recall"], query="green tea") == {"memories": []}
    assert ask(tools["forget"], id=entry_id)["status"] == "not found"


async def test_lc25_async_does_the_same(hiermem):
    told = []
    for tenant in ("sync", "async"):
        tools = by_name(create_memory_tools(hiermem.tenant(tenant)))
        for name, arguments in (
            ("remember", {"content": "Ann likes tea", "namespace": "ignored"}),
            ("recall", {"query": "tea"}),
            ("forget", {"id": "nobody"}),
        ):
            if tenant == "sync":
                told.append((name, await asyncio.to_thread(tools[name].invoke, arguments)))
            else:
                told.append((name, await tools[name].ainvoke(arguments)))

    plain = [(name, [*json.loads(text)]) for name, text in told]
    assert plain[:3] == plain[3:]
    assert json.loads(told[1][1])["memories"][0]["content"] == "Ann likes tea"
    assert json.loads(told[4][1])["memories"][0]["content"] == "Ann likes tea"


def test_the_schemas_describe_everything_and_name_no_tenant_namespace_or_thread(hiermem):
    for source in (hiermem, hiermem.tenant("alice")):
        tools = create_memory_tools(source, namespace="notes", k=7)

        assert [tool.name for tool in tools] == NAMES
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


def test_names_can_be_prefixed_and_writing_left_out(alice):
    assert [tool.name for tool in create_memory_tools(alice, prefix="long_")] == [
        f"long_{name}" for name in NAMES
    ]
    (only,) = create_memory_tools(alice, read_only=True, prefix="my_")
    assert only.name == "my_recall"


def test_a_namespace_binds_all_three(alice):
    outside = alice.remember("Ann likes tea", namespace="notesbook")
    below = alice.remember("Ann likes cocoa", namespace="notes/drinks")
    tools = by_name(create_memory_tools(alice, namespace="notes"))

    inside = ask(tools["remember"], content="Ann likes coffee")["id"]

    found = {one["id"] for one in ask(tools["recall"], query="likes")["memories"]}
    assert found == {inside, below}
    assert alice.memory.retrieve(inside).namespace == "notes"
    assert ask(tools["forget"], id=outside)["status"] == "not found"
    assert ask(tools["forget"], id=below)["status"] == "forgotten"
    assert alice.memory.retrieve(outside) is not None


def test_lc18_a_foreign_id_is_not_found_like_an_unknown_one(hiermem, tools, alice):
    entry_id = alice.remember("Ann likes tea")
    other = by_name(create_memory_tools(hiermem.tenant("alice2")))

    assert ask(other["forget"], id=entry_id) == {"id": entry_id, "status": "not found"}
    assert ask(other["forget"], id="nobody") == {"id": "nobody", "status": "not found"}
    assert ask(other["recall"], query="tea") == {"memories": []}
    assert alice.memory.retrieve(entry_id) is not None


def test_limit_is_of_the_model_or_k(alice):
    for number in range(9):
        alice.remember(f"tea number {number}")
    tools = by_name(create_memory_tools(alice, k=3))

    assert len(ask(tools["recall"], query="tea")["memories"]) == 3
    assert len(ask(tools["recall"], query="tea", limit=6)["memories"]) == 6


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("remember", {}),
        ("remember", {"content": ""}),
        ("remember", {"content": "   "}),
        ("remember", {"content": 7}),
        ("remember", {"content": "x" * 10_000_000}),
        ("recall", {"limit": 3}),
        ("recall", {"query": "tea", "limit": 0}),
        ("recall", {"query": "tea", "limit": 1000}),
        ("recall", {"query": "tea", "limit": "many"}),
        ("forget", {"id": ["x"]}),
    ],
)
async def test_bad_arguments_are_told_to_the_model_in_a_message(tools, name, arguments):
    message = await asyncio.to_thread(call, tools[name], **arguments)
    awaited = await tools[name].ainvoke(
        {"type": "tool_call", "id": "c1", "name": name, "args": arguments}
    )

    assert (message.status, message.tool_call_id) == ("error", "c1")
    assert (awaited.status, awaited.content) == ("error", message.content)
    assert len(message.content) < 500


@pytest.mark.parametrize("k", [0, -1, 101, True, "5"])
def test_k_out_of_range_is_refused(alice, k):
    with pytest.raises(InvalidInputError):
        create_memory_tools(alice, k=k)


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


def test_tools_of_a_hiermem_need_the_extra_and_tools_of_a_tenant_do_not(run_python, location):
    ended = run_python(
        """
        import sys
        sys.modules["langchain"] = sys.modules["langgraph"] = None
        from hiermem_core import HierMem, MissingExtraError
        from langchain_hiermem import create_memory_tools

        with HierMem.open(sys.argv[1]) as hiermem:
            print(len(create_memory_tools(hiermem.tenant("alice"))))
            try:
                create_memory_tools(hiermem)
            except MissingExtraError as error:
                print(error)
        """,
        location,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[0] == "3"
    assert 'pip install "hiermem-core[agents]"' in ended.stdout
    assert issubclass(MissingExtraError, ImportError)
