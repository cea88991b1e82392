"""LLMs of LlamaIndex as the model that learns notes."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.mock import MockLLM

from hiermem_core import ConfigurationError, InvalidInputError, ModelInfo, as_chat_model
from hiermem_core.learning.chat_models import LlamaIndexModel
from hiermem_core.models.calls import CallMeta, Completion, PromptMessage

META = CallMeta("MEMORY_WORKING", "acme", "t1")
MESSAGES = (PromptMessage("system", "Keep notes."), PromptMessage("user", "Hello"))
REPLY = '{"summary": "They greet."}'


class Named(CustomLLM):
    """An LLM that says its name and sizes, and has no field for either."""

    calls: list[Any] = Field(default_factory=list)
    sizes: dict[str, int] = Field(default_factory=dict)
    usage: dict[str, Any] = Field(default_factory=dict)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="large", **self.sizes)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002 - LlamaIndex's signature
        self.calls.append((prompt, kwargs))
        return CompletionResponse(text=REPLY, additional_kwargs=self.usage)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002 - as above
        raise NotImplementedError


class Sized(Named):
    """Has the fields that most providers' classes have."""

    model: str = "large"
    max_tokens: int | None = None


def complete(model, *, model_id=None, max_tokens=100):
    return as_chat_model(model).complete(
        MESSAGES, model_id=model_id, max_tokens=max_tokens, meta=META
    )


def test_an_llm_is_asked_with_one_text():
    model = Named()

    reply = complete(model)

    assert isinstance(as_chat_model(model), LlamaIndexModel)
    assert model.calls == [("Keep notes.\n\nHello", {})]
    assert reply == Completion(REPLY, None, None)


def test_the_mock_of_llama_index_replies():
    assert complete(MockLLM()) == Completion("Keep notes.\n\nHello", None, None)


def test_the_tokens_are_those_the_provider_counted():
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}

    assert complete(Named(usage=usage)) == Completion(REPLY, 12, 3)


def test_what_the_reply_may_take_and_the_model_are_passed_where_there_is_a_field():
    model = Sized()

    complete(model, max_tokens=77)
    complete(model, model_id="small", max_tokens=78)

    assert [kwargs for _, kwargs in model.calls] == [
        {"max_tokens": 77},
        {"max_tokens": 78, "model": "small"},
    ]


@pytest.mark.parametrize(("kind", "kwargs"), [(Named, {}), (Sized, {"max_tokens": 100})])
def test_an_llm_may_be_asked_for_by_its_own_name(kind, kwargs):
    model = kind()

    assert complete(model, model_id="large").text == REPLY
    assert model.calls[0][1] == kwargs


@pytest.mark.parametrize("model", [Named(), MockLLM()], ids=["custom", "mock"])
def test_another_model_is_refused_where_it_cannot_be_told(model):
    with pytest.raises(ConfigurationError, match=r"cheap_model_id.*has one model only"):
        complete(model, model_id="small")


def test_sizes_are_those_of_the_metadata():
    model = as_chat_model(Named(sizes={"context_window": 16_000, "num_output": 2_000}))

    assert model.model_info(None) == ModelInfo("large", 16_000, 2_000)
    assert model.model_info("large") == ModelInfo("large", 16_000, 2_000)
    assert model.model_info("small") is None


@pytest.mark.parametrize("sizes", [{}, {"num_output": -1}], ids=["not said", "without limit"])
def test_a_limit_of_output_that_was_not_said_is_unknown(sizes):
    model = as_chat_model(Named(sizes={"context_window": 16_000, **sizes}))

    assert model.model_info(None) == ModelInfo("large", 16_000, None)


def test_what_an_llm_raises_passes_through():
    class Broken(Named):
        @llm_completion_callback()
        def complete(self, prompt, formatted=False, **kwargs):  # noqa: FBT002 - as above
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        complete(Broken())


@pytest.mark.parametrize("kind", [MockLLM, Named])
def test_a_class_is_refused(kind):
    with pytest.raises(InvalidInputError, match="is a class"):
        as_chat_model(kind)
