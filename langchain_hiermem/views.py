"""From a context to the messages of one model call. Pure.

A message that is shown as it is, is the very object that was given. Where the block of what is
remembered was put in front of a question, only a text was added to it; where a text was cut, only
the text differs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiermem_core import Turn, TurnDraft
from langchain_hiermem.messages import (
    message_to_turn,
    projected_message,
    restored_message,
    turn_to_message,
)
from langchain_hiermem.runs import without_artifact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.messages import BaseMessage, SystemMessage

    from hiermem_core import TokenCounter

SLOT = "{memory}"
"""Where a system message asks for what is remembered."""


class SystemPrompt:
    """A system message: the text of it that the core fits and fills, and what stands beside it.

    Attributes:
        text: Of the block with the slot, else of the first text block; `""` where there is none.
    """

    def __init__(self, message: SystemMessage | None) -> None:
        self._message = message
        content = [] if message is None else message.content
        self._blocks: list[Any] = [content] if isinstance(content, str) else list(content)
        texts = [_text_in(block) for block in self._blocks]
        slots = [place for place, text in enumerate(texts) if SLOT in text]
        others = [place for place, text in enumerate(texts) if text]
        self._place = next(iter([*slots, *others]), None)
        self.text = "" if self._place is None else texts[self._place]

    def tokens_beside(self, counter: TokenCounter) -> int:
        """Return the tokens of what is sent besides the text: other blocks, a name."""
        if self._message is None or (self.text == self._message.content and not self._message.name):
            return 0
        whole = counter.count_turn(message_to_turn(self._message))
        text = TurnDraft(role="system", content=self.text)
        return max(0, whole - (counter.count_turn(text) if self.text else 0))

    def filled(self, text: str) -> SystemMessage | None:
        """Return the message with another text in the place of its own; `None` if nothing is left.

        A block that only held the slot goes when there is nothing to say.
        """
        if self._message is None or self._place is None or text == self.text:
            return self._message
        if isinstance(self._message.content, str):
            return self._message.model_copy(update={"content": text}) if text.strip() else None
        own = self._blocks[self._place]
        block = text if isinstance(own, str) else {**own, "text": text}
        filled = [block] if text.strip() else []
        blocks = [*self._blocks[: self._place], *filled, *self._blocks[self._place + 1 :]]
        return self._message.model_copy(update={"content": blocks}) if blocks else None


def message_of_view(turn: Turn, given: Mapping[str, BaseMessage]) -> BaseMessage:
    """Return the message that a turn of a context is.

    Args:
        given: The messages of the run, by the ids of their turns.
    """
    message = given.get(str(turn.id))
    if turn.origin is None or not turn.origin.is_stale:
        return message or turn_to_message(turn)
    whole = message or _whole(turn)
    if whole is None:
        return turn_to_message(turn)
    return _with_changed_text(whole, turn) or _projected(whole, turn)


def _text_in(block: object) -> str:
    text = block.get("text") if isinstance(block, dict) else block
    return text if isinstance(text, str) else ""


def _whole(turn: Turn) -> BaseMessage | None:
    """Return the stored message that a changed turn is a view of, if it can be read."""
    origin = None if turn.origin is None else replace(turn.origin, is_stale=False)
    return restored_message(replace(turn, origin=origin))


def _with_changed_text(message: BaseMessage, turn: Turn) -> BaseMessage | None:
    """Return the message with the text that the turn has; `None` if more than that differs."""
    stored = message_to_turn(without_artifact(message))
    if [call.id for call in turn.tool_calls] != [call.id for call in stored.tool_calls]:
        return None
    if isinstance(message.content, str):
        is_less = len(turn.parts) < len(stored.parts)
        return None if is_less else message.model_copy(update={"content": turn.content or ""})
    block, others = turn.parts[:1], turn.parts[1:]
    if not block or list(others) != list(stored.parts):
        return None
    added = {"type": "text", "text": block[0]["text"]}
    return message.model_copy(update={"content": [added, *message.content]})


def _projected(message: BaseMessage, turn: Turn) -> BaseMessage:
    projected = projected_message(turn)
    projected.id = message.id
    return projected
