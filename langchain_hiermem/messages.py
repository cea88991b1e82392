"""LangChain messages and the turns of a thread.

A turn keeps the neutral form, which every framework reads, and beside it LangChain's own dump
(`message_to_dict`), from which an equal message is restored. The dump is read by
`messages_from_dict`, which builds a closed set of classes; nothing else in it is ever revived.
Of a message that is its text and id and no more, as most are, it says the id alone.

What cannot come back equal, measured on langchain-core 1.8.3:

- NaN is not equal to itself. It comes back as NaN.
- Enum members come back as their values, pydantic models and dataclasses as dictionaries, and a
  subclass as the standard class of its `type`, with the extra fields.
- `AIMessage` fills empty `tool_calls` from `additional_kwargs["tool_calls"]` whenever it is built,
  so calls that were taken off a built message come back.
- LangChain drops the extra fields of a chunk that becomes a full message, and the `name` of added
  chunks, except of function chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import add
from typing import TYPE_CHECKING, Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
    message_to_dict,
    messages_from_dict,
)

from hiermem_core import (
    CANONICAL_ROLES,
    InvalidInputError,
    Origin,
    PlainEncoder,
    ToolCall,
    TurnDraft,
    dump_json,
    load_plain,
    text_of,
)
from langchain_hiermem.blocks import blocks_of_parts, call_block
from langchain_hiermem.parts import call_of_block, call_part, parts_of_block, plain_arguments

if TYPE_CHECKING:
    from hiermem_core import Part, Role

FRAMEWORK = "langchain"
_OPENAI_ROLE = "__openai_role__"
_BARE: Mapping[str, Callable[..., BaseMessage]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "system": SystemMessage,
}


def message_to_turn(message: BaseMessage, *, turn_id: str | None = None) -> TurnDraft:
    """Return the turn that a message is; a chunk counts as its full kind.

    Never changes the message. Values that no dump can carry are named in `replaced`.

    Args:
        message: Any kind but `RemoveMessage`.
        turn_id: The id of the turn; the message's own id stays in the dump.

    Raises:
        InvalidInputError: It removes messages, or holds a value that contains itself.
    """
    if isinstance(message, RemoveMessage):
        raise InvalidInputError("message", "is an operation and no turn; delete the turn instead")
    full = _full(message)
    role = _role(full)
    dump, replaced = _dump(full)
    blocks = _content_blocks(full)
    calls, parts = _calls_and_parts(full, blocks) if role == "assistant" else ([], _parts(blocks))
    return TurnDraft(
        role=role,
        content=text_of(parts) if parts or isinstance(full.content, list) else full.content,
        parts=tuple(parts),
        tool_calls=tuple(calls),
        tool_call_id=full.tool_call_id if isinstance(full, ToolMessage) else None,
        name=full.name,
        id=turn_id,
        origin=Origin(FRAMEWORK, _source_role(full), dump),
        replaced=replaced,
    )


def turn_to_message(turn: TurnDraft) -> BaseMessage:
    """Return the message that a turn is.

    A turn from LangChain gives an equal message. Any other, and one whose dump cannot be read,
    gives its neutral form with standard v1 content blocks. Never raises. Never changes the turn.
    """
    return restored_message(turn) or projected_message(turn)


def restored_message(turn: TurnDraft) -> BaseMessage | None:
    """Return the message in a turn's dump, or `None` if there is none that can be read."""
    if turn.origin is None or turn.origin.framework != FRAMEWORK or turn.origin.is_stale:
        return None
    try:
        message = _loaded(turn.origin, turn.content)
    except Exception:  # noqa: BLE001 - a damaged dump may fail anywhere; the neutral form serves
        return None
    return None if isinstance(message, RemoveMessage) else _full(message)


