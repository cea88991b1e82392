"""The middleware in real agents: whose memory it is, and what a model call gets of it."""

from __future__ import annotations

import logging

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from scripted_agent import (
    ALICE,
    BOB,
    ScriptedChat,
    agent_of,
    asking_tools,
    called,
    look_up,
    problems_of,
    said,
    stored,
    tokens_of,
)

from hiermem_core import (
    BudgetExceededError,
    HierMem,
    InvalidInputError,
    MissingIdentityError,
)
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemContext, HierMemMiddleware


def texts(messages):
    return [message.content for message in messages]


def test_an_agent_remembers_without_a_checkpointer(hiermem):
    agent, model = agent_of(hiermem)

    agent.invoke(said("I am Ann"), context=ALICE)
    agent.invoke(said("Who am I?"), context=ALICE)

    assert texts(model.seen[1]) == ["I am Ann", "answer to 1 messages", "Who am I?"]


def test_lc8_the_state_keeps_all_messages_that_the_view_leaves_out(hiermem):
    contexts = []
    options = {"checkpointer": InMemorySaver()}
    agent, model = agent_of(
        hiermem, budget_tokens=400, contexts=contexts, agent_options=options, reply=asking_tools
    )
    config = {"configurable": {"thread_id": "t1"}}

    for number in range(10):
        out = agent.invoke(said(f"question {number} " * 10), config, context=ALICE)

    assert len(out["messages"]) == 40
    assert len(model.seen[-1]) < 20
    assert [message.id for message in agent.get_state(config).values["messages"]] == [
        message.id for message in out["messages"]
    ]
    assert len(stored(hiermem)) == 40
    trimmed = [w for w in contexts[-1].warnings if w.code == "turns_trimmed"]
    assert trimmed[0].count == 40 - 1 - len(model.seen[-1])


