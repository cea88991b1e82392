"""Calls of a chat model: what they are for, and what came back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CallKind = Literal["MEMORY_WORKING"]


@dataclass(frozen=True, slots=True)
class CallMeta:
    """What a call is made for: for a usage guard, and for traces.

    Attributes:
        kind: `"MEMORY_WORKING"`: learning the notes of a thread.
        user_id: Whose answer made the call due, if that is known.
        trace_id: Of the answer that made the call due; a fresh one where none was given.
    """

    kind: CallKind
    tenant_id: str
    thread_id: str
    user_id: str | None = None
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message to a chat model."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply of a chat model.

    Attributes:
        input_tokens: As the provider counted the prompt; `None`: it did not say.
        output_tokens: As the provider counted the reply; `None`: it did not say.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
