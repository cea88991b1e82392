"""The format `langchain/messages`: dumps of LangChain messages, and serialised constructors.

Both are read as data: nothing in them is ever loaded as a class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing.messages import Place, id_text, read_message
from hiermem_core.importing.records import RecordError, failed, skipped
from hiermem_core.models.plain import dump_json, to_plain
from hiermem_core.models.turns import CANONICAL_ROLES, Origin, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "langchain/messages"

_FRAMEWORK = "langchain"
_CHUNK = "MessageChunk"
_TYPES = {
    "Human": "human",
    "AI": "ai",
    "System": "system",
    "Tool": "tool",
    "Function": "function",
    "Chat": "chat",
    "Remove": "remove",
}
_CHAT, _REMOVE = "chat", "remove"
_TIMES = ("created_at", "timestamp")


def fits(value: Any) -> bool:
    """Tell whether a JSON value is of this format."""
    return isinstance(value, list) and any(map(_is_message, value))


def read(value: Any, reading: Reading) -> Iterator[Record]:
    """Yield the records of a list of messages."""
    thread = reading.thread or reading.stem
    for index, one in enumerate(value):
        yield dumped_message(one, Place(FORMAT, thread, index, f"[{index}]"))


def dumped_message(value: Any, place: Place, *, created_at: Any = None) -> Record:
    """Return the record of a dumped message; never raises for what it holds.

    Args:
        created_at: When it was stored, if its store says so.
    """
    try:
        kind, data = _kind_and_data(value)
        if kind == _REMOVE:
            return skipped(id_text(data.get("id")) or place.position, "not_a_turn", kind="turn")
        role = _role(kind, data)
        origin = Origin(_FRAMEWORK, role, dump_json(to_plain({"type": kind, "data": data})))
    except RecordError as error:
        return failed(error, ref=place.position, position=place.position)
    except (InvalidInputError, TypeError, ValueError, RecursionError):
        shapeless = RecordError("invalid_record", "is not shaped like a message; mend it")
        return failed(shapeless, ref=place.position, position=place.position)
    message = {
        "role": role,
        "content": data.get("content"),
        "id": data.get("id"),
        "name": data.get("name"),
        "tool_call_id": data.get("tool_call_id"),
        "tool_calls": _calls(data),
        "created_at": created_at,
    }
    return read_message(message, place, origin=origin)


def _is_message(one: Any) -> bool:
    if not isinstance(one, dict):
        return False
    is_dump = isinstance(one.get("data"), dict) and "type" in one and "content" in one["data"]
    return is_dump or {"lc", "id", "kwargs"} <= one.keys()


def _kind_and_data(value: Any) -> tuple[str, Mapping[str, Any]]:
    """Return type and fields of a message.

    Raises:
        RecordError: It is none.
    """
    if not isinstance(value, dict):
        raise RecordError("invalid_record", "is no object; give type and data")
    if "lc" in value:
        path, data = value.get("id"), value.get("kwargs")
        name = path[-1] if isinstance(path, list) and path else None
        kind = _TYPES.get(str(name).removesuffix("Chunk").removesuffix("Message"))
        if kind is None or not isinstance(data, dict):
            raise RecordError("unknown_role", "is no message of a known class; leave it out")
        return kind, {name: one for name, one in data.items() if name != "type"}
    kind, data = value.get("type"), value.get("data")
    if not isinstance(kind, str) or not isinstance(data, dict):
        raise RecordError("invalid_record", "has no type and data; mend it")
    return kind, data


def _role(kind: str, data: Mapping[str, Any]) -> str:
    if kind == _CHAT:
        return str(data.get("role"))
    if kind.endswith(_CHUNK):
        kind = _TYPES.get(kind.removesuffix(_CHUNK), kind)
    role = str(data.get("role")) if kind == _CHAT else kind
    is_developer = _of(data, "additional_kwargs").get("__openai_role__") == "developer"
    return "developer" if role == "system" and is_developer else CANONICAL_ROLES.get(role, role)


def _calls(data: Mapping[str, Any]) -> list[Any]:
    declared = data.get("tool_calls") or ()
    invalid = [
        ToolCall(one.get("id"), one.get("name") or "", one.get("args") or "", one.get("error"))
        for one in data.get("invalid_tool_calls") or ()
        if isinstance(one, dict)
    ]
    if declared or invalid:
        return [*declared, *invalid]
    more = _of(data, "additional_kwargs")
    legacy = more.get("function_call")
    return more.get("tool_calls") or ([{"function": legacy}] if legacy else [])


def _of(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}
