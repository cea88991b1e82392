"""Redaction: the one door through which text enters, and what a redactor is told and may say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from hiermem_core.errors import RedactionError, RejectedByRedactorError
from hiermem_core.models.text import TextCleaner

RedactionKind = Literal["entry", "turn", "session", "query", "prompt", "notes"]


@dataclass(frozen=True, slots=True)
class RedactionContext:
    """Where a text belongs that a redactor sees.

    Attributes:
        kind: `entry` (content, passages, a key, a tag, or a text in the metadata or in a pattern's
            data), `turn` (content, a part, a name, a tool argument, metadata, or a text in the
            framework's dump), `session` (a text in its data, or in a step), `query`, `prompt`
            (what the chat model that learns notes is sent, and a context's system prompt), or
            `notes` (a summary or fact).
        thread_id: Where it is a thread's.
    """

    tenant_id: str
    kind: RedactionKind
    thread_id: str | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """What a redactor returns to refuse a text.

    Attributes:
        reason: Is part of the error; must hold nothing of the text.
    """

    reason: str = "it may not be stored"


Redactor = Callable[[str, RedactionContext], "str | Reject"]
"""Takes every text before it is kept, embedded, sent to a model, logged or traced, and returns what
stands in its place. Must be deterministic, as a text that is searched or stored again is redacted
again; no transaction is open meanwhile."""


class Redaction:
    """Make what lets text in.

    Args:
        redactor: `None`: text stays as it is.
    """

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor

    def cleaner(
        self, kind: RedactionKind, tenant_id: str, thread_id: str | None = None
    ) -> TextCleaner:
        """Return what redacts and cleans texts that belong together."""
        if self._redactor is None:
            return TextCleaner()
        context = RedactionContext(tenant_id, kind, thread_id)
        return TextCleaner(partial(_redacted, self._redactor, context))


def _redacted(redactor: Redactor, context: RedactionContext, text: str) -> str:
    try:
        redacted = redactor(text, context)
    except Exception as error:  # noqa: BLE001 - a redactor may raise anything; its type is told
        kind = type(error).__name__
        raise RedactionError(context.kind, f"the redactor raised {kind}") from None
    if isinstance(redacted, Reject):
        raise RejectedByRedactorError(context.kind, redacted.reason)
    if not isinstance(redacted, str):
        kind = type(redacted).__name__
        raise RedactionError(context.kind, f"the redactor returned {kind}, neither text nor Reject")
    return redacted
