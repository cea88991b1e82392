"""Turns: what a thread is made of.

A turn keeps a neutral form that every framework can read, and beside it, unread, the dump of the
framework it came from (`Origin`), so that the same framework gets an equal object back.

Parts are plain JSON objects, in the order of the content blocks, tagged by `type`:

    text              text, annotations?, extras?
    media             kind (image | audio | video | document), one of base64, uri, file_id, path;
                      mime_type?, detail?, format?, fps?, title?, context?, text?, extras?
    reasoning         text, tokens?, extras?                    what the model thought
    tool_call         id, index                                 where `tool_calls[index]` stood
    server_tool_call, server_tool_result                        value: the provider's own block
    citable           title?, source?, text                     a document that may be cited
    citation          title?, source?, text, locations?         a span that cites one
    refusal           text
    cache             value: a cache hint, at its position
    opaque            value: a block nobody here knows, verbatim
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from hiermem_core.errors import InvalidInputError
from hiermem_core.models.plain import dump_json, load_json, to_plain
from hiermem_core.models.text import TextCleaner

if TYPE_CHECKING:
    from datetime import datetime

Role = Literal["system", "developer", "user", "assistant", "tool"]
Source = Literal["model", "human", "tool"]
Status = Literal["active", "archived"]
Part = Mapping[str, Any]

ROLES: frozenset[str] = frozenset(get_args(Role))
SOURCES: frozenset[str | None] = frozenset({*get_args(Source), None})
STANDING_ROLES: frozenset[str] = frozenset({"system", "developer"})

CANONICAL_ROLES: Mapping[str, Role] = {
    **{role: role for role in ("system", "developer", "user", "assistant", "tool")},
    "human": "user",
    "ai": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "function": "tool",
}
"""What other systems call the roles."""

_SOURCES: dict[str, Source] = {"assistant": "model", "tool": "tool"}
_SPEAKING_ROLES = frozenset({"user", "assistant"})
_TEXT_PARTS = frozenset({"text", "refusal"})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call a model asked for.

    Attributes:
        id: The provider's id; results name it. `None` where the provider gives none.
        name: The tool.
        args: The arguments as an object, or the raw text where it is not one.
        error: Why the raw text could not be read, if the framework said so.
    """

    id: str | None
    name: str
    args: Mapping[str, Any] | str = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """The source framework's own form of a turn.

    Attributes:
        framework: `"langchain"`, `"llamaindex"`, `"openai"`, ...
        role: The role in the framework's own words.
        dump: JSON text, read by that framework's adapter only.
        is_stale: The turn is a view that says less than the dump, or more.
    """

    framework: str
    role: str
    dump: str
    is_stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDraft:
    """A turn to be stored.

    Attributes:
        content: The readable text; `None` and `""` are kept apart.
        parts: Everything in the content, text included, where it is more than one plain text.
        tool_call_id: Of a tool result: the call it answers.
        id: Makes a repeated append harmless; a fresh one is made when `None`.
        pinned: Keep it in every context, outside the exchanges.
        created_at: Aware; the clock's now when `None`.
        replaced: Paths of values the framework's dump could not carry.
    """

    role: Role
    content: str | None = None
    parts: Sequence[Part] = ()
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None
    name: str | None = None
    id: str | None = None
    source: Source | None = None
    pinned: bool = False
    user_id: str | None = None
    created_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin | None = None
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(TurnDraft):
    """One stored message of a thread, or a view of it in a context.

    Attributes:
        seq: Its place in the thread, from 1, never reused; 0 for a turn that is not stored.
        revision: How often it was edited, from 1.
        status: `"archived"` turns are out of the thread and kept.
        token_counts: Tokens per counter id, as stored.
        call_seq: Of a tool result: the seq of the turn that made the call, if that is stored.
        unreadable: Why the stored form could not be decoded; the turn is then a placeholder.
    """

    seq: int = 0
    revision: int = 1
    status: Status = "active"
    token_counts: Mapping[str, int] = field(default_factory=dict)
    call_seq: int | None = None
    unreadable: str | None = None


def source_of_role(role: str) -> Source:
    """Return who speaks in a role, unless a turn says otherwise."""
    return _SOURCES.get(role, "human")


def view_of(turn: Turn, **changes: Any) -> Turn:
    """Return a turn as it stands in a context, changed from how it is stored."""
    origin = None if turn.origin is None else replace(turn.origin, is_stale=True)
    return replace(turn, origin=origin, token_counts={}, **changes)


def is_standing(turn: TurnDraft) -> bool:
    """Tell whether a turn stays in every context, outside the exchanges; one that calls cannot."""
    return (turn.pinned or turn.role in STANDING_ROLES) and not turn.tool_calls


def is_blank(turn: TurnDraft) -> bool:
    """Tell whether a user or assistant turn says nothing; providers refuse such a turn."""
    if turn.content and not turn.content.isspace():
        return False
    if turn.role not in _SPEAKING_ROLES or turn.tool_calls:
        return False
    return all(part["type"] in _TEXT_PARTS for part in turn.parts)


def text_of(parts: Sequence[Part]) -> str | None:
    """Return the text parts joined by newlines, or `None` if there are none."""
    texts = [part.get("text", "") for part in parts if part["type"] in _TEXT_PARTS]
    return "\n".join(texts) if texts else None


def neutral(turn: TurnDraft) -> tuple[Any, ...]:
    """Return what two turns must share to say the same thing."""
    calls = [(call.id, call.name, call.args, call.error) for call in turn.tool_calls]
    parts = [dict(part) for part in turn.parts]
    return (turn.role, turn.content, parts, calls, turn.tool_call_id, turn.name)


def fingerprint(turn: TurnDraft) -> str:
    """Return a digest that two turns share exactly when they say the same thing."""
    plain = TextCleaner().json(load_json(json.dumps(neutral(turn), default=dict)))
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def call_arguments(raw: Any) -> Mapping[str, Any] | str:
    """Return a call's arguments as an object, or as the raw text where it is not one."""
    if isinstance(raw, Mapping):
        return raw
    if not isinstance(raw, str):
        return {} if raw is None else dump_json(to_plain(raw))
    try:
        parsed = load_json(raw)
    except ValueError:
        return raw
    return parsed if isinstance(parsed, dict) else raw


def checked_part(part: Any) -> Part:
    """Return a part whose facts that are read here have their types.

    Raises:
        InvalidInputError: They have not.
    """
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise InvalidInputError("parts", "a part must be a mapping with a type")
    if not isinstance(part.get("text", ""), str):
        raise InvalidInputError("parts", "the text of a part must be text")
    if part["type"] == "media" and not isinstance(part.get("kind"), str):
        raise InvalidInputError("parts", "a media part must have a kind")
    if not isinstance(part.get("tokens") or 0, int):
        raise InvalidInputError("parts", "the tokens of a part must be a whole number")
    return part
