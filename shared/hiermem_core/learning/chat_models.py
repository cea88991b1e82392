"""Chat models of other libraries, known by their methods; no library is imported."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

from hiermem_core.errors import ConfigurationError, InvalidInputError
from hiermem_core.models.calls import CallMeta, Completion, PromptMessage
from hiermem_core.models.threads import ModelInfo
from hiermem_core.named_objects import object_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hiermem_core.protocols import ChatModel

_REMEDY = (
    "give a LangChain chat model, a LlamaIndex LLM, a function from messages to a text, "
    "or an object with complete(messages, model_id=, max_tokens=, meta=)"
)

_UNSAID_OUTPUT = 256
"""What a LlamaIndex LLM gives as `num_output` where it does not know it."""


def as_chat_model(value: Any) -> ChatModel:
    """Return `value` as a `ChatModel`; calls nothing yet.

    Takes a `ChatModel`, a LangChain chat model or runnable, a LlamaIndex `LLM`, a function from a
    list of `PromptMessage` to a text, or the import path of one of these, `package.module:name`.

    Raises:
        ConfigurationError: An import path leads nowhere.
        InvalidInputError: It is none of these, or asynchronous, or a class instead of an object.
    """
    if isinstance(value, str):
        value = object_at(value, setting="chat_model")
    if isinstance(value, type):
        raise InvalidInputError("chat_model", f"{value.__qualname__} is a class; give an object")
    if _offers(value, "complete", "chat", "metadata"):
        return LlamaIndexModel(value)
    if _offers(value, "invoke", "ainvoke"):
        return LangChainModel(value)
    if _offers(value, "complete"):
        _check_colour(value.complete)
        return cast("ChatModel", value)
    if callable(value):
        _check_colour(value)
        return FunctionModel(value)
    raise InvalidInputError("chat_model", f"{type(value).__name__} answers nothing; {_REMEDY}")


class FunctionModel:
    """A plain function as a `ChatModel`; it has one model, its own."""

    def __init__(self, function: Callable[[Sequence[PromptMessage]], str]) -> None:
        self._function = function

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        model_id: str | None,
        max_tokens: int,
        meta: CallMeta,
    ) -> Completion:
        """Return what the function returns.

        Raises:
            ConfigurationError: Another model is asked for.
        """
        del max_tokens, meta
        _arguments(self._function, model_id, None)
        return Completion(self._function(list(messages)))


class LangChainModel:
    """A chat model of LangChain."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        model_id: str | None,
        max_tokens: int,
        meta: CallMeta,
    ) -> Completion:
        """Return the reply; the call's metadata says what it is for, so that traces can tell.

        Raises:
            ConfigurationError: Another model is asked for, and this one cannot be told which.
        """
        reply = self._model.invoke(
            [{"role": message.role, "content": message.content} for message in messages],
            config={"run_name": meta.kind, "metadata": {"thread_id": meta.thread_id}},
            **_arguments(self._model, model_id, max_tokens),
        )
        usage = getattr(reply, "usage_metadata", None) or {}
        text = getattr(reply, "text", reply)
        text = str(text) if isinstance(text, str) else text
        return Completion(text, usage.get("input_tokens"), usage.get("output_tokens"))

    def model_info(self, model_id: str | None) -> ModelInfo | None:
        """Return the sizes that the model's profile gives; they are of its own model only."""
        profile = getattr(self._model, "profile", None)
        if not _is_own(self._model, model_id) or not isinstance(profile, dict):
            return None
        window, output = profile.get("max_input_tokens"), profile.get("max_output_tokens")
        if not isinstance(window, int):
            return None
        return ModelInfo(model_id or "", window, output if isinstance(output, int) else None)


class LlamaIndexModel:
    """An `LLM` of LlamaIndex; asked with one text, which every one of them takes."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        model_id: str | None,
        max_tokens: int,
        meta: CallMeta,
    ) -> Completion:
        """Return the reply.

        Raises:
            ConfigurationError: Another model is asked for, and this one cannot be told which.
        """
        del meta
        prompt = "\n\n".join(message.content for message in messages)
        reply = self._model.complete(prompt, **_arguments(self._model, model_id, max_tokens))
        usage: Mapping[str, Any] = getattr(reply, "additional_kwargs", None) or {}
        return Completion(reply.text, usage.get("prompt_tokens"), usage.get("completion_tokens"))

    def model_info(self, model_id: str | None) -> ModelInfo | None:
        """Return the sizes that the model's metadata gives; they are of its own model only."""
        metadata = self._model.metadata
        if not _is_own(self._model, model_id):
            return None
        output = metadata.num_output
        known = output if output > _UNSAID_OUTPUT else None
        return ModelInfo(metadata.model_name, metadata.context_window, known)


def _arguments(model: Any, model_id: str | None, max_tokens: int | None) -> dict[str, Any]:
    """Return what a call may be given: only what the model has a field for."""
    fields = getattr(type(model), "model_fields", {})
    arguments: dict[str, Any] = {}
    if max_tokens is not None and "max_tokens" in fields:
        arguments["max_tokens"] = max_tokens
    if _is_own(model, model_id):
        return arguments
    if "model" in fields or any(getattr(f, "alias", None) == "model" for f in fields.values()):
        arguments["model"] = model_id
    else:
        reason = f"{type(model).__name__} has one model only; give the cheap model itself"
        raise ConfigurationError("cheap_model_id", reason)
    return arguments


def _is_own(model: Any, model_id: str | None) -> bool:
    """Tell whether an id names the one model that an object stands for."""
    metadata = getattr(model, "metadata", None)
    names = [getattr(model, "model", None), getattr(model, "model_name", None)]
    return model_id in (None, *names, getattr(metadata, "model_name", None))


def _check_colour(function: Any) -> None:
    if any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):
        raise InvalidInputError("chat_model", "is asynchronous; give the synchronous one")


def _offers(value: Any, *names: str) -> bool:
    """Tell whether a value has all these names, without touching them: a property may call out."""
    return set(names) <= set(dir(value))
