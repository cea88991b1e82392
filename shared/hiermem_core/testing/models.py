"""A chat model that follows a script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hiermem_core.models.calls import CallMeta, Completion, PromptMessage
from hiermem_core.models.threads import ModelInfo

Scripted = str | Completion | BaseException | Callable[[Sequence[PromptMessage]], str]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call that a scripted model took."""

    messages: tuple[PromptMessage, ...]
    model_id: str | None
    max_tokens: int
    meta: CallMeta


class ScriptedModel:
    """A `ChatModel` for tests: it gives its replies in order, and the last one again and again.

    Args:
        replies: A text or completion is given, an exception is raised, a function is called with
            the messages.
        window: Tokens of its window; `None`: nobody knows.

    Attributes:
        calls: Every call, in order.
        gate: While it is set to an event, calls wait for that event.
        waiting: Set as soon as a call waits.
    """

    def __init__(self, replies: Sequence[Scripted], *, window: int | None = None) -> None:
        self.calls: list[ModelCall] = []
        self.gate: threading.Event | None = None
        self.waiting = threading.Event()
        self._replies = list(replies)
        self._window = window
        self._lock = threading.Lock()

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        model_id: str | None,
        max_tokens: int,
        meta: CallMeta,
    ) -> Completion:
        """Return the next reply, or raise it."""
        with self._lock:
            self.calls.append(ModelCall(tuple(messages), model_id, max_tokens, meta))
            reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if self.gate is not None:
            self.waiting.set()
            self.gate.wait()
        if isinstance(reply, BaseException):
            raise reply
        if callable(reply):
            reply = reply(messages)
        return reply if isinstance(reply, Completion) else Completion(reply)

    def model_info(self, model_id: str | None) -> ModelInfo | None:
        """Return its sizes."""
        return None if self._window is None else ModelInfo(model_id or "scripted", self._window)
