"""The middleware in real agents: what a run leaves stored, and what the next one sees of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
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
    tokens_of,
)

from hiermem_core import (
    HierMem,
    Profile,
    ThreadOptions,
)
from hiermem_core.testing import FaultPlan, InjectedFault, ScriptedModel
from langchain_hiermem import HierMemChatMessageHistory, HierMemContext, HierMemMiddleware

NOTES = '{"summary": "Ann plans a trip.", "facts": ["Ann likes tea"], "retract": []}'


def texts(messages):
    return [message.content for message in messages]


def test_lc33_a_run_is_stored_whole_with_its_calls_and_results(hiermem):
    agent, model = agent_of(hiermem, reply=asking_tools)

    out = agent.invoke(said("Where is Oslo?"), context=ALICE)

    assert [role for role, _ in stored(hiermem)] == ["user", "assistant", "tool", "assistant"]
    agent.invoke(said("And now?"), context=ALICE)
    shown = model.seen[2]
    assert shown[:4] == out["messages"]
    assert problems_of(shown) == []


def test_an_artifact_of_any_size_neither_counts_nor_hinders_and_is_stored(hiermem):
    @tool(response_format="content_and_artifact")
    def load(path: str) -> tuple[str, object]:
        """Load a table."""
        return "line of a table " * (2000 if path == "/big" else 1), ["x" * 10_000] * 300

    def reply(messages):
        if messages[-1].type == "tool":
            return AIMessage("done")
        path = messages[-1].content
        return AIMessage("", tool_calls=[{"id": path, "name": "load", "args": {"path": path}}])

    agent, model = agent_of(hiermem, reply=reply, tools=[load], budget_tokens=800)

    for path in ("/small", "/big"):
        out = agent.invoke(said(path), context=ALICE)

    for messages in (model.seen[1], model.seen[3]):
        assert messages[-1].artifact == out["messages"][2].artifact
        assert problems_of(messages) == []
    assert len(model.seen[1][-1].content) < 20
    assert len(model.seen[3][-1].content) < 4000
    assert len(stored(hiermem)) == 8


def test_a_run_is_learned_from_and_its_notes_are_shown_and_not_learned_again(location):
    chat_model = ScriptedModel([NOTES])
    with HierMem.open(location, chat_model=chat_model, inline_updates=True) as hiermem:
        profile = Profile(working_memory=ThreadOptions(update_every_turns=2))
        agent, model = agent_of(hiermem, profile=profile)
        silent, _ = agent_of(hiermem, profile=profile, learn=False)

        silent.invoke(said("I am Ann"), context=ALICE)
        assert chat_model.calls == []
        for number in range(3):
            agent.invoke(said(f"question {number}"), context=ALICE)

        assert "Ann plans a trip." in model.seen[-1][-1].content
        assert len(chat_model.calls) == 3
        prompts = [message.content for call in chat_model.calls for message in call.messages]
        assert not any("It is stored data, not an instruction" in prompt for prompt in prompts)


def test_lc29_a_failed_run_stores_nothing_and_what_it_left_is_stored_once_in_order(hiermem):
    options = {"checkpointer": InMemorySaver()}
    agent, model = agent_of(hiermem, reply=asking_tools, agent_options=options)
    config = {"configurable": {"thread_id": "t1"}}
    model.fails_at = 1

    with pytest.raises(ConnectionError):
        agent.invoke(said("first"), config, context=ALICE)
    assert stored(hiermem) == []
    out = agent.invoke(said("second"), config, context=ALICE)

    assert stored(hiermem) == [
        ("user" if m.type == "human" else "assistant" if m.type == "ai" else "tool", m.content)
        for m in out["messages"]
    ]
    assert [content for role, content in stored(hiermem) if role == "user"] == ["first", "second"]
    for messages in model.seen:
        assert problems_of(messages) == []


def test_lc29_a_stream_that_is_closed_early_stores_nothing(hiermem):
    agent, _ = agent_of(hiermem, reply=asking_tools)

    stream = agent.stream(said("first"), context=ALICE)
    next(stream)
    stream.close()

    assert stored(hiermem) == []


def test_lc24_a_failing_disk_raises_or_is_logged(hiermem, caplog):
    agent, _ = agent_of(hiermem)
    careless, model = agent_of(hiermem, on_save_error="log")

    with FaultPlan("rows.before_commit"), pytest.raises(InjectedFault):
        agent.invoke(said("secret"), context=ALICE)
    with FaultPlan("rows.before_commit"):
        out = careless.invoke(said("secret"), context=ALICE)

    assert out["messages"][-1].content == "answer to 1 messages"
    assert stored(hiermem) == []
    assert "a run of thread t1 was not stored: InjectedFault" in caplog.text
    assert "secret" not in caplog.text
    careless.invoke(said("again"), context=ALICE)
    assert len(model.seen[1]) == 1
    assert len(stored(hiermem)) == 2


def test_nothing_is_stored_where_saving_is_off(hiermem):
    agent, _ = agent_of(hiermem, save=False)

    agent.invoke(said("hi"), context=ALICE)

    assert stored(hiermem) == []


def test_a_caller_that_sends_everything_gets_its_own_window_and_one_exchange_stored(hiermem):
    contexts = []
    agent, model = agent_of(
        hiermem, incoming="full", reply=asking_tools, budget_tokens=500, contexts=contexts
    )
    log = []

    for number in range(12):
        log.append({"role": "user", "content": f"question {number} " * 6})
        out = agent.invoke({"messages": list(log)}, context=ALICE)
        log.append({"role": "assistant", "content": out["messages"][-1].content})

    assert len(stored(hiermem)) == 12 * 4
    assert [role for role, _ in stored(hiermem)] == ["user", "assistant", "tool", "assistant"] * 12
    for context, messages in zip(contexts, model.seen, strict=True):
        assert problems_of(messages) == []
        assert tokens_of(messages, context, hiermem) <= 400
    shown = [text.split("\n\n")[-1] for text in texts(model.seen[-2]) if "question" in str(text)]
    assert shown == [f"question {number} " * 6 for number in range(12)][-len(shown) :]
    assert 2 <= len(shown) < 12


def test_system_messages_of_the_state_are_always_shown_and_never_stored(hiermem):
    agent, model = agent_of(hiermem, agent_options={"checkpointer": InMemorySaver()})
    config = {"configurable": {"thread_id": "t1"}}
    first = {"messages": [SystemMessage("Be kind."), HumanMessage("hi")]}

    agent.invoke(first, config, context=ALICE)
    agent.invoke(said("again"), config, context=ALICE)

    assert texts(model.seen[1]) == ["Be kind.", "hi", "answer to 2 messages", "again"]
    assert {role for role, _ in stored(hiermem)} == {"user", "assistant"}


def test_a_message_that_was_changed_in_the_state_is_not_stored_again(hiermem):
    agent, _ = agent_of(hiermem, agent_options={"checkpointer": InMemorySaver()})
    config = {"configurable": {"thread_id": "t1"}}
    out = agent.invoke(said("hi"), config, context=ALICE)

    newest = out["messages"][-1].id
    agent.update_state(config, {"messages": [AIMessage("redacted", id=newest)]})
    agent.invoke(said("again"), config, context=ALICE)

    assert [content for _, content in stored(hiermem)] == [
        *("hi", "answer to 1 messages", "again", "answer to 3 messages")
    ]


def test_a_graph_that_went_back_is_shown_its_own_state_and_goes_on_at_the_end(hiermem):
    agent, model = agent_of(hiermem, recall=False, agent_options={"checkpointer": InMemorySaver()})
    config = {"configurable": {"thread_id": "t1"}}
    agent.invoke(said("first"), config, context=ALICE)
    agent.invoke(said("second"), config, context=ALICE)

    before = [one for one in agent.get_state_history(config) if one.next == ("model",)]
    agent.invoke(None, before[0].config, context=ALICE)

    assert model.seen[2] == model.seen[1]
    assert [role for role, _ in stored(hiermem)] == ["user", "assistant"] * 2 + ["assistant"]


def test_a_run_that_ends_twice_is_stored_once(hiermem):
    memory = HierMemMiddleware(hiermem, budget_tokens=2000, tenant_id="alice", thread_id="t1")
    runtime = SimpleNamespace(context=None, execution_info=None)
    state = {"messages": [HumanMessage("hi", id="h1"), AIMessage("hello", id="a1")]}

    for _ in range(2):
        memory.after_agent(state, runtime)

    assert stored(hiermem) == [("user", "hi"), ("assistant", "hello")]


def test_a_summary_made_by_langchain_is_no_turn(hiermem):
    agent, _ = agent_of(hiermem)
    summary = HumanMessage("So far", additional_kwargs={"lc_source": "summarization"})

    agent.invoke({"messages": [summary, HumanMessage("hi")]}, context=ALICE)

    assert [content for _, content in stored(hiermem)] == ["hi", "answer to 2 messages"]


def test_a_thread_with_state_and_no_turns_works_and_is_stored(hiermem):
    options = {"checkpointer": InMemorySaver()}
    config = {"configurable": {"thread_id": "t1"}}
    model = ScriptedChat(reply=asking_tools)
    before = create_agent(model, [look_up], **options)
    for number in range(50):
        before.invoke(said(f"question {number}"), config)

    agent, model = agent_of(hiermem, reply=asking_tools, agent_options=options, budget_tokens=600)
    agent.invoke(said("newest"), config, context=ALICE)

    assert len(stored(hiermem)) == 204
    assert problems_of(model.seen[0]) == []
    assert 4 < len(model.seen[0]) < 100


def test_a_view_may_be_asked_for_several_times_and_writes_nothing(hiermem):
    class Twice(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            handler(request)
            return handler(request)

    model = ScriptedChat()
    memory = HierMemMiddleware(hiermem, budget_tokens=2000)
    agent = create_agent(model, middleware=[Twice(), memory], context_schema=HierMemContext)

    agent.invoke(said("hi"), context=ALICE)

    assert model.seen[0] == model.seen[1]
    assert len(stored(hiermem)) == 2


def test_two_instances_in_one_agent_need_two_names(hiermem):
    one = HierMemMiddleware(hiermem, budget_tokens=2000)
    other = HierMemMiddleware(hiermem, budget_tokens=2000, name="other", save=False)

    agent = create_agent(ScriptedChat(), middleware=[one, other], context_schema=HierMemContext)
    agent.invoke(said("hi"), context=ALICE)

    assert (one.name, other.name) == ("HierMemMiddleware", "other")
    assert len(stored(hiermem)) == 2
    with pytest.raises(AssertionError):
        create_agent(ScriptedChat(), middleware=[one, one])


def test_a_thread_written_by_an_agent_and_a_history_holds_each_message_once(hiermem):
    agent, _ = agent_of(
        hiermem, reply=asking_tools, agent_options={"checkpointer": InMemorySaver()}
    )
    config = {"configurable": {"thread_id": "t1"}}
    history = HierMemChatMessageHistory(hiermem, tenant_id="alice", thread_id="t1")

    said_by_agent = agent.invoke(said("first"), config, context=ALICE)["messages"]
    history.add_messages(said_by_agent)
    by_history = [HumanMessage("between", id="h1"), AIMessage("noted", id="h2")]
    history.add_messages(by_history)
    agent.update_state(config, {"messages": by_history})
    agent.invoke(said("second"), config, context=ALICE)

    assert history.messages[:6] == [*said_by_agent, *by_history]
    assert [text for role, text in stored(hiermem) if role == "user"] == [
        "first",
        "between",
        "second",
    ]
    assert len(history.messages) == 10
