"""From a LlamaIndex message to a turn, and from any turn to a LlamaIndex message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.llms import ChatMessage, MessageRole

from hiermem_core import (
    CANONICAL_ROLES,
    InvalidInputError,
    Origin,
    ToolCall,
    TurnDraft,
    call_arguments,
    dump_json,
    from_plain,
    load_json,
    to_plain,
)
from llamaindex_hiermem.blocks import MessageEncoder, block_classes, build_block
from llamaindex_hiermem.parts import block_of, block_of_call, parts_of

if TYPE_CHECKING:
    from hiermem_core import Part

FRAMEWORK = "llamaindex"

AS_THE_TURN = "{}"
"""The dump of a message that is one text and nothing else, as most are: the turn says it all."""

_BARE = {"block_type", "text"}
_ROLES = frozenset(role.value for role in MessageRole)
_CALL_IDS = ("tool_call_id", "tool_id", "call_id", "toolUseId", "id")
_CALL_NAMES = ("tool_name", "name")
_CALL_ARGUMENTS = ("tool_kwargs", "arguments", "args", "input")


def message_to_turn(message: ChatMessage, *, turn_id: str | None = None) -> TurnDraft:
    """Return the turn that says what a message says, with a dump that gives an equal message back.

    Never changes the message. Never reads a file or a URL.

    Raises:
        InvalidInputError: It is no message, or holds a value nested too deeply.
    """
    if not isinstance(message, ChatMessage):
        raise InvalidInputError("message", f"{type(message).__name__} is no ChatMessage")
    encoder = MessageEncoder()
    dump = _dump(encoder, message)
    source_role = MessageRole(message.role).value
    role = CANONICAL_ROLES.get(source_role, "user")
    kwargs = message.additional_kwargs
    return TurnDraft(
        role=role,
        content=message.content,
        parts=() if _is_plain(message) else parts_of(message.blocks),
        tool_calls=_block_calls(message) or _legacy_calls(message),
        tool_call_id=_text(kwargs.get("tool_call_id")) if role == "tool" else None,
        name=_text(kwargs.get("name")),
        id=turn_id,
        origin=Origin(FRAMEWORK, source_role, dump),
        replaced=tuple(encoder.replaced),
    )


def turn_to_message(turn: TurnDraft) -> ChatMessage:
    """Return a turn as a new message: the one it was made from, else what the turn says.

    Never raises: what this core cannot express stays in the store.
    """
    message = restored_message(turn)
    return projected_message(turn) if message is None else message


def restored_message(turn: TurnDraft) -> ChatMessage | None:
    """Return the message a turn was made from; `None` if it was not, or this core is too old."""
    if turn.origin is None or turn.origin.framework != FRAMEWORK or turn.origin.is_stale:
        return None
    try:
        return _loaded(turn.origin, turn.content)
    except Exception:  # noqa: BLE001 - the dump of another version may fail in any way
        return None


def projected_message(turn: TurnDraft) -> ChatMessage:
    """Return a message that says what the neutral form of a turn says."""
    return made_message(_role(turn), _blocks(turn), _kwargs(turn))


def made_message(role: str, blocks: Sequence[Any], kwargs: dict[str, Any]) -> ChatMessage:
    """Return a message of exactly these blocks."""
    message = ChatMessage(role=MessageRole(role))
    # Set, not passed: the class validates blocks again, which changes them, and it fetches what
    # `additional_kwargs["images"]` points to.
    message.blocks = list(blocks)
    message.additional_kwargs = kwargs
    return message


def _dump(encoder: MessageEncoder, message: ChatMessage) -> str:
    if _is_bare(message):
        return AS_THE_TURN
    try:
        return dump_json(encoder.fields(message))
    except RecursionError:
        raise InvalidInputError("message", "is nested too deeply; send less depth") from None


def _loaded(origin: Origin, content: str | None) -> ChatMessage:
    if origin.dump == AS_THE_TURN:
        return made_message(origin.role, [block_classes()["text"](text=content)], {})
    fields = from_plain(load_json(origin.dump))
    blocks = [build_block(block) for block in fields["blocks"]]
    return made_message(fields["role"], blocks, fields["additional_kwargs"])


def _is_bare(message: ChatMessage) -> bool:
    is_text = not message.additional_kwargs and _is_plain(message)
    return is_text and dict(message.blocks[0]).keys() == _BARE


def _is_plain(message: ChatMessage) -> bool:
    return [block.block_type for block in message.blocks] == ["text"]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _block_calls(message: ChatMessage) -> tuple[ToolCall, ...]:
    blocks: Sequence[Any] = message.blocks
    return tuple(
        ToolCall(block.tool_call_id, block.tool_name, _arguments(block.tool_kwargs))
        for block in blocks
        if block.block_type == "tool_call"
    )


def _legacy_calls(message: ChatMessage) -> tuple[ToolCall, ...]:
    calls = message.additional_kwargs.get("tool_calls")
    read = [_legacy_call(call) for call in calls] if isinstance(calls, list | tuple) else []
    return tuple(call for call in read if call is not None)


def _legacy_call(call: Any) -> ToolCall | None:
    """Return the call that a provider's SDK object or mapping stands for, if it names a tool."""
    facts = _fact(call, ("function", "custom")) or call
    name, call_id = _fact(facts, _CALL_NAMES), _fact(call, _CALL_IDS)
    if name is None:
        return None
    return ToolCall(_text(call_id), str(name), _arguments(_fact(facts, _CALL_ARGUMENTS)))


