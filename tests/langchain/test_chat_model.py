"""Chat models of LangChain as the model that learns notes."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.language_models.fake_chat_models import (
    FakeListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from pydantic import ConfigDict, Field

from hiermem_core import ConfigurationError, InvalidInputError, ModelInfo, as_chat_model
from hiermem_core.learning.chat_models import LangChainModel
from hiermem_core.models.calls import CallMeta, Completion, PromptMessage

META = CallMeta("MEMORY_WORKING", "acme", "t1")
MESSAGES = (PromptMessage("system", "Keep notes."), PromptMessage("user", "Hello"))
REPLY = '{"summary": "They greet."}'
PROFILE = {"max_input_tokens": 16_000, "max_output_tokens": 2_000}


class Recording(BaseChatModel):
    """A chat model that records what it is called with."""

    calls: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recording"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.calls.append((messages, kwargs))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(REPLY))])


class Sized(Recording):
    """Takes the fields as most providers' classes name them."""

    model: str = "large"
    max_tokens: int | None = None


class Aliased(Recording):
    """Names its model as OpenAI's class does."""

    model_config = ConfigDict(populate_by_name=True)

    model_name: str = Field(default="large", alias="model")
    max_tokens: int | None = Field(default=None, alias="max_completion_tokens")


class Hearing(BaseCallbackHandler):
    def __init__(self):
        self.heard = []

    def on_chat_model_start(self, serialized, messages, *, metadata=None, name=None, **kwargs):
        self.heard.append((name, metadata["thread_id"]))


def complete(model, *, model_id=None, max_tokens=100):
    return as_chat_model(model).complete(
        MESSAGES, model_id=model_id, max_tokens=max_tokens, meta=META
    )


def replying(message):
    return GenericFakeChatModel(messages=iter([message]))


def chains():
    model = FakeListChatModel(responses=[REPLY])
    return {
        "a chat model": model,
        "a chain that ends with a model": RunnableLambda(lambda messages: messages) | model,
        "a chain that ends with a text": model | StrOutputParser(),
        "a model with arguments": model.bind(stop=["x"]),
        "a model that tries again": model.with_retry(),
        "a model with another to fall back on": model.with_fallbacks([model]),
        "a model with a configuration": model.with_config(tags=["notes"]),
        "a model that completes texts": FakeListLLM(responses=[REPLY]),
        "a function": RunnableLambda(lambda messages: REPLY),
    }


@pytest.mark.parametrize("model", chains().values(), ids=chains())
def test_whatever_is_invoked_replies_with_its_text(model):
    assert isinstance(as_chat_model(model), LangChainModel)
    assert complete(model) == Completion(REPLY)
    assert type(complete(model).text) is str


def test_a_model_gets_the_messages_in_their_roles():
    model = Recording()

    complete(model)

    assert model.calls == [([SystemMessage("Keep notes."), HumanMessage("Hello")], {})]


def test_the_text_of_content_blocks_is_read_and_nothing_else_of_them():
    blocks = [
        {"type": "reasoning", "reasoning": "They greet each other."},
        {"type": "text", "text": REPLY[:9]},
        {"type": "text", "text": REPLY[9:]},
    ]

    assert complete(replying(AIMessage(content=blocks))).text == REPLY


def test_an_empty_reply_is_an_empty_text():
    assert complete(replying(AIMessage(content=[]))).text == ""


def test_the_tokens_are_those_the_provider_counted():
    usage = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}

    assert complete(replying(AIMessage(REPLY, usage_metadata=usage))) == Completion(REPLY, 12, 3)
    assert complete(replying(AIMessage(REPLY))) == Completion(REPLY, None, None)


@pytest.mark.parametrize("kind", [Sized, Aliased])
def test_what_the_reply_may_take_and_the_model_are_passed_where_there_is_a_field(kind):
    model = kind()

    complete(model, max_tokens=77)
    complete(model, model_id="small", max_tokens=78)

    assert [kwargs for _, kwargs in model.calls] == [
        {"max_tokens": 77},
        {"max_tokens": 78, "model": "small"},
    ]


@pytest.mark.parametrize("kind", [Sized, Aliased])
def test_a_model_is_not_told_its_own_name(kind):
    model = kind()

    complete(model, model_id="large")

    assert model.calls[0][1] == {"max_tokens": 100}


@pytest.mark.parametrize("model", [Recording(), *chains().values()], ids=lambda m: type(m).__name__)
def test_another_model_is_refused_where_it_cannot_be_told(model):
    with pytest.raises(ConfigurationError, match=r"cheap_model_id.*has one model only"):
        complete(model, model_id="small")


def test_a_refused_model_is_never_called():
    model = Recording()

    with pytest.raises(ConfigurationError):
        complete(model, model_id="small")

    assert model.calls == []


def test_sizes_are_those_of_the_profile():
    assert as_chat_model(Sized(profile=PROFILE)).model_info(None) == ModelInfo("", 16_000, 2_000)


def test_the_profile_is_of_the_own_model_only():
    model = as_chat_model(Sized(profile=PROFILE))

    assert model.model_info("large") == ModelInfo("large", 16_000, 2_000)
    assert model.model_info("small") is None


@pytest.mark.parametrize("profile", [None, {}, {"max_output_tokens": 9}])
def test_without_a_window_in_the_profile_no_sizes_are_known(profile):
    assert as_chat_model(Sized(profile=profile)).model_info(None) is None


@pytest.mark.parametrize("model", chains().values(), ids=chains())
def test_what_has_no_profile_has_no_sizes(model):
    assert as_chat_model(model).model_info(None) is None


def test_a_window_without_a_limit_of_output_is_known():
    model = as_chat_model(Sized(profile={"max_input_tokens": 16_000}))

    assert model.model_info(None) == ModelInfo("", 16_000)


def test_traces_say_what_a_call_is_for():
    hearing = Hearing()

    complete(FakeListChatModel(responses=[REPLY], callbacks=[hearing]))

    assert hearing.heard == [("MEMORY_WORKING", "t1")]


def test_a_chain_that_ends_with_something_else_gives_no_text():
    parsed = complete(FakeListChatModel(responses=[REPLY]) | JsonOutputParser())

    assert parsed.text == {"summary": "They greet."}


def test_what_a_model_raises_passes_through():
    with pytest.raises(StopIteration):
        complete(GenericFakeChatModel(messages=iter([])))


@pytest.mark.parametrize("kind", [FakeListChatModel, Recording])
def test_a_class_is_refused(kind):
    with pytest.raises(InvalidInputError, match="is a class"):
        as_chat_model(kind)
