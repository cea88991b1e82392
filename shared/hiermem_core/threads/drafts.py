"""From what callers append to drafts that can be stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError, LimitExceededError
from hiermem_core.models.ids import check_name
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.models.text import TextCleaner, is_clean
from hiermem_core.models.turns import (
    ROLES,
    SOURCES,
    Origin,
    Part,
    ToolCall,
    TurnDraft,
    checked_part,
    text_of,
)
from hiermem_core.threads.openai_chat import draft_of

if TYPE_CHECKING:
    from datetime import datetime

TURN_LIMIT = 16 * 1024 * 1024
"""Characters of a turn, its dump included."""

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
    return draft_of(value)


def as_drafts(value: str | TurnLike | Sequence[TurnLike] | None) -> list[TurnDraft]:
    """Return the drafts of a current input: a text is a user turn, `None` is nothing."""
    if value is None:
        return []
    if isinstance(value, str):
        return [TurnDraft(role="user", content=value)]
    if isinstance(value, TurnDraft | Mapping):
        return [as_draft(value)]
    return [as_draft(item) for item in value]


def cleaned_drafts(turns: Iterable[TurnLike], cleaner: TextCleaner) -> list[TurnDraft]:
    """Return storable copies of what a caller appends.

    Raises:
        InvalidInputError: A turn cannot be stored, or is nested too deeply.
        LimitExceededError: A turn is larger than 16 Mi characters.
    """
    try:
        return [cleaned(as_draft(turn), cleaner) for turn in turns]
    except RecursionError:
        raise InvalidInputError("turns", "are nested too deeply; flatten them") from None


def cleaned(draft: TurnDraft, cleaner: TextCleaner) -> TurnDraft:
    """Return a storable copy of a draft; nothing in it is shared with the caller.

    Where redacting changes anything, the framework's dump goes, as it holds what was redacted.

    Raises:
        InvalidInputError: A field cannot be stored.
        LimitExceededError: The turn is larger than 16 Mi characters.
    """
    if not isinstance(draft.role, str) or draft.role not in ROLES:
        known = ", ".join(sorted(ROLES))
        raise InvalidInputError("role", f"{draft.role!r} is unknown; use one of {known}")
    if draft.source is not None and not isinstance(draft.source, str):
        raise InvalidInputError("source", f"must be text, not {type(draft.source).__name__}")
    if draft.source not in SOURCES:
        raise InvalidInputError("source", f"{draft.source!r} is unknown; leave it out")
    if draft.pinned and (draft.tool_calls or draft.role == "tool"):
        raise InvalidInputError("pinned", "a tool call or result cannot be pinned; pin its text")
    before = cleaner.redacted
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
        origin=_origin(draft.origin, cleaner),
    )
    if cleaner.redacted != before:
        copy = replace(copy, origin=None)
    copy = in_agreement(copy)
    _check_size(copy)
    return copy


def in_agreement(draft: TurnDraft) -> TurnDraft:
    """Return the draft with the text of its parts as its content, and no text beside its parts."""
    if not draft.parts:
        return draft
    text = text_of(draft.parts)
    if text or not draft.content:
        return replace(draft, content=draft.content if text is None else text)
    return replace(draft, parts=({"type": "text", "text": draft.content}, *draft.parts))


def _aware(moment: datetime | None) -> datetime | None:
    if moment is not None and moment.utcoffset() is None:
        raise InvalidInputError("created_at", "has no time zone; give an aware datetime")
    return moment


def _text(name: str, value: Any, cleaner: TextCleaner) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInputError(name, f"must be text, not {type(value).__name__}")
    return cleaner.optional(value)


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


def _origin(origin: Origin | None, redacting: TextCleaner) -> Origin | None:
    if origin is None or origin.is_stale:
        return None
    cleaner, dump = TextCleaner(), origin.dump
    if redacting.redacts:
        _redact(load_json(dump), redacting)
    if not is_clean(dump) or "\\u0000" in dump:
        dump = dump_json(cleaner.json(load_json(dump)))
    return Origin(origin.framework, cleaner.text(origin.role), dump)


def _redact(value: Any, cleaner: TextCleaner) -> None:
    """Show every text of a JSON value to the redactor, which may reject one or change it."""
    if isinstance(value, str):
        cleaner.name(value)
    elif isinstance(value, dict):
        for one in (*value.keys(), *value.values()):
            _redact(one, cleaner)
    elif isinstance(value, list):
        for one in value:
            _redact(one, cleaner)


def _plain(name: str, value: Mapping[str, Any]) -> Any:
    if not isinstance(value, Mapping):
        raise InvalidInputError(name, f"must be a mapping, not {type(value).__name__}")
    try:
        return load_json(dump_json(value))
    except InvalidInputError as error:
        raise InvalidInputError(name, error.reason) from error


def _check_size(draft: TurnDraft) -> None:
    size = len(draft.content or "") + len(draft.origin.dump if draft.origin else "")
    size += sum(len(dump_json(part)) for part in draft.parts if part["type"] != "text")
    size += sum(len(dump_json(call.args)) for call in draft.tool_calls)
    size += len(dump_json(draft.metadata))
    if size > TURN_LIMIT:
        raise LimitExceededError("turn", limit=TURN_LIMIT, actual=size)
