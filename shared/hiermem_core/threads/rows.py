"""Between a turn and its row. Pure; decoding never raises."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hiermem_core.models.moments import from_milliseconds, to_milliseconds
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.models.turns import (
    ROLES,
    STANDING_ROLES,
    Origin,
    ToolCall,
    Turn,
    checked_part,
    is_standing,
    source_of_role,
)
from hiermem_core.storage.sealing import Undecodable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


UNREADABLE = "[unreadable turn]"

_SHORT = 64
"""Characters of what most turns have alike: their bodies, and their counts. It is parsed once."""


def row_of(turn: Turn, *, thread: int) -> dict[str, Any]:
    """Return the row of a turn."""
    moment = turn.created_at
    if moment is None:
        raise ValueError("a stored turn has a time")
    return {
        "thread": thread,
        "seq": turn.seq,
        "id": turn.id,
        "archived": turn.status == "archived",
        "standing": is_standing(turn),
        "call_seq": turn.call_seq,
        "revision": turn.revision,
        "role": turn.role,
        "content": turn.content,
        "body": dump_json(body) if (body := _body(turn)) else None,
        "dump": turn.origin.dump if turn.origin else None,
        "tokens": dump_json(turn.token_counts),
        "created_at": to_milliseconds(moment),
    }


def turn_of(row: Sequence[Any]) -> Turn:
    """Return the turn of a row; one that cannot be decoded becomes a placeholder."""
    try:
        return _turn_of(row)
    except (
        ValueError,
        TypeError,
        KeyError,
        LookupError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        return _placeholder(row, type(error).__name__)


def _turn_of(row: Sequence[Any]) -> Turn:
    values: tuple[Any, ...] = tuple(row)
    _, seq, name, archived, _, call_seq, revision, role, content, body, dump, counts, moment = (
        values
    )
    if role not in ROLES:
        raise ValueError(role)
    if isinstance(content, Undecodable) or not (content is None or isinstance(content, str)):
        raise TypeError("content")
    facts = _facts(body)
    return Turn(
        seq=seq,
        id=name,
        status="archived" if archived else "active",
        call_seq=call_seq,
        revision=revision,
        role=role,
        content=content,
        origin=_origin(facts.get("origin"), dump),
        token_counts=_counts(counts),
        created_at=from_milliseconds(moment),
        **_fields(facts, role),
    )


def _placeholder(row: Sequence[Any], reason: str) -> Turn:
    _, seq, name, archived, standing, call_seq, _, role, content, *_, moment = row
    return Turn(
        seq=seq,
        id=str(name),
        status="archived" if archived else "active",
        call_seq=call_seq if isinstance(call_seq, int) else None,
        role=role if role in ROLES else "assistant",
        pinned=bool(standing) and role not in STANDING_ROLES,
        content=content if isinstance(content, str) else UNREADABLE,
        unreadable=reason,
        created_at=from_milliseconds(moment) if isinstance(moment, int) else None,
    )


def _body(turn: Turn) -> dict[str, Any]:
    calls = [[call.id, call.name, call.args, call.error] for call in turn.tool_calls]
    facts = {
        "parts": list(turn.parts),
        "tool_calls": calls,
        "tool_call_id": turn.tool_call_id,
        "name": turn.name,
        "user_id": turn.user_id,
        "metadata": dict(turn.metadata),
        "pinned": turn.pinned,
        "source": turn.source if turn.source != source_of_role(turn.role) else None,
        "origin": [turn.origin.framework, turn.origin.role] if turn.origin else None,
    }
    return {name: fact for name, fact in facts.items() if fact not in (None, [], {}, False)}


def _facts(body: str | None) -> Mapping[str, Any]:
    if not body:
        return {}
    origin = _origin_alone(body) if len(body) <= _SHORT else None
    return load_json(body) if origin is None else {"origin": origin}


@lru_cache(256)
def _origin_alone(body: str) -> tuple[str, str] | None:
    """Return the origin that a body tells if it tells nothing else."""
    facts = load_json(body)
    if facts.keys() != {"origin"}:
        return None
    framework, role = facts["origin"]
    return framework, role


def _fields(body: Mapping[str, Any], role: Any) -> dict[str, Any]:
    if body.keys() <= {"origin"}:
        return {"source": source_of_role(role)}
    return {
        "parts": tuple(checked_part(part) for part in body.get("parts", ())),
        "tool_calls": tuple(_call(call) for call in body.get("tool_calls", ())),
        "tool_call_id": _text(body.get("tool_call_id")),
        "name": _text(body.get("name")),
        "user_id": _text(body.get("user_id")),
        "metadata": _object(body.get("metadata", {})),
        "pinned": body.get("pinned", False),
        "source": body.get("source") or source_of_role(role),
    }


def _call(value: Any) -> ToolCall:
    call_id, name, args, error = value
    if not isinstance(name, str):
        raise TypeError("tool_calls")
    args = args if isinstance(args, str) else _object(args)
    return ToolCall(_text(call_id), name, args, _text(error))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError("text")


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise TypeError("object")


def _counts(text: str) -> dict[str, int]:
    return dict(_short_counts(text) if len(text) <= _SHORT else _checked_counts(text))


def _checked_counts(text: str) -> Mapping[str, int]:
    counts: Mapping[str, int] = load_json(text)
    if not all(type(tokens) is int for tokens in counts.values()):
        raise TypeError("tokens")
    return counts


_short_counts = lru_cache(4096)(_checked_counts)


def _origin(origin: Sequence[str] | None, dump: str | None) -> Origin | None:
    if origin is None or dump is None:
        return None
    framework, role = origin
    return Origin(framework, role, dump)