def test_lc11_ordinary_trimming_tells_count_roles_and_tokens(hiermem):
    contexts = []
    agent, _ = agent_of(hiermem, budget_tokens=400, contexts=contexts, recall=False)

    for number in range(30):
        agent.invoke(said(f"question {number} " * 5), context=ALICE)

    (warning,) = contexts[-1].warnings
    assert warning.code == "turns_trimmed"
    assert warning.detail["roles"] == {"user": warning.count // 2, "assistant": warning.count // 2}
    assert warning.tokens > 0


def test_without_a_listener_each_warning_is_logged_once_a_thread_without_content(hiermem, caplog):
    agent, _ = agent_of(hiermem, budget_tokens=400, recall=False)

    with caplog.at_level(logging.WARNING, logger="langchain_hiermem"):
        for context in (ALICE, BOB):
            for number in range(20):
                agent.invoke(said(f"secret {number} " * 10), context=context)

    told = [record.getMessage() for record in caplog.records]
    assert [line.split(",")[0].split(":")[:2] for line in told] == [
        ["thread t1", " turns_trimmed"]
    ] * 2
    assert "secret" not in caplog.text


def test_lc4_system_message_and_tools_count_and_the_breakdown_adds_up(hiermem):
    contexts = []
    agent, model = agent_of(
        hiermem,
        prompt="Be brief. " * 40,
        budget_tokens=700,
        output_reserve=200,
        contexts=contexts,
        recall=False,
    )

    for number in range(30):
        agent.invoke(said(f"question {number} " * 10), context=ALICE)

    for context, messages in zip(contexts, model.seen, strict=True):
        receipt = context.receipt
        assert (receipt.budget, receipt.reserve) == (500, 200)
        assert receipt.total == tokens_of(messages, context, hiermem) <= 500
        assert receipt.tokens("system") > 80
        assert receipt.tokens("tools") > 20
    rest = 500 - sum(receipt.tokens(name) for name in ("system", "tools", "framing"))
    assert 0.7 * rest < receipt.tokens("window") + receipt.tokens("current") <= rest


def test_a_structured_answer_counts_too(hiermem):
    plain, answered = [], []
    schema = {"title": "Place", "type": "object", "properties": {"name": {"type": "string"}}}

    def structured(messages):
        call = {"id": "c1", "name": "Place", "args": {"name": "Oslo"}}
        return AIMessage("", tool_calls=[call])

    agent_of(hiermem, contexts=plain)[0].invoke(said("hi"), context=ALICE)
    agent, _ = agent_of(
        hiermem, reply=structured, contexts=answered, agent_options={"response_format": schema}
    )
    out = agent.invoke(said("hi"), context=BOB)

    assert out["structured_response"] == {"name": "Oslo"}
    assert answered[0].receipt.tokens("tools") > plain[0].receipt.tokens("tools")
    assert [role for role, _ in stored(hiermem, "bob")] == ["user", "assistant", "tool"]


def test_lc6_a_question_above_the_budget_is_shortened_and_marked_or_refused(hiermem):
    contexts = []
    agent, model = agent_of(hiermem, budget_tokens=300, contexts=contexts)
    strict, other = agent_of(hiermem, budget_tokens=300, on_over_budget="raise")
    question = "a very long question " * 500

    agent.invoke(said(question, id="h1"), context=ALICE)

    (shown,) = model.seen[0]
    assert isinstance(shown, HumanMessage)
    assert shown.id == "h1"
    assert question.startswith(shown.content[:50])
    assert len(shown.content) < 1500
    assert [warning.code for warning in contexts[0].warnings] == ["over_budget"]
    assert tokens_of(model.seen[0], contexts[0], hiermem) <= 200
    assert stored(hiermem)[0] == ("user", question)
    with pytest.raises(BudgetExceededError):
        strict.invoke(said(question), context=BOB)
    assert other.seen == []
    assert stored(hiermem, "bob") == []


def test_a_result_above_the_budget_is_shortened_and_keeps_its_status_and_call(hiermem):
    @tool
    def read(path: str) -> str:
        """Read a file."""
        return "line of a file " * 2000

    def reply(messages):
        if messages[-1].type == "tool":
            return AIMessage("read it")
        return AIMessage("", tool_calls=[{"id": "c1", "name": "read", "args": {"path": "/a"}}])

    agent, model = agent_of(hiermem, reply=reply, tools=[read], budget_tokens=600)

    agent.invoke(said("Read it"), context=ALICE)

    result = model.seen[1][-1]
    assert isinstance(result, ToolMessage)
    assert (result.tool_call_id, result.name, result.status) == ("c1", "read", "success")
    assert len(result.content) < 3000
    assert problems_of(model.seen[1]) == []
    assert len(stored(hiermem)[2][1]) == len("line of a file " * 2000)


@pytest.mark.parametrize("has_schema", [True, False])
def test_a_context_may_be_a_mapping(hiermem, has_schema):
    memory = HierMemMiddleware(hiermem, budget_tokens=2000)
    schema = {"context_schema": HierMemContext} if has_schema else {}
    agent = create_agent(ScriptedChat(), middleware=[memory], **schema)

    agent.invoke(said("hi"), context={"tenant_id": "alice", "thread_id": "t7"})

    assert len(stored(hiermem, thread="t7")) == 2


def test_lc20_no_tenant_or_no_thread_raises_before_any_model_call(hiermem):
    agent, model = agent_of(hiermem)

    for context in (None, HierMemContext(""), HierMemContext("alice"), {"thread_id": "t1"}):
        with pytest.raises((MissingIdentityError, TypeError)):
            agent.invoke(said("hi"), context=context)

    assert model.seen == []
    assert hiermem.tenant("alice").threads() == []


def test_lc19_one_agent_serves_two_tenants_with_one_thread_id(hiermem):
    agent, model = agent_of(hiermem, reply=asking_tools)

    for name, context in (("Ann", ALICE), ("Ben", BOB)) * 5:
        agent.invoke(said(f"I am {name}"), context=context)

    for messages in model.seen:
        whole = " ".join(str(message.content) for message in messages)
        assert ("Ann" in whole) != ("Ben" in whole)
    assert len(stored(hiermem, "alice")) == len(stored(hiermem, "bob")) == 20


def test_the_thread_of_the_config_is_used_where_the_context_names_none(hiermem):
    agent, _ = agent_of(hiermem, agent_options={"checkpointer": InMemorySaver()})

    config = {"configurable": {"thread_id": "of config"}}
    agent.invoke(said("hi"), config, context=HierMemContext("alice"))

    assert len(stored(hiermem, thread="of config")) == 2


def test_tenant_and_thread_may_come_from_the_constructor_and_must_not_contradict(hiermem):
    model = ScriptedChat()
    memory = HierMemMiddleware(hiermem, budget_tokens=2000, tenant_id="alice", thread_id="t9")
    agent = create_agent(model, middleware=[memory])
    contradicted, other = agent_of(hiermem, tenant_id="alice")

    agent.invoke(said("hi"))

    assert len(stored(hiermem, thread="t9")) == 2
    with pytest.raises(InvalidInputError, match="another than the constructor"):
        contradicted.invoke(said("hi"), context=BOB)
    assert other.seen == []


def test_what_is_recalled_stands_in_front_of_the_question_in_the_same_message(location):
    with HierMem.open(location, embedder=FakeEmbedder()) as hiermem:
        hiermem.tenant("alice").remember("Ann likes green tea")
        agent, model = agent_of(hiermem)

        agent.invoke(said("What tea does Ann like?", id="h1"), context=ALICE)

        (shown,) = model.seen[0]
        assert shown.content.startswith("<memory>\n")
        assert shown.content.endswith("\n\nWhat tea does Ann like?")
        assert "green tea" in shown.content
        assert shown.id == "h1"
        assert stored(hiermem)[0] == ("user", "What tea does Ann like?")


def test_blocks_beside_the_text_stay_as_they_are(location):
    blocks = [
        {"type": "text", "text": "What tea?", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "base64": "aGk=", "mime_type": "image/png", "detail": "high"},
    ]
    with HierMem.open(location, embedder=FakeEmbedder()) as hiermem:
        hiermem.tenant("alice").remember("Ann likes green tea")
        agent, model = agent_of(hiermem)

        out = agent.invoke(said(blocks), context=ALICE)

        (shown,) = model.seen[0]
        assert shown.content[1:] == blocks
        assert shown.content[0]["type"] == "text"
        assert "green tea" in shown.content[0]["text"]
        assert out["messages"][0].content == blocks
        agent.invoke(said("And now?"), context=BOB)
        assert hiermem.tenant("alice").thread("t1").turns()[0].content == "What tea?"


@pytest.mark.parametrize("has_memory", [True, False])
def test_a_slot_in_the_system_message_receives_the_block(location, has_memory):
    prompt = SystemMessage(
        [
            {"type": "text", "text": "Rules {x}.", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "Known: {memory}"},
        ]
    )
    with HierMem.open(location, embedder=FakeEmbedder()) as hiermem:
        contexts = []
        if has_memory:
            hiermem.tenant("alice").remember("Ann likes {memory} green tea")
        agent, model = agent_of(hiermem, prompt=prompt, contexts=contexts)

        agent.invoke(said("What tea?"), context=ALICE)

        system, question = model.seen[0]
        assert system.content[0] == prompt.content[0]
        known = system.content[1]["text"]
        assert known.startswith("Known: <memory>") if has_memory else known == "Known: "
        assert question.content == "What tea?"
        assert contexts[0].receipt.total >= tokens_of(model.seen[0], contexts[0], hiermem)


def test_recall_runs_once_a_question_and_again_after_the_entries_change(location):
    class Counted(FakeEmbedder):
        asked = 0

        def embed_query(self, text):
            Counted.asked += 1
            return super().embed_query(text)

    def reply(messages):
        results = sum(message.type == "tool" for message in messages)
        return AIMessage("done") if results == 5 else called(f"c{results}")

    with HierMem.open(location, embedder=Counted()) as hiermem:
        hiermem.tenant("alice").remember("Ann likes green tea")
        agent, model = agent_of(hiermem, reply=reply)

        agent.invoke(said("What tea?"), context=ALICE)

        assert len(model.seen) == 6
        assert len({messages[0].content for messages in model.seen}) == 1
        assert "green tea" in model.seen[5][0].content
        assert Counted.asked == 1


def test_an_entry_that_is_forgotten_in_a_run_is_not_shown_in_its_next_call(hiermem):
    entry = hiermem.tenant("alice").remember("Ann likes green tea")

    @tool
    def erase() -> str:
        """Forget it."""
        return str(hiermem.tenant("alice").memory.delete(entry))

    def reply(messages):
        if messages[-1].type == "tool":
            return AIMessage("gone")
        return AIMessage("", tool_calls=[{"id": "c1", "name": "erase", "args": {}}])

    agent, model = agent_of(hiermem, reply=reply, tools=[erase])

    agent.invoke(said("Forget that Ann likes green tea"), context=ALICE)

    assert "<memory>" in model.seen[0][0].content
    assert "<memory>" not in model.seen[1][0].content


def test_recall_can_be_bound_to_a_namespace_and_switched_off(hiermem):
    alice = hiermem.tenant("alice")
    alice.remember("green tea is for Ann", namespace="public")
    alice.remember("black tea is a secret", namespace="private")

    bound, model = agent_of(hiermem, recall_namespace="public")
    bound.invoke(said("tea?"), context=ALICE)
    off, other = agent_of(hiermem, recall=False)
    off.invoke(said("tea?"), context=HierMemContext("alice", "t2"))

    assert "green" in model.seen[0][0].content
    assert "secret" not in model.seen[0][0].content
    assert texts(other.seen[0]) == ["tea?"]


@pytest.mark.parametrize(
    "options",
    [
        {"budget_tokens": -1},
        {"budget_tokens": 1.5},
        {"budget_tokens": True},
        {"budget_tokens": 100},
        {"budget_tokens": 100, "output_reserve": 100},
        {"budget_tokens": 4000, "output_reserve": -1},
        {"budget_tokens": 4000, "on_over_budget": "drop"},
        {"budget_tokens": 4000, "incoming": "some"},
        {"budget_tokens": 4000, "on_save_error": "ignore"},
    ],
)
def test_options_out_of_range_are_refused(hiermem, options):
    with pytest.raises(InvalidInputError):
        HierMemMiddleware(hiermem, **options)


def test_tools_of_the_middleware_are_the_agents(hiermem):
    memory = HierMemMiddleware(hiermem, budget_tokens=2000, tools=[look_up])
    agent = create_agent(
        ScriptedChat(reply=asking_tools), middleware=[memory], context_schema=HierMemContext
    )

    out = agent.invoke(said("Oslo"), context=ALICE)

    assert out["messages"][2].content == "Oslo is far away"
