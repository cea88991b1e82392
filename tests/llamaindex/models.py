"""Models of LlamaIndex for tests, on any core that is supported; old ones bring fewer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockLLM

from llamaindex_hiermem.messages import message_to_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ListeningLLM(MockLLM):
    """A chat model that says a few words and keeps what it was given last."""

    _heard: list[ChatMessage] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(num_output=self.max_tokens or -1, is_chat_model=True)

    def stream_complete(self, prompt: str, **options: Any) -> Any:
        """Say the same, word by word; the mock of an old core ends with a space."""
        words = self.complete(prompt).text.split(" ")
        for place, word in enumerate(words):
            said = " ".join(words[: place + 1])
            yield CompletionResponse(text=said, delta=word if place == 0 else f" {word}")

    @property
    def heard(self) -> list[ChatMessage]:
        return self._heard

    def chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        self._heard = list(messages)
        return super().chat(messages, **options)

    def stream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        self._heard = list(messages)
        return super().stream_chat(messages, **options)

    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        self._heard = list(messages)
        return await super().achat(messages, **options)

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        self._heard = list(messages)
        return await super().astream_chat(messages, **options)


class CallingLLM(FunctionCallingLLM):
    """A chat model whose answers, calls of tools among them, are what a function makes of it."""

    _reply: Callable[..., ChatMessage] = PrivateAttr()

    def __init__(self, reply: Callable[..., ChatMessage]) -> None:
        super().__init__()
        self._reply = reply

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    def chat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        message = self._reply(messages, **options)
        return ChatResponse(message=message, delta=message.content or "", raw={})

    def stream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        return iter([self.chat(messages, **options)])

    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        return self.chat(messages, **options)

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        async def stream() -> Any:
            yield self.chat(messages, **options)

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:  # noqa: FBT001, FBT002 - spelled by LlamaIndex
        return CompletionResponse(text=prompt)

    async def acomplete(self, prompt: str, **options: Any) -> Any:
        return self.complete(prompt)

    def stream_complete(self, prompt: str, **options: Any) -> Any:
        return iter([self.complete(prompt)])

    async def astream_complete(self, prompt: str, **options: Any) -> Any:
        async def stream() -> Any:
            yield self.complete(prompt)

        return stream()

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **options: Any
    ) -> dict[str, Any]:
        asked = [] if user_msg is None else [ChatMessage(role="user", content=str(user_msg))]
        return {"messages": [*(chat_history or []), *asked]}

    def get_tool_calls_from_response(
        self,
        response: ChatResponse,
        error_on_no_tool_call: bool = False,  # noqa: FBT001, FBT002 - spelled by LlamaIndex
        **options: Any,
    ) -> list[ToolSelection]:
        return [
            ToolSelection(
                tool_id=call.id or "", tool_name=call.name, tool_kwargs=_object(call.args)
            )
            for call in message_to_turn(response.message).tool_calls
        ]


def _object(arguments: Any) -> dict[str, Any]:
    return json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
