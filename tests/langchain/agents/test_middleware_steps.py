"""The middleware logs the tool calls of a run as steps of a session, when it is asked to."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from scripted_agent import ALICE, BOB, agent_of, asking_tools, said, stored

from hiermem_core.testing import FaultPlan, InjectedFault


def steps_of(hiermem, context=ALICE):
    session = hiermem.tenant(context.tenant_id).session(context.thread_id)
    return [(one.step, one.action, one.state, one.next_state) for one in session.steps()]


def test_tool_calls_are_logged_only_when_asked_for(hiermem):
    agent, _ = agent_of(hiermem, reply=asking_tools)

    agent.invoke(said("Where is Oslo?"), context=ALICE)

    assert hiermem.tenant("alice").sessions() == []


def test_each_tool_call_of_a_run_is_a_step_of_the_session_of_its_thread(hiermem):
    agent, _ = agent_of(hiermem, reply=asking_tools, log_steps=True)

    for question in ("Oslo?", "Rome?"):
        agent.invoke(said(question), context=ALICE)
    agent.invoke(said("Bonn?"), context=BOB)

    assert steps_of(hiermem) == [
        (1, 'look_up {"place":"Oslo?"}', "Oslo?", "Oslo? is far away"),
        (2, 'look_up {"place":"Rome?"}', "Rome?", "Rome? is far away"),
    ]
    assert [step[1] for step in steps_of(hiermem, BOB)] == ['look_up {"place":"Bonn?"}']


async def test_an_awaited_run_logs_the_same(hiermem):
    agent, _ = agent_of(hiermem, reply=asking_tools, log_steps=True)

    await agent.ainvoke(said("Oslo?"), context=ALICE)

    assert [step[0] for step in steps_of(hiermem)] == [1]


def test_a_run_that_could_not_be_stored_is_logged_once_with_the_next(hiermem):
    agent, _ = agent_of(
        hiermem,
        reply=asking_tools,
        log_steps=True,
        agent_options={"checkpointer": InMemorySaver()},
    )
    config = {"configurable": {"thread_id": "t1"}}

    with FaultPlan("rows.before_commit", count=2), pytest.raises(InjectedFault):
        agent.invoke(said("Oslo?"), config, context=ALICE)
    left = len(steps_of(hiermem)), stored(hiermem)
    agent.invoke(said("Rome?"), config, context=ALICE)

    assert left == (1, [])
    assert [step[1] for step in steps_of(hiermem)] == [
        'look_up {"place":"Oslo?"}',
        'look_up {"place":"Rome?"}',
    ]


def test_a_thread_is_forgotten_with_the_session_of_its_name(hiermem):
    agent, _ = agent_of(hiermem, reply=asking_tools, log_steps=True)
    agent.invoke(said("Oslo?"), context=ALICE)

    receipt = hiermem.tenant("alice").forget(thread_id="t1")

    assert (receipt.counts["sessions"], receipt.counts["steps"]) == (1, 1)
    assert steps_of(hiermem) == []
