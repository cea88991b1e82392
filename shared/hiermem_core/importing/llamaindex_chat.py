"""The format `llamaindex/chat-store`: dumps of chat stores and chat memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing.messages import Place, read_message
from hiermem_core.importing.records import RecordError, failed
from hiermem_core.models.plain import dump_json, load_json, to_plain
from hiermem_core.models.turns import CANONICAL_ROLES, Origin, ToolCall, call_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "llamaindex/chat-store"

_FRAMEWORK = "llamaindex"
_PLACES = {"url": "url", "path": "path"}
_PAYLOADS = dict.fromkeys(("image", "audio", "video", "data"), "ascii")
_MEDIA = frozenset({"image", "audio", "video", "document"})


def fits(value: Any) -> bool:
    """Tell whether a JSON value is of this format, perhaps as text within it."""
    return bool(_chats(value)) or _is_empty_store(_unpacked(value))


def read(value: Any, reading: Reading) -> Iterator[Record]:
    """Yield the records of each chat.

    Raises:
        InvalidInputError: A thread is named, and there are several chats.
    """
    chats = _chats(value)
    for key, messages in chats.items():
        thread = reading.thread or key or reading.stem
        for index, one in enumerate(messages):
            position = f"[{index}]" if len(chats) == 1 else f"{key}[{index}]"
            yield stored_message(one, Place(FORMAT, thread, index, position))


def stored_message(
    value: Any, place: Place, *, created_at: Any = None, is_archived: bool = False
) -> Record:
    """Return the record of a stored message; never raises for what it holds."""
    try:
        return _message(value, place, created_at=created_at, is_archived=is_archived)
    except RecordError as error:
        return failed(error, ref=place.position, position=place.position)
    except (InvalidInputError, TypeError, ValueError, AttributeError, RecursionError):
        shapeless = RecordError("invalid_record", "is not shaped like a message; mend it")
        return failed(shapeless, ref=place.position, position=place.position)


def _message(value: Any, place: Place, *, created_at: Any, is_archived: bool) -> Record:
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        raise RecordError("invalid_record", "is no object with a role; mend it")
    role, kwargs = value["role"], value.get("additional_kwargs") or {}
    blocks = _blocks(value)
    dump = {
        "role": role,
        "additional_kwargs": kwargs,
        "blocks": [_tagged(block) for block in blocks],
    }
    content = [_content(block) for block in blocks if block.get("block_type") != "tool_call"]
    message = {
        "role": role,
        "content": content[0]["text"] if _is_plain(blocks) else (content or None),
        "tool_calls": _calls(blocks) or kwargs.get("tool_calls") or [],
        "tool_call_id": kwargs.get("tool_call_id"),
        "name": kwargs.get("name"),
        "created_at": created_at,
    }
    origin = Origin(
        _FRAMEWORK, CANONICAL_ROLES.get(role, role) if role == "human" else role, _dump(dump)
    )
    return read_message(message, place, origin=origin, is_archived=is_archived)


def _dump(dump: Mapping[str, Any]) -> str:
    return dump_json(to_plain(dump))


def _chats(value: Any) -> dict[str, Sequence[Any]]:
    """Return the messages of each chat."""
    value = _unpacked(value)
    if not isinstance(value, dict):
        return {}
    if "chat_store" in value:
        return _chats(value["chat_store"])
    if isinstance(value.get("chat_history"), list):
        return {"": value["chat_history"]}
    store = value.get("store")
    if "class_name" not in value or not isinstance(store, dict):
        return {}
    return {key: chat for key, chat in store.items() if isinstance(chat, list)}


def _is_empty_store(value: Any) -> bool:
    return isinstance(value, dict) and "class_name" in value and value.get("store") == {}


def _unpacked(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return load_json(value)
    except ValueError:
        return None


def _blocks(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    blocks = value.get("blocks")
    if isinstance(blocks, list):
        return [block for block in blocks if isinstance(block, dict)]
    content = value.get("content")
    if content is None:
        return []
    if not isinstance(content, str):
        raise RecordError("invalid_record", "its content is no text; mend it")
    return [{"block_type": "text", "text": content}]


def _is_plain(blocks: Sequence[Mapping[str, Any]]) -> bool:
    return [block.get("block_type") for block in blocks] == ["text"]


def _calls(blocks: Sequence[Mapping[str, Any]]) -> list[ToolCall]:
    return [
        ToolCall(
            block.get("tool_call_id"),
            str(block.get("tool_name") or ""),
            call_arguments(block.get("tool_kwargs")),
        )
        for block in blocks
        if block.get("block_type") == "tool_call"
    ]


def _content(block: Mapping[str, Any]) -> Any:
    """Return a block as one of the chat dialect; what that has no word for stays as it is."""
    if block.get("block_type") == "text":
        return {"type": "text", "text": str(block.get("text") or "")}
    return dict(block)


def _tagged(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block whose places and payloads say what they are, as the adapter writes them."""
    kinds = _PLACES | (_PAYLOADS if block.get("block_type") in _MEDIA else {})
    return {
        name: (kinds[name], value) if name in kinds and isinstance(value, str) else value
        for name, value in block.items()
    }
