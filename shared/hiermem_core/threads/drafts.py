"""From what callers append to drafts that can be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from hiermem_core.errors import InvalidInputError, LimitExceededError
from hiermem_core.models.ids import check_name
from hiermem_core.models.plain import dump_json, load_json, to_plain
from hiermem_core.models.text import TextCleaner, is_clean
from hiermem_core.models.turns import (
    CANONICAL_ROLES,
    ROLES,
    SOURCES,
    Origin,
    Part,
    ToolCall,
    TurnDraft,
    call_arguments,
    text_of,
)

TURN_LIMIT = 16 * 1024 * 1024
"""Characters of a turn, its dump included."""

_KNOWN_KEYS = frozenset(
    {
        *("role", "content", "parts", "tool_calls", "tool_call_id", "name", "id", "source"),
        *("pinned", "user_id", "created_at", "metadata"),
    }
)

TurnLike = TurnDraft | Mapping[str, Any]


def as_draft(value: TurnLike) -> TurnDraft:
    """Return a draft of a turn given as a value or as an OpenAI-style mapping.

    A mapping's keys beyond those of `TurnDraft` are kept with it, unread.

    Raises:
        InvalidInputError: The role is unknown, or a field has the wrong type.
    """
    if isinstance(value, TurnDraft):
        return value
    if not isinstance(value, Mapping):
        raise InvalidInputError("turn", f"must be a turn or a mapping, not {type(value).__name__}")
    return _from_mapping(value)


def as_drafts(value: str | TurnLike | Sequence[TurnLike] | None) -> list[TurnDraft]:
    """Return the drafts of a current input: a text is a user turn, `None` is nothing."""
    if value is None:
        return []
    if isinstance(value, str):
        return [TurnDraft(role="user", content=value)]
    if isinstance(value, TurnDraft | Mapping):
        return [as_draft(value)]
    return [as_draft(item) for item in value]


def cleaned(draft: TurnDraft, cleaner: TextCleaner) -> TurnDraft:
    """Return a storable copy of a draft; nothing in it is shared with the caller.

    Raises:
        InvalidInputError: A field cannot be stored.
        LimitExceededError: The turn is larger than 16 Mi characters.
    """
    if draft.role not in ROLES:
        known = ", ".join(sorted(ROLES))
        raise InvalidInputError("role", f"{draft.role!r} is unknown; use one of {known}")
    if draft.source not in SOURCES:
        raise InvalidInputError("source", f"{draft.source!r} is unknown; leave it out")
    if draft.pinned and (draft.tool_calls or draft.role == "tool"):
        raise InvalidInputError("pinned", "a tool call or result cannot be pinned; pin its text")
    copy = replace(
        draft,
        content=_text("content", draft.content, cleaner),
        parts=tuple(_part(part, cleaner) for part in draft.parts),
        tool_calls=tuple(_call(call, cleaner) for call in draft.tool_calls),
        tool_call_id=_text("tool_call_id", draft.tool_call_id, cleaner),
        name=_text("name", draft.name, cleaner),
        id=None if draft.id is None else check_name("turn id", draft.id),
        user_id=None if draft.user_id is None else check_name("user_id", draft.user_id),
        created_at=_aware(draft.created_at),
        metadata=cleaner.json(_plain("metadata", draft.metadata)),
        origin=_origin(draft.origin),
    )
    _check_size(copy)
    return copy


def _from_mapping(value: Mapping[str, Any]) -> TurnDraft:
    role = CANONICAL_ROLES.get(str(value.get("role")))
    if role is None:
        known = ", ".join(sorted(CANONICAL_ROLES))
        raise InvalidInputError("role", f"{value.get('role')!r} is unknown; use one of {known}")
    content, parts = _content(value)
    kept = {key: value[key] for key in _KNOWN_KEYS - {"role", "content", "parts"} if key in value}
    kept["tool_calls"] = [_call_of(call) for call in _calls_in(value)]
    kept["created_at"] = _time(value.get("created_at"))
    kept["metadata"] = value.get("metadata") or {}
    kept["pinned"] = bool(value.get("pinned"))
    return TurnDraft(role=role, content=content, parts=parts, origin=_dump(value), **kept)


def _dump(value: Mapping[str, Any]) -> Origin | None:
    extra = [key for key in value if key not in _KNOWN_KEYS and value[key] is not None]
    if not extra and value["role"] in ROLES and not isinstance(value.get("content"), list):
        return None
    return Origin("openai", str(value["role"]), dump_json(to_plain(dict(value))))


def _content(value: Mapping[str, Any]) -> tuple[str | None, Sequence[Part]]:
    content = value.get("content")
    if content is None or isinstance(content, str):
        parts = tuple(map(checked_part, _sequence("parts", value.get("parts") or ())))
        return (content, parts) if content is not None or not parts else (text_of(parts), parts)
    parts = tuple(part_of_openai(block) for block in _sequence("content", content))
    return text_of(parts), parts


def part_of_openai(block: Any) -> Part:
    """Return the neutral part of a content block in the dialect of the OpenAI chat API."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, Mapping):
        raise InvalidInputError("content", "a block must be text or a mapping")
    kind = block.get("type")
    if kind in {"text", "input_text", "output_text"} and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    if kind == "refusal" and isinstance(block.get("refusal"), str):
        return {"type": "refusal", "text": block["refusal"]}
    if kind == "image_url":
        return _image_part(block.get("image_url"))
    if kind == "input_audio" and isinstance(block.get("input_audio"), Mapping):
        audio = block["input_audio"]
        return _part_without_none(
            kind="audio", base64=audio.get("data"), format=audio.get("format")
        )
    return {"type": "opaque", "value": to_plain(dict(block))}