def _fact(source: Any, names: Sequence[str]) -> Any:
    is_mapping = isinstance(source, Mapping)
    facts = (source.get(name) if is_mapping else getattr(source, name, None) for name in names)
    return next((fact for fact in facts if fact is not None), None)


def _arguments(raw: Any) -> Mapping[str, Any] | str:
    arguments: Mapping[str, Any] | str = to_plain(call_arguments(raw))
    return arguments


def _role(turn: TurnDraft) -> str:
    """Return the source's own word for the role where LlamaIndex has it in the same sense."""
    source_role = turn.origin.role if turn.origin else ""
    if source_role in _ROLES and CANONICAL_ROLES.get(source_role) == turn.role:
        return source_role
    return turn.role


def _blocks(turn: TurnDraft) -> list[Any]:
    blocks = [
        block_of_call(item) if isinstance(item, ToolCall) else block_of(item)
        for item in _parts_and_calls(turn)
    ]
    return [block for block in blocks if block is not None]


def _parts_and_calls(turn: TurnDraft) -> list[Part | ToolCall]:
    """Return the parts with each call where it stood, else at the end.

    A view may hold fewer calls than its parts number, so ids decide and not indexes.
    """
    waiting = list(turn.tool_calls)
    placed: list[Part | ToolCall] = []
    for part in _hinted_parts(turn):
        call = next((call for call in waiting if call.id == part.get("id")), None)
        if part["type"] != "tool_call":
            placed.append(part)
        elif call is not None:
            waiting.remove(call)
            placed.append(call)
    return [*placed, *waiting]


def _hinted_parts(turn: TurnDraft) -> list[Part]:
    """Return the parts of a turn; a cache hint inside one becomes a part that follows it."""
    text = [] if turn.content is None else [{"type": "text", "text": turn.content}]
    return [item for part in turn.parts or text for item in (part, _cache_hint(part)) if item]


def _cache_hint(part: Part) -> Part | None:
    extras = part.get("extras")
    hint = extras.get("cache_control") if isinstance(extras, Mapping) else None
    return None if hint is None else {"type": "cache", "value": hint}


def _kwargs(turn: TurnDraft) -> dict[str, Any]:
    without_block = [call for call in turn.tool_calls if block_of_call(call) is None]
    kwargs = {
        "tool_call_id": turn.tool_call_id,
        "name": turn.name,
        "tool_calls": [_legacy_form(call) for call in without_block] or None,
    }
    return {name: value for name, value in kwargs.items() if value is not None}


def _legacy_form(call: ToolCall) -> dict[str, Any]:
    arguments = call.args if isinstance(call.args, str) else dump_json(to_plain(call.args))
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}
