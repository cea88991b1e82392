"""The tools by which a model remembers, recalls and forgets."""

from __future__ import annotations

import asyncio
import json

import pytest
from blockbuster import blockbuster_ctx

from hiermem_core import InvalidInputError, MissingExtraError
from langchain_hiermem import create_memory_tools

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


async def test_lc26_no_tool_blocks_the_loop(tools):
    with blockbuster_ctx():
        entry_id = json.loads(await tools["remember"].ainvoke({"content": "Ann likes tea"}))["id"]
        found = await tools["recall"].ainvoke({"query": "tea"})
        gone = await tools["forget"].ainvoke({"id": entry_id})

    assert json.loads(found)["memories"][0]["id"] == entry_id
    assert json.loads(gone)["status"] == "forgotten"


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