def _sequence(name: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(name, f"must be a list, not {type(value).__name__}")
    return value


def _image_part(image: Any) -> Part:
    facts = image if isinstance(image, Mapping) else {"url": image}
    url, detail = facts.get("url"), facts.get("detail")
    if not isinstance(url, str):
        raise InvalidInputError("content", "an image_url needs a url as text")
    head, separator, data = url.partition(";base64,")
    if separator and head.startswith("data:"):
        mime = head.removeprefix("data:")
        return _part_without_none(kind="image", base64=data, mime_type=mime, detail=detail)
    return _part_without_none(kind="image", uri=url, detail=detail)


def _part_without_none(**facts: Any) -> Part:
    return {"type": "media", **{name: fact for name, fact in facts.items() if fact is not None}}


def _calls_in(value: Mapping[str, Any]) -> Sequence[Any]:
    calls, legacy = value.get("tool_calls"), value.get("function_call")
    if not calls:
        return [{"function": legacy}] if legacy else ()
    return _sequence("tool_calls", calls)


def _call_of(call: Any) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    if not isinstance(call, Mapping):
        raise InvalidInputError("tool_calls", "a call must be a mapping with a function")
    function = call.get("function")
    facts = function if isinstance(function, Mapping) else call
    raw = facts.get("arguments", facts.get("args", {}))
    return ToolCall(call.get("id"), str(facts.get("name") or ""), call_arguments(raw))


def _time(value: Any) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidInputError("created_at", "must be ISO 8601 text with an offset") from None


def _aware(moment: datetime | None) -> datetime | None:
    if moment is not None and moment.utcoffset() is None:
        raise InvalidInputError("created_at", "has no time zone; give an aware datetime")
    return moment


def _text(name: str, value: Any, cleaner: TextCleaner) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInputError(name, f"must be text, not {type(value).__name__}")
    return cleaner.optional(value)


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


def _part(part: Part, cleaner: TextCleaner) -> Part:
    copy: Part = cleaner.json(_plain("parts", checked_part(part)))
    return copy


def _call(call: ToolCall, cleaner: TextCleaner) -> ToolCall:
    args = call.args if isinstance(call.args, str) else _plain("tool_calls", call.args)
    return ToolCall(
        _text("tool_calls", call.id, cleaner),
        cleaner.text(call.name),
        cleaner.json(args),
        cleaner.optional(call.error),
    )


def _origin(origin: Origin | None) -> Origin | None:
    if origin is None:
        return None
    cleaner, dump = TextCleaner(), origin.dump
    if not is_clean(dump) or "\\u0000" in dump:
        dump = dump_json(cleaner.json(load_json(dump)))
    return Origin(origin.framework, cleaner.text(origin.role), dump)


def _plain(name: str, value: Mapping[str, Any]) -> Any:
    if not isinstance(value, Mapping):
        raise InvalidInputError(name, f"must be a mapping, not {type(value).__name__}")
    try:
        return load_json(dump_json(value))
    except InvalidInputError as error:
        raise InvalidInputError(name, error.reason) from error


def _check_size(draft: TurnDraft) -> None:
    size = len(draft.content or "") + len(draft.origin.dump if draft.origin else "")
    size += sum(len(dump_json(part)) for part in draft.parts)
    if size > TURN_LIMIT:
        raise LimitExceededError("turn", limit=TURN_LIMIT, actual=size)
