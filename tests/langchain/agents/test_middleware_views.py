"""The pure rules below the middleware: identity, runs, views; and what holds of every view."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents.middleware import ModelRequest
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import BaseModel
from scripted_agent import ScriptedChat, look_up, problems_of, tokens_of

from hiermem_core import (
    ApproximateCounter,
    BudgetExceededError,
    HierMem,
    InvalidInputError,
    MissingIdentityError,
)
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemContext, HierMemMiddleware
from langchain_hiermem.identity import tenant_of, thread_of
from langchain_hiermem.naming import turn_id_of
from langchain_hiermem.runs import start_of_last_exchange, start_of_run, to_store
from langchain_hiermem.schemas import schemas_of
from langchain_hiermem.views import SystemPrompt


@dataclass
class Own:
    tenant_id: str = "alice"


@pytest.mark.parametrize(
    "context",
    [Own(), {"tenant_id": "alice"}, HierMemContext("alice"), SimpleNamespace(**vars(Own()))],
)
def test_any_object_or_mapping_may_name_the_tenant(context):
    assert tenant_of(context, None) == tenant_of(context, "alice") == "alice"
    assert tenant_of(None, "alice") == "alice"
    with pytest.raises(InvalidInputError, match="name it in one of them"):
        tenant_of(context, "bob")


@pytest.mark.parametrize("context", [None, {}, Own(""), object()])
def test_lc20_there_is_no_default_tenant_and_no_default_thread(context):
    with pytest.raises(MissingIdentityError):
        tenant_of(context, None)
    with pytest.raises(MissingIdentityError):
        thread_of(context, None, "")


def test_the_thread_is_of_the_context_then_of_the_config_then_of_the_constructor():
    context = HierMemContext("alice", "of context")

    assert thread_of(context, "of config", "given") == "of context"
    assert thread_of(HierMemContext("alice"), "of config", "given") == "of config"
    assert thread_of(None, None, "given") == "given"


def test_a_context_is_a_frozen_value():
    context = HierMemContext("alice", "t1")

    assert pickle.loads(pickle.dumps(context)) == context
    with pytest.raises(FrozenInstanceError):
        context.tenant_id = "bob"


LOG = [HumanMessage(f"m{n}", id=f"m{n}") for n in range(200)]


@given(st.integers(0, 200), st.integers(0, 200), st.sets(st.integers(0, 199)))
def test_a_run_begins_after_the_newest_message_that_is_stored(length, stored, missing):
    ids = {turn_id_of(message, "t1") for message in LOG[:stored]}
    ids -= {turn_id_of(LOG[n], "t1") for n in missing}
    asked = []

    def known(wanted):
        asked.extend(wanted)
        return ids & set(wanted)

    start = start_of_run(LOG[:length], "t1", known)

    there = [n for n in range(min(stored, length)) if n not in missing]
    assert start == (there[-1] + 1 if there else 0)
    assert len(asked) <= (length - start) + 64 + 64


def test_a_message_id_stands_for_another_turn_in_another_thread():
    assert turn_id_of(LOG[0], "t1") != turn_id_of(LOG[0], "t2")
    assert turn_id_of(LOG[0], "t1") == turn_id_of(HumanMessage("edited", id="m0"), "t1")
    assert turn_id_of(HumanMessage("no id"), "t1") is None


def test_only_what_users_models_and_tools_said_is_stored():
    messages = [
        SystemMessage("be kind"),
        HumanMessage("so far", additional_kwargs={"lc_source": "summarization"}),
        HumanMessage("hi", id="h1"),
        ChatMessage("obey", role="developer"),
        ChatMessage("hm", role="critic"),
        AIMessage("", tool_calls=[{"id": "c1", "name": "find", "args": {}}]),
        ToolMessage("found", tool_call_id="c1"),
        RemoveMessage(id="h1"),
    ]

    drafts = to_store(messages, "t1")

    assert [draft.role for draft in drafts] == ["user", "user", "assistant", "tool"]
    assert drafts[0].id == turn_id_of(messages[2], "t1")
    assert start_of_last_exchange(messages) == 2
    assert start_of_last_exchange(messages[:2]) == 0


class Place(BaseModel):
    """A place."""

    name: str


@pytest.mark.parametrize(
    "answer",
    [
        Place,
        AutoStrategy(Place),
        ToolStrategy(Place),
        ProviderStrategy(Place),
        Place.model_json_schema(),
    ],
    ids=["class", "auto", "tool", "provider", "schema"],
)
def test_what_an_answer_must_look_like_is_a_schema_that_counts(answer):
    (schema,) = schemas_of([], answer)

    assert "name" in str(schema)
    assert "Place" in str(schema)


def test_tools_count_by_what_is_sent_of_them_and_a_providers_own_as_it_is():
    own = {"type": "web_search"}

    schemas = schemas_of([look_up, own], None)

    assert schemas[0]["function"]["name"] == "look_up"
    assert schemas[1] == own


TEXTS = ["Be brief.", "Known: {memory}.", "{memory}"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_system_message_of_a_text_is_that_text(text):
    prompt = SystemPrompt(SystemMessage(text, id="s1"))

    assert prompt.text == text
    assert prompt.tokens_beside(ApproximateCounter()) == 0
    assert prompt.filled(text).content == text
    assert prompt.filled("other").content == "other"
    assert prompt.filled("other").id == "s1"
    assert prompt.filled(" ") is None


def test_without_a_system_message_there_is_none():
    prompt = SystemPrompt(None)

    assert (prompt.text, prompt.filled("")) == ("", None)
    assert prompt.tokens_beside(ApproximateCounter()) == 0


def test_of_a_system_message_of_blocks_the_one_with_the_slot_is_filled_and_the_others_count():
    blocks = [
        {"type": "text", "text": "word " * 100, "cache_control": {"type": "ephemeral"}},
        "plain {memory}",
        {"type": "text", "text": "{memory}"},
    ]
    message = SystemMessage(blocks)
    prompt = SystemPrompt(message)

    assert prompt.text == "plain {memory}"
    assert prompt.tokens_beside(ApproximateCounter()) > 90
    assert prompt.filled("plain tea").content == [blocks[0], "plain tea", blocks[2]]
    assert prompt.filled("").content == [blocks[0], blocks[2]]
    assert message.content == blocks


WORDS = ["tea ", "what? ", "{memory} ", "größe 你好 ", "<memory> ", "word " * 60]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("".join)
IMAGE = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}


@st.composite
def exchanges(draw, number, *, is_open=False):
    """Give an exchange as messages; an open one ends where the model is to be called."""
    text = draw(TEXT)
    blocks = [{"type": "text", "text": text}, IMAGE]
    asked = HumanMessage(draw(st.sampled_from([text, text, blocks])), id=f"h{number}")
    messages = [asked]
    for step in range(draw(st.integers(0, 3))):
        ids = [f"{number}-{step}-{n}" for n in range(draw(st.integers(1, 3)))]
        calls = [{"id": one, "name": "look_up", "args": {"place": "x"}} for one in ids]
        messages.append(AIMessage(draw(TEXT), tool_calls=calls, id=f"a{number}-{step}"))
        messages += [ToolMessage(draw(TEXT), tool_call_id=one, id=f"t{one}") for one in ids]
    if not is_open and draw(st.booleans()) and len(messages) > 2:
        del messages[-1]  # a run that was interrupted
    elif not is_open:
        messages.append(AIMessage(draw(TEXT), id=f"f{number}"))
    return messages


@st.composite
def cases(draw):
    earlier = [draw(exchanges(number)) for number in range(draw(st.integers(0, 5)))]
    return SimpleNamespace(
        earlier=[message for exchange in earlier for message in exchange],
        in_state=draw(st.booleans()),
        current=draw(exchanges(9, is_open=True)),
        budget=draw(st.integers(60, 1500)),
        prompt=draw(st.sampled_from([None, *TEXTS])),
        on_over_budget=draw(st.sampled_from(["truncate", "raise"])),
        incoming=draw(st.sampled_from(["delta", "full"])),
        backend=draw(st.sampled_from(["sqlite", "chroma", "hybrid"])),
    )


@settings(max_examples=60)
@given(cases())
def test_lc45_lc48_every_view_is_sound_and_within_budget_or_an_error(case):
    contexts = []
    with HierMem.open(":memory:", backend=case.backend, embedder=FakeEmbedder()) as hiermem:
        thread = hiermem.tenant("alice").thread("t1")
        thread.append(to_store(case.earlier, "t1"))
        hiermem.tenant("alice").remember("tea is green")
        middleware = HierMemMiddleware(
            hiermem,
            budget_tokens=case.budget,
            output_reserve=10,
            on_over_budget=case.on_over_budget,
            incoming=case.incoming,
            on_context=contexts.append,
        )
        state = [*(case.earlier if case.in_state else ()), *case.current]
        before = [message.model_copy(deep=True) for message in state]
        request = ModelRequest(
            model=ScriptedChat(),
            messages=state,
            system_message=SystemMessage(case.prompt) if case.prompt else None,
            tools=[look_up],
            runtime=SimpleNamespace(context=HierMemContext("alice", "t1"), execution_info=None),
        )
        try:
            view = middleware.wrap_model_call(request, lambda request: request)
        except BudgetExceededError:
            assert contexts == []
            return

        messages = [view.system_message] if view.system_message else []
        messages += view.messages
        assert problems_of(messages) == []
        assert tokens_of(messages, contexts[0], hiermem) <= case.budget - 10
        assert contexts[0].receipt.total <= case.budget - 10
        questions = [message for message in view.messages if message.type == "human"]
        assert questions[-1].id == case.current[0].id
        assert state == before
        assert request.messages is state
        known = {m.id: m for m in [*case.earlier, *case.current]}
        cut = {i for w in contexts[0].warnings if w.code == "over_budget" for i in w.ids}
        for message in view.messages[:-1]:
            if turn_id_of(message, "t1") not in cut and message.id != questions[-1].id:
                calls = getattr(message, "tool_calls", [])
                whole = len(calls) == len(getattr(known[message.id], "tool_calls", []))
                assert message == known[message.id] or not whole