def projected_message(turn: TurnDraft) -> BaseMessage:
    """Return the message that the neutral form of a turn makes."""
    facts: dict[str, Any] = {"content": _content(turn), "id": turn.id, "name": turn.name}
    match turn.role:
        case "user":
            return HumanMessage(**facts)
        case "assistant":
            return AIMessage(**facts, **_call_fields(turn), response_metadata=_metadata(turn))
        case "system" | "developer":
            kwargs = {_OPENAI_ROLE: turn.role} if turn.role == "developer" else {}
            return SystemMessage(**facts, additional_kwargs=kwargs)
        case "tool":
            return _result(turn, facts)
        case _:
            return ChatMessage(**facts, role=turn.role)


def merge_chunks(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with each run of chunks of one stream, by id, as one full message.

    Chunks without an id become full messages one by one. Other messages pass as they are.

    Raises:
        InvalidInputError: One is no message, or LangChain cannot add the chunks of a stream.
    """
    for message in messages:
        if not isinstance(message, BaseMessage):
            raise InvalidInputError("message", f"{type(message).__name__} is no LangChain message")
    full: list[BaseMessage] = []
    for stream, run in groupby(messages, key=_stream):
        chunks = list(run)
        full.extend([_sum(chunks)] if stream else chunks)
    return [_full(message) for message in full]


def _stream(message: BaseMessage) -> tuple[str, str] | None:
    if isinstance(message, BaseMessageChunk) and message.id is not None:
        return message.type, message.id
    return None


def _sum(chunks: Sequence[BaseMessage]) -> BaseMessage:
    try:
        return reduce(add, chunks)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("messages", f"chunks of one id do not add up: {error}") from error


def _full(message: BaseMessage) -> BaseMessage:
    while isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    return message


def _source_role(message: BaseMessage) -> str:
    return message.role if isinstance(message, ChatMessage) else message.type


def _role(message: BaseMessage) -> Role:
    provider_role = message.additional_kwargs.get(_OPENAI_ROLE)
    if isinstance(message, SystemMessage) and provider_role == "developer":
        return "developer"
    return CANONICAL_ROLES.get(_source_role(message), "user")


def _dump(message: BaseMessage) -> tuple[str, tuple[str, ...]]:
    """Return the dump as JSON text, and the paths of what it could not carry."""
    if _is_bare(message):
        return dump_json({"id": message.id}), ()
    encoder = PlainEncoder()
    try:
        data = encoder.encode(message_to_dict(message)["data"])
        return dump_json({"type": message.type, "data": data}), tuple(encoder.replaced)
    except (RecursionError, ValueError) as error:
        reason = "holds a value that contains itself or is nested too deep; send plain values"
        raise InvalidInputError("message", reason) from error


def _loaded(origin: Origin, content: str | None) -> BaseMessage:
    dump = load_plain(origin.dump)
    if dump.keys() == {"id"}:
        return _BARE[origin.role](content=content or "", id=dump["id"])
    (message,) = messages_from_dict([dump])
    return message


def _is_bare(message: BaseMessage) -> bool:
    """Tell whether a text and an id are all that is said by a message."""
    kind = _BARE.get(message.type)
    if kind is not type(message) or not isinstance(message.content, str):
        return False
    return message == kind(content=message.content, id=message.id)


def _content_blocks(message: BaseMessage) -> list[Any]:
    """Return the blocks of a message, those included that OpenAI's chat API puts beside a text."""
    blocks = list(message.content) if isinstance(message.content, list) else []
    refusal, audio = (message.additional_kwargs.get(name) for name in ("refusal", "audio"))
    beside: list[Any] = []
    if isinstance(refusal, str) and refusal:
        beside.append({"type": "refusal", "refusal": refusal})
    if isinstance(audio, Mapping) and audio.get("data"):
        beside.append({"type": "input_audio", "input_audio": dict(audio)})
    if beside and isinstance(message.content, str) and message.content:
        beside.insert(0, {"type": "text", "text": message.content})
    return blocks + beside


def _parts(blocks: Sequence[object]) -> list[Part]:
    return [part for block in blocks for part in parts_of_block(block)]


def _calls_and_parts(
    message: BaseMessage, blocks: Sequence[Any]
) -> tuple[list[ToolCall], list[Part]]:
    """Return each call once, in the order of the calls, and the parts with the calls' places."""
    calls = _declared_calls(message, blocks)
    parts: list[Part] = []
    taken: set[int] = set()
    for block in blocks:
        shown = call_of_block(block)
        if shown is None:
            parts.extend(parts_of_block(block))
            continue
        index = _index_of(shown, calls, taken)
        if index == len(calls):
            calls.append(shown)
        taken.add(index)
        parts.append(call_part(block, index, calls[index]))
    return calls or _legacy_calls(message), parts


def _index_of(shown: ToolCall, calls: Sequence[ToolCall], taken: Collection[int]) -> int:
    """Return which call a block shows, or one past the last if it shows a new one."""
    for index, call in enumerate(calls):
        if shown.id and call.id:
            same = shown.id == call.id
        else:
            same = shown.name == call.name and index not in taken
        if same:
            return index
    return len(calls)


def _declared_calls(message: BaseMessage, blocks: Sequence[Any]) -> list[ToolCall]:
    """Return the calls LangChain lists, the invalid ones among the valid where that is known."""
    if not isinstance(message, AIMessage):
        return []
    valid = [ToolCall(c["id"], c["name"], plain_arguments(c["args"])) for c in message.tool_calls]
    invalid = [
        ToolCall(call["id"], call["name"] or "", call["args"] or "", call["error"])
        for call in message.invalid_tool_calls
    ]
    shown = [*filter(None, map(call_of_block, blocks)), *_raw_calls(message)]
    places = {call.id: place for place, call in reversed(list(enumerate(shown)))}
    return sorted([*valid, *invalid], key=lambda call: places.get(call.id, len(shown)))


def _raw_calls(message: BaseMessage) -> list[ToolCall]:
    raw = message.additional_kwargs.get("tool_calls")
    calls = raw if isinstance(raw, list) else []
    return [_raw_call(call, call.get("id")) for call in calls if isinstance(call, Mapping)]


def _raw_call(raw: Mapping[Any, Any], call_id: object = None) -> ToolCall:
    function = raw.get("function")
    facts = function if isinstance(function, Mapping) else raw
    arguments = plain_arguments(facts.get("arguments"))
    return ToolCall(str(call_id) if call_id else None, str(facts.get("name") or ""), arguments)


def _legacy_calls(message: BaseMessage) -> list[ToolCall]:
    function = message.additional_kwargs.get("function_call")
    single = [_raw_call(function)] if function and isinstance(function, Mapping) else []
    return _raw_calls(message) or single


def _content(turn: TurnDraft) -> str | list[dict[str, Any]]:
    if not turn.parts:
        return turn.content or ""
    return blocks_of_parts(turn.parts, turn.tool_calls if turn.role == "assistant" else ())


def _result(turn: TurnDraft, facts: Mapping[str, Any]) -> BaseMessage:
    if turn.origin and turn.origin.role == "function":
        return FunctionMessage(**{**facts, "name": turn.name or ""})
    return ToolMessage(**facts, tool_call_id=turn.tool_call_id or "")


def _call_fields(turn: TurnDraft) -> dict[str, Any]:
    blocks = [call_block(call) for call in turn.tool_calls]
    return {
        "tool_calls": [block for block in blocks if block["type"] == "tool_call"],
        "invalid_tool_calls": [block for block in blocks if block["type"] != "tool_call"],
    }


def _metadata(turn: TurnDraft) -> dict[str, str]:
    """Return what providers and readers need to know of a projected AI message."""
    version = {"output_version": "v1"} if turn.parts else {}
    role = turn.origin.role if turn.origin else "assistant"
    return version if role in {"assistant", "ai"} else {**version, "source_role": role}
