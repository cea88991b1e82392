"""Contexts: what the model reads, and the receipt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hiermem_core.models.displayed import Displayed
from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from hiermem_core.models.queries import Hit, TurnHit
    from hiermem_core.models.turns import Part, ToolCall, Turn
    from hiermem_core.models.warnings import ContextWarning


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a context: its tokens and the ids of the turns and entries in it."""

    name: str
    tokens: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt(Displayed):
    """Where the tokens went. Holds no text.

    Attributes:
        budget: Tokens allowed.
        reserve: Tokens kept free for the answer; already taken off the budget.
        counter: Id of the counter all figures are by.
        exact: The counter counts with the model's own vocabulary, not by estimate.
        sections: `prefix`, `system`, `tools`, `pinned`, `recall`, `notes`, `window`, `current`,
            `framing`; they sum to `total`.
    """

    budget: int
    reserve: int
    counter: str
    exact: bool
    sections: tuple[Section, ...]

    @property
    def total(self) -> int:
        """Tokens of the messages, tools and prefix together."""
        return sum(section.tokens for section in self.sections)

    def tokens(self, name: str) -> int:
        """Return the tokens of one section, 0 where the context has no such section."""
        return sum(section.tokens for section in self.sections if section.name == name)


@dataclass(frozen=True, slots=True)
class Context(Displayed):
    """What a model call gets.

    Attributes:
        messages: The turns to send, in order: system prompt, pinned turns, window.
        warnings: What was left out or is weaker than asked for.
        notes: What is remembered about the thread, as it stands in the messages; `""` for nothing.
        hits: What was recalled, as it stands in the messages, best first.
    """

    messages: tuple[Turn, ...]
    warnings: tuple[ContextWarning, ...]
    receipt: Receipt
    notes: str = ""
    hits: tuple[Hit | TurnHit, ...] = ()

    def to_openai(self) -> list[dict[str, Any]]:
        """Return the messages in the form of the OpenAI chat API: text, images, audio and calls.

        What that API has no block for stands there as its kind in brackets.
        """
        return [_openai_message(turn) for turn in self.messages]


def _openai_message(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role, "content": _openai_content(turn)}
    if turn.name:
        message["name"] = turn.name
    if turn.tool_calls:
        message["tool_calls"] = [_openai_call(call) for call in turn.tool_calls]
    if turn.tool_call_id is not None:
        message["tool_call_id"] = turn.tool_call_id
    return message


def _openai_content(turn: Turn) -> str | list[dict[str, Any]] | None:
    if not any(part["type"] == "media" for part in turn.parts):
        return turn.content
    parts = [part for part in turn.parts if part["type"] in {"text", "refusal", "media"}]
    return [_openai_block(part) for part in parts]


def _openai_block(part: Part) -> dict[str, Any]:
    if part["type"] != "media":
        return {"type": "text", "text": part["text"]}
    data, mime = part.get("base64"), part.get("mime_type", "image/png")
    if part["kind"] == "image" and (data or "uri" in part):
        url = f"data:{mime};base64,{data}" if data else part["uri"]
        return {"type": "image_url", "image_url": {"url": url}}
    if part["kind"] == "audio" and data:
        audio = {"data": data, "format": part.get("format", "wav")}
        return {"type": "input_audio", "input_audio": audio}
    return {"type": "text", "text": f"[{part['kind']}]"}


def _openai_call(call: ToolCall) -> dict[str, Any]:
    args = call.args if isinstance(call.args, str) else dump_json(call.args)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": args}}
