"""Asking the cheap model: a prompt that fits, the guard's leave, and a reply that can be read."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hiermem_core.errors import RedactionError, UsageDeniedError
from hiermem_core.learning.chunks import Chunk, take_chunk
from hiermem_core.learning.prompts import helper_prompt, listed_facts, prompt_tokens
from hiermem_core.learning.replies import UnreadableReplyError, parse_reply
from hiermem_core.models.calls import Completion
from hiermem_core.models.notes import ThreadState
from hiermem_core.models.threads import ModelInfo
from hiermem_core.threads.notes_text import fit_notes
from hiermem_core.tokens.counters import GuardedCounter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.learning.replies import Reply
    from hiermem_core.models.calls import CallMeta, PromptMessage
    from hiermem_core.models.events import Stage
    from hiermem_core.models.notes import Fact
    from hiermem_core.models.redaction import Redaction
    from hiermem_core.models.turns import Turn
    from hiermem_core.protocols import ChatModel, TokenCounter, UsageGuard

UNKNOWN_WINDOW = 8192
"""Tokens of a cheap model's window where nobody knows it."""

MOST_REPLY = 4096
"""Tokens kept for the reply at most: notes take about 1,000, and a thinking model thinks first."""

PART = 4
"""The reply takes at most one part in this many of the window, and old notes as much."""

_logger = logging.getLogger(__name__)


class UpdateError(Exception):
    """An update ends without a change.

    Attributes:
        reason: A short code, or the name of what was raised.
        counts: It is a failure; several at one mark end the tries.
    """

    def __init__(self, stage: Stage, reason: str, *, counts: bool = True) -> None:
        self.stage = stage
        self.reason = reason
        self.counts = counts
        super().__init__(stage, reason)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for a chunk of turns.

    Attributes:
        listed: The facts it numbers, from 1.
        tokens: Of the messages.
        reserve: Tokens left for the reply.
    """

    messages: tuple[PromptMessage, ...]
    chunk: Chunk
    listed: tuple[Fact, ...]
    tokens: int
    reserve: int


class Asking:
    """Ask a chat model for notes.

    Args:
        guard: Asked before each call, and told after it.
        redaction: Lets the prompt out and the reply in.
    """

    def __init__(
        self,
        model: ChatModel | None,
        guard: UsageGuard | None,
        *,
        counter: TokenCounter,
        redaction: Redaction,
    ) -> None:
        self._redaction = redaction
        self._model = model
        self._guard = guard
        self._counter = counter

    def window(self, model_id: str | None) -> ModelInfo:
        """Return the sizes of the model.

        Raises:
            UpdateError: It raises when it is asked for them.
        """
        known = getattr(self._model, "model_info", None)
        try:
            info = known(model_id) if known else None
        except Exception as error:  # a model may raise anything; its type is told
            raise UpdateError("call", type(error).__name__) from error
        return info or ModelInfo(model_id or "", UNKNOWN_WINDOW)

    def prompt(
        self, state: ThreadState, turns: Sequence[Turn], info: ModelInfo, *, has_more: bool
    ) -> Prompt:
        """Return the prompt for the oldest of these turns that it has room for.

        Raises:
            UpdateError: The window has no room for a single turn.
        """
        counter = GuardedCounter(self._counter)
        window = info.context_window
        part = window // PART
        reserve = min(info.max_output_tokens or MOST_REPLY, MOST_REPLY, part)
        summary, _ = fit_notes(ThreadState(state.summary), part, counter)
        listed = listed_facts(state, part - counter.count(summary), counter)
        room = window - reserve - prompt_tokens(helper_prompt(summary, listed, ()), counter)
        while room > 0 and (chunk := take_chunk(turns, room, counter, has_more=has_more)):
            messages = helper_prompt(summary, listed, chunk.lines)
            tokens = prompt_tokens(messages, counter)
            if tokens <= window - reserve:
                return Prompt(messages, chunk, listed, tokens, reserve)
            room -= tokens - (window - reserve)
        raise UpdateError("call", "window_too_small")

    def ask(self, prompt: Prompt, *, model_id: str | None, meta: CallMeta) -> Reply:
        """Return what the model replies.

        Raises:
            UpdateError: There is none, it is denied, it raises, or its reply cannot be read.
        """
        if self._model is None:
            raise UpdateError("call", "no_chat_model", counts=False)
        messages = self._redacted(prompt.messages, meta)
        self._check(meta, prompt.tokens + prompt.reserve)
        try:
            completion = self._model.complete(
                messages, model_id=model_id, max_tokens=prompt.reserve, meta=meta
            )
        except (Exception, SystemExit) as error:  # a model may raise anything; its type is told
            raise UpdateError("call", type(error).__name__) from error
        if not isinstance(completion, Completion) or not isinstance(completion.text, str):
            raise UpdateError("reply", "wrong_types")
        self._record(prompt, completion, meta)
        try:
            return self._redacted_reply(parse_reply(completion.text), meta)
        except UnreadableReplyError as error:
            raise UpdateError("reply", error.reason) from None
        except RedactionError as error:
            raise UpdateError("reply", type(error).__name__) from None

    def _redacted(
        self, messages: Sequence[PromptMessage], meta: CallMeta
    ) -> tuple[PromptMessage, ...]:
        cleaner = self._redaction.cleaner("prompt", meta.tenant_id, meta.thread_id)
        if not cleaner.redacts:
            return tuple(messages)
        try:
            return tuple(replace(one, content=cleaner.name(one.content)) for one in messages)
        except RedactionError as error:
            raise UpdateError("call", type(error).__name__) from None

    def _redacted_reply(self, reply: Reply, meta: CallMeta) -> Reply:
        cleaner = self._redaction.cleaner("notes", meta.tenant_id, meta.thread_id)
        facts = tuple(replace(one, text=cleaner.name(one.text)) for one in reply.facts)
        return replace(reply, summary=cleaner.name(reply.summary), facts=facts)

    def _check(self, meta: CallMeta, tokens: int) -> None:
        if self._guard is None:
            return
        try:
            self._guard.check(meta, tokens)
        except UsageDeniedError as error:
            raise UpdateError("guard", "usage_denied", counts=False) from error
        except Exception as error:  # a guard may raise anything; its type is told
            raise UpdateError("guard", type(error).__name__, counts=False) from error

    def _record(self, prompt: Prompt, completion: Completion, meta: CallMeta) -> None:
        """Tell the guard what the call took; counted here where the provider did not say."""
        if self._guard is None:
            return
        taken, given = completion.input_tokens, completion.output_tokens
        counted = Completion(
            completion.text,
            prompt.tokens if taken is None else taken,
            GuardedCounter(self._counter).count(completion.text) if given is None else given,
        )
        try:
            self._guard.record(meta, counted)
        except Exception as error:  # noqa: BLE001 - somebody else's guard may raise anything
            _logger.warning("the usage guard failed to record: %s", type(error).__name__)
