"""Agents in every way of running: one behaviour, on one loop or many threads, beside others."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from blockbuster import BlockingError, blockbuster_ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from scripted_agent import (
    ALICE,
    ScriptedChat,
    agent_of,
    asking_tools,
    look_up,
    problems_of,
    said,
    stored,
)
from sqlalchemy import event

from hiermem_core import HierMem, ThreadNotFoundError
from hiermem_core.testing import FakeClock, FaultPlan, InjectedFault
from langchain_hiermem import HierMemContext, HierMemMiddleware


async def invoked(agent, given, context):
    agent.invoke(given, context=context)


async def ainvoked(agent, given, context):
    await agent.ainvoke(given, context=context)


async def streamed(agent, given, context):
    list(agent.stream(given, context=context, stream_mode="updates"))


async def astreamed(agent, given, context):
    async for _ in agent.astream(given, context=context, stream_mode="updates"):
        pass


async def streamed_by_words(agent, given, context):
    list(agent.stream(given, context=context, stream_mode="messages"))


async def astreamed_by_words(agent, given, context):
    async for _ in agent.astream(given, context=context, stream_mode="messages"):
        pass


WAYS = [invoked, ainvoked, streamed, astreamed, streamed_by_words, astreamed_by_words]


def neutral(turns):
    """Return what turns say, without ids and the spaces between streamed words."""
    return [
        (t.role, (t.content or "").strip(), [call.name for call in t.tool_calls]) for t in turns
    ]


@pytest.mark.parametrize("way", WAYS)
async def test_lc30_all_ways_work_and_store_the_same_turns(hiermem, way):
    agent, model = agent_of(hiermem, reply=asking_tools)

    for question in ("first", "second"):
        await way(agent, said(question), ALICE)

    turns = await asyncio.to_thread(hiermem.tenant("alice").thread("t1").turns)
    assert neutral(turns) == [
        ("user", "first", []),
        ("assistant", "", ["look_up"]),
        ("tool", "first is far away", []),
        ("assistant", "answer to 3 messages", []),
        ("user", "second", []),
        ("assistant", "", ["look_up"]),
        ("tool", "second is far away", []),
        ("assistant", "answer to 7 messages", []),
    ]
    assert [problems_of(messages) for messages in model.seen] == [[]] * 4


@pytest.mark.parametrize("way", WAYS)
async def test_lc30_a_save_that_fails_surfaces_in_each_way(hiermem, way):
    agent, _ = agent_of(hiermem)

    with FaultPlan("rows.before_commit"), pytest.raises(InjectedFault):
        await way(agent, said("first"), ALICE)

    with pytest.raises(ThreadNotFoundError):
        await asyncio.to_thread(hiermem.tenant("alice").thread("t1").turns)


@pytest.mark.parametrize("way", WAYS[-2:])
async def test_lc34_a_streamed_answer_is_stored_as_a_full_message_with_its_calls(hiermem, way):
    agent, model = agent_of(hiermem, reply=asking_tools)

    await way(agent, said("first"), ALICE)
    await way(agent, said("second"), ALICE)

    call, answer = model.seen[-1][1], model.seen[-1][3]
    assert type(call) is type(answer) is AIMessage
    assert [one["args"] for one in call.tool_calls] == [{"place": "first"}]
    assert answer.content == "answer to 3 messages "


async def test_lc26_no_method_blocks_the_loop(hiermem):
    agent, model = agent_of(hiermem, reply=asking_tools)
    await agent.ainvoke(said("imports what is imported late"), context=ALICE)

    with blockbuster_ctx():
        for number in range(3):
            await agent.ainvoke(said(f"question {number}"), context=ALICE)
        async for _ in agent.astream(said("streamed"), context=ALICE, stream_mode="messages"):
            pass
        with pytest.raises(BlockingError):
            agent.invoke(said("blocking, as the detector sees"), context=ALICE)

    assert len(model.seen) >= 10


async def test_lc27_a_sync_run_inside_a_coroutine_returns(hiermem):
    agent, model = agent_of(hiermem, reply=asking_tools)

    agent.invoke(said("first"), context=ALICE)
    await agent.ainvoke(said("second"), context=ALICE)

    assert len(model.seen[-1]) == 7


@settings(max_examples=10)
@given(st.lists(st.sampled_from(["plain", "tools"]), min_size=1, max_size=6))
def test_lc25_sync_and_async_store_equal_turns_and_send_equal_messages(runs):
    told = []
    for way in ("sync", "async"):
        with HierMem.open(":memory:", clock=FakeClock()) as hiermem:
            tools, used = agent_of(hiermem, reply=asking_tools, budget_tokens=500)
            plain, other = agent_of(hiermem, budget_tokens=500)
            for number, kind in enumerate(runs):
                agent = tools if kind == "tools" else plain
                question = said(f"question {number} " * 8, id=f"h{number}")
                if way == "sync":
                    agent.invoke(question, context=ALICE)
                else:
                    asyncio.run(agent.ainvoke(question, context=ALICE))
            turns = neutral(hiermem.tenant("alice").thread("t1").turns())
            sent = [[m.content for m in messages] for messages in [*used.seen, *other.seen]]
            told.append((turns, sent))

    assert told[0] == told[1]


def test_lc23_concurrent_runs_on_one_thread_store_whole_and_adjacent_exchanges(hiermem):
    barrier = Barrier(4)

    @tool
    def meet(place: str) -> str:
        """Wait for the others."""
        barrier.wait(10)
        return place

    def reply(messages):
        if messages[-1].type == "tool":
            return AIMessage(f"done {messages[-1].content}")
        place = messages[-1].content
        call = {"id": f"c-{place}", "name": "meet", "args": {"place": place}}
        return AIMessage("", tool_calls=[call])

    agent, model = agent_of(hiermem, reply=reply, tools=[meet])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: agent.invoke(said(name), context=ALICE), "abcd"))

    turns = stored(hiermem)
    assert len(turns) == 16
    for start in range(0, 16, 4):
        name = turns[start][1]
        assert turns[start : start + 4] == [
            ("user", name),
            ("assistant", ""),
            ("tool", name),
            ("assistant", f"done {name}"),
        ]
    assert sorted(content for role, content in turns if role == "user") == list("abcd")
    assert [problems_of(messages) for messages in model.seen] == [[]] * 8


async def test_lc19_many_tenants_at_once_through_one_agent(hiermem):
    agent, model = agent_of(hiermem, reply=asking_tools)

    async def talk(name):
        for number in range(3):
            await agent.ainvoke(said(f"{name} says {number}"), context=HierMemContext(name, "t1"))

    await asyncio.gather(*(talk(f"tenant{n}") for n in range(8)))

    for messages in model.seen:
        speakers = {str(m.content).split()[0] for m in messages if m.type == "human"}
        assert len(speakers) == 1


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.files
def test_lc36_bytes_grow_linearly_and_no_checkpoint_holds_what_was_recalled(location):
    saver = InMemorySaver()
    config = {"configurable": {"thread_id": "t1"}}
    sizes = []
    with HierMem.open(location) as hiermem:
        hiermem.tenant("alice").remember("RECALLED: Ann likes green tea")
        agent, model = agent_of(
            hiermem,
            reply=asking_tools,
            budget_tokens=800,
            agent_options={"checkpointer": saver},
        )
        for number in range(200):
            agent.invoke(said(f"tea question {number}"), config, context=ALICE)
            if number in {99, 199}:
                sizes.append(size_of(location))

        assert any("RECALLED" in str(messages) for messages in model.seen)
        assert len(stored(hiermem)) == 800
    kept = [*saver.storage["t1"][""].values(), *saver.blobs.values(), *saver.writes.values()]
    assert len(kept) > 1000
    assert "RECALLED" not in str(kept)
    assert "<memory>" not in str(kept)
    assert sizes[1] < 2.5 * sizes[0]


def test_the_cost_of_a_view_does_not_grow_with_the_thread(hiermem):
    agent, model = agent_of(hiermem, budget_tokens=600)
    thread = hiermem.tenant("alice").thread("t1")
    turns = [
        {"role": role, "content": f"old {number} " * 10}
        for number in range(1000)
        for role in ("user", "assistant")
    ]
    thread.append(turns)
    reads = []

    def count(connection, cursor, statement, *ignored):
        reads.append(statement)

    event.listen(hiermem._services.database._engine, "before_cursor_execute", count)
    agent.invoke(said("what now?"), context=ALICE)

    assert 3 < len(model.seen[0]) < 40
    assert len(reads) < 60


def test_a_middleware_in_an_agent_of_plain_tools_leaves_others_alone(hiermem):
    memory = HierMemMiddleware(hiermem, budget_tokens=2000)
    agents = [
        create_agent(ScriptedChat(), [look_up], middleware=[memory], context_schema=HierMemContext)
        for _ in range(2)
    ]

    for agent in agents:
        agent.invoke(said("hi"), context=ALICE)

    assert len(stored(hiermem)) == 4
