"""Messages in the words of the OpenAI chat API, and of its neighbours, as drafts of turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.models.plain import dump_json, to_plain
from hiermem_core.models.turns import (
    CANONICAL_ROLES,
    ROLES,
    Origin,
    Part,
    ToolCall,
    TurnDraft,
    call_arguments,
    checked_part,
    text_of,
)

_KNOWN_KEYS = frozenset(
    {
        *("role", "content", "parts", "tool_calls", "tool_call_id", "name", "id", "source"),
        *("pinned", "user_id", "created_at", "metadata"),
    }
)

_CALL_BLOCKS = frozenset({"tool_use", "tool_call"})
"""Content blocks that are calls, in the words of other providers."""


def draft_of(value: Mapping[str, Any]) -> TurnDraft:
    """Return the draft of a message; keys that no draft has are kept with it, unread.

    Raises:
        InvalidInputError: The role is unknown, or a field has the wrong type.
    """
    value = _with_refusal(value)
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


def part_of(block: Any) -> Part:
    """Return the neutral part of a content block; one that nobody here knows stays as it is."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, Mapping):
        raise InvalidInputError("content", "a block must be text or a mapping")
    read = _READERS.get(_kind(block))
    part = read(block) if read else None
    return part or {"type": "opaque", "value": to_plain(dict(block))}


def _text_part(block: Mapping[str, Any]) -> Part | None:
    text = block.get("text")
    return {"type": "text", "text": text} if isinstance(text, str) else None


def _refusal_part(block: Mapping[str, Any]) -> Part | None:
    text = block.get("refusal")
    return {"type": "refusal", "text": text} if isinstance(text, str) else None


def _result_part(block: Mapping[str, Any]) -> Part:
    return {"type": "text", "text": _result_text(block.get("content"))}


def _audio_part(block: Mapping[str, Any]) -> Part | None:
    audio = block.get("input_audio")
    if not isinstance(audio, Mapping):
        return None
    return _media(kind="audio", base64=audio.get("data"), format=audio.get("format"))


def _with_refusal(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the mapping with a refusal beside its content as a block of it."""
    refusal, content = value.get("refusal"), value.get("content")
    if not isinstance(refusal, str) or not refusal or isinstance(content, list):
        return value
    text = [{"type": "text", "text": content}] if content else []
    return {**value, "content": [*text, {"type": "refusal", "refusal": refusal}]}


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
    blocks = [block for block in _sequence("content", content) if _kind(block) not in _CALL_BLOCKS]
    parts = tuple(part_of(block) for block in blocks)
    return text_of(parts), parts


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, Mapping) else None


def _result_text(content: Any) -> str:
    parts = [part_of(block) for block in content] if isinstance(content, list) else []
    return content if isinstance(content, str) else text_of(parts) or dump_json(to_plain(content))


def _sequence(name: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(name, f"must be a list, not {type(value).__name__}")
    return value


def _image_part(block: Mapping[str, Any]) -> Part:
    image = block.get("image_url")
    facts = image if isinstance(image, Mapping) else {"url": image}
    url, detail = facts.get("url"), facts.get("detail")
    if not isinstance(url, str):
        raise InvalidInputError("content", "an image_url needs a url as text")
    head, separator, data = url.partition(";base64,")
    if separator and head.startswith("data:"):
        mime = head.removeprefix("data:")
        return _media(kind="image", base64=data, mime_type=mime, detail=detail)
    return _media(kind="image", uri=url, detail=detail)


def _media(**facts: Any) -> Part:
    return {"type": "media", **{name: fact for name, fact in facts.items() if fact is not None}}


def _calls_in(value: Mapping[str, Any]) -> Sequence[Any]:
    calls, legacy, content = (value.get(key) for key in ("tool_calls", "function_call", "content"))
    if calls:
        return _sequence("tool_calls", calls)
    if legacy:
        return [{"function": legacy}]
    blocks = content if isinstance(content, list) else ()
    return [block for block in blocks if _kind(block) in _CALL_BLOCKS]


def _call_of(call: Any) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    if not isinstance(call, Mapping):
        raise InvalidInputError("tool_calls", "a call must be a mapping with a function")
    function = call.get("function")
    facts = function if isinstance(function, Mapping) else call
    raw: Any = next((facts[key] for key in ("arguments", "args", "input") if key in facts), {})
    return ToolCall(call.get("id"), str(facts.get("name") or ""), call_arguments(raw))


def _time(value: Any) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidInputError("created_at", "must be ISO 8601 text with an offset") from None


_READERS: dict[Any, Callable[[Mapping[str, Any]], Part | None]] = {
    **dict.fromkeys(("text", "input_text", "output_text"), _text_part),
    "refusal": _refusal_part,
    "tool_result": _result_part,
    "image_url": _image_part,
    "input_audio": _audio_part,
}
