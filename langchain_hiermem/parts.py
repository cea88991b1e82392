"""Neutral parts: what content blocks say, those of LangChain and those of providers.

The standard blocks of LangChain (v0 and v1) are known, and the dialects of OpenAI, Anthropic,
Google and Bedrock; any other block is kept as it is. No block is ever changed or refused.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from hiermem_core import ToolCall, call_arguments, text_of, to_plain

if TYPE_CHECKING:
    from hiermem_core import Part

Block = Mapping[Any, Any]

_CALLS = frozenset(
    {
        *("tool_call", "invalid_tool_call", "tool_call_chunk"),
        *("tool_use", "function_call", "custom_tool_call"),
    }
)
_CALL_ARGUMENTS = ("args", "input", "arguments")
_CALL_KEYS = frozenset({"id", "call_id", "name", "error", *_CALL_ARGUMENTS})

_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use", "executable_code"})
_SERVER_CALL_ENDS = ("_call", "_tool_call_chunk")
_SERVER_RESULT_ENDS = ("_tool_result", "code_execution_result")

_THOUGHTS = ("reasoning", "thinking", "reasoning_content", "text", "summary", "content")

_KIND_OF_MEDIA = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_generation_call"), "image"),
    **dict.fromkeys(("audio", "audio_url", "input_audio"), "audio"),
    **dict.fromkeys(("video", "video_url"), "video"),
    **dict.fromkeys(("document", "file", "input_file", "text-plain"), "document"),
}
_MEDIA_OF_ANY_KIND = ("media", "inline_data", "inlineData", "file_data", "fileData")
_NESTED = frozenset({*_KIND_OF_MEDIA, *_MEDIA_OF_ANY_KIND, "source", "s3Location", "extras"})
_PAYLOADS = ("base64", "uri", "file_id")
_FACT_OF_KEY = {
    **dict.fromkeys(("base64", "data", "bytes", "file_data", "result"), "base64"),
    **dict.fromkeys(("url", "uri", "image_url", "audio_url", "video_url", "file_url"), "uri"),
    **dict.fromkeys(("file_uri", "fileUri"), "uri"),
    **dict.fromkeys(("file_id", "fileId"), "file_id"),
    **dict.fromkeys(("mime_type", "media_type", "mimeType"), "mime_type"),
    **{name: name for name in ("detail", "format", "fps", "title", "context", "text")},
}
_KEYS_OF_SOURCE: Mapping[str, Mapping[str, str]] = {
    "text": {"data": "text", "url": "text"},
    "id": {"id": "file_id"},
}
"""Sources that put one thing under the key of another."""


def call_of_block(block: object) -> ToolCall | None:
    """Return the tool call that a block shows, if it shows one."""
    if not isinstance(block, Mapping) or _type_of(block) not in _CALLS:
        return None
    call_id, error = block.get("call_id") or block.get("id"), block.get("error")
    return ToolCall(
        str(call_id) if call_id else None,
        str(block.get("name") or ""),
        plain_arguments(next((block[key] for key in _CALL_ARGUMENTS if key in block), None)),
        str(error) if error else None,
    )


def plain_arguments(raw: object) -> Mapping[str, Any] | str:
    """Return a call's arguments as a plain JSON object, or as the raw text where they are none."""
    arguments = call_arguments(raw)
    return arguments if isinstance(arguments, str) else _plain(arguments)


def call_part(block: Block, index: int, call: ToolCall) -> Part:
    """Return the part that marks where a call of the turn stood."""
    return {"type": "tool_call", "id": call.id, "index": index, **_extras(block, _CALL_KEYS)}


def parts_of_block(block: object) -> list[Part]:
    """Return the neutral parts of a block; one that wraps others gives several."""
    if isinstance(block, str):
        return [{"type": "text", "text": block, "bare": True}]
    if not isinstance(block, Mapping):
        return [_opaque_part(block)]
    read = _READERS.get(_type_of(block))
    return (read(block) if read else []) or [_server_part(block) or _opaque_part(block)]


def _type_of(block: Block) -> str:
    """Return the type of a block; dialects without one name it by a key."""
    return str(block.get("type") or next((key for key in block if key in _READERS), ""))


def _plain(value: Block) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(dict(value))
    return plain


def _opaque_part(block: object) -> Part:
    return {"type": "opaque", "value": to_plain(block)}


def _server_part(block: Block) -> Part | None:
    kind = _type_of(block)
    if kind in _SERVER_CALLS or (kind.endswith(_SERVER_CALL_ENDS) and kind not in _CALLS):
        return {"type": "server_tool_call", "value": _plain(block)}
    if kind.endswith(_SERVER_RESULT_ENDS):
        return {"type": "server_tool_result", "value": _plain(block)}
    return None


def _extras(block: Block, used: Collection[str]) -> dict[str, Any]:
    """Return the field for what a block says beyond what its part can."""
    own = block.get("extras")
    kept = {key: block[key] for key in block if key not in {"type", "extras"} and key not in used}
    extras = {**own, **kept} if isinstance(own, Mapping) else kept
    return {"extras": _plain(extras)} if extras else {}


def _text_parts(block: Block) -> list[Part]:
    text = block.get("text")
    if not isinstance(text, str):
        return []
    spans = block.get("annotations") or block.get("citations")
    annotations = {"annotations": to_plain(spans)} if spans else {}
    extras = _extras(block, ("text", "annotations", "citations"))
    return [{"type": "text", "text": text, **annotations, **extras}]


def _refusal_parts(block: Block) -> list[Part]:
    text = block.get("refusal")
    if not isinstance(text, str):
        return []
    return [{"type": "refusal", "text": text, **_extras(block, ("refusal",))}]


def _reasoning_parts(block: Block) -> list[Part]:
    nested = block.get("reasoning_content")
    facts = {**block, **nested} if isinstance(nested, Mapping) else block
    texts = [_joined(facts.get(key)) for key in _THOUGHTS]
    text = "\n".join(text for text in texts if text)
    return [{"type": "reasoning", "text": text, **_extras(facts, _THOUGHTS)}]


def _joined(value: object) -> str:
    """Return a text that is given as one, or as a list of items with a text."""
    if isinstance(value, str):
        return value
    items = value if isinstance(value, list) else []
    texts = [item.get("text") if isinstance(item, Mapping) else item for item in items]
    return "\n".join(text for text in texts if isinstance(text, str))


def _media_parts(block: Block) -> list[Part]:
    flat = _flat({key: value for key, value in block.items() if key != "type"})
    source = str(flat.pop("type", None) or flat.pop("source_type", None))
    if source == "content":
        return _citable_parts(flat)
    keys = _KEYS_OF_SOURCE.get(source, {})
    facts, others = _facts({keys.get(key, key): value for key, value in flat.items()})
    if not facts.keys() & {*_PAYLOADS, "text"}:
        return []
    kind = _KIND_OF_MEDIA.get(_type_of(block)) or _kind_of_mime_type(facts.get("mime_type", ""))
    return [{"type": "media", "kind": kind, **_plain(facts), **_extras(others, ())}]


def _flat(block: Block) -> dict[Any, Any]:
    """Return what a block and the mappings nested in it say; the outer ones win."""
    nested = {k: v for k, v in block.items() if k in _NESTED and isinstance(v, Mapping)}
    flat: dict[Any, Any] = {}
    for value in nested.values():
        flat.update(_flat(value))
    return flat | {key: value for key, value in block.items() if key not in nested}


def _facts(flat: Block) -> tuple[dict[str, Any], dict[Any, Any]]:
    """Return what a media part can say of a block, one payload only, and the rest."""
    facts: dict[str, Any] = {}
    others: dict[Any, Any] = {}
    for key, value in flat.items():
        name = _FACT_OF_KEY.get(key)
        if name and name not in facts and _is_fact(name, value):
            facts[name] = _as_text(value)
        elif value is not None:
            others[key] = value
    facts = _without_data_url(facts)
    surplus = [name for name in _PAYLOADS if name in facts][1:]
    return facts, others | {name: facts.pop(name) for name in surplus}


def _is_fact(name: str, value: object) -> bool:
    if name == "fps":
        return isinstance(value, int | float)
    return isinstance(value, str | bytes) and bool(value)


def _as_text(value: object) -> object:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _without_data_url(facts: dict[str, Any]) -> dict[str, Any]:
    for name in ("base64", "uri"):
        head, mark, data = str(facts.get(name, "")).partition(";base64,")
        if mark and head.startswith("data:"):
            mime_type = head.removeprefix("data:")
            others = {key: value for key, value in facts.items() if key != name}
            return {**({"mime_type": mime_type} if mime_type else {}), **others, "base64": data}
    return facts


def _kind_of_mime_type(mime_type: str) -> str:
    kind = mime_type.partition("/")[0]
    return kind if kind in {"image", "audio", "video"} else "document"


def _citable_parts(block: Block) -> list[Part]:
    """Return the text of a document that is given as blocks, then what else it holds."""
    nested = _nested_parts(block)
    facts = {key: block[key] for key in ("title", "source") if isinstance(block.get(key), str)}
    text = {"text": text_of(nested) or "", **_extras(block, (*facts, "content"))}
    others = [part for part in nested if part["type"] != "text"]
    return [{"type": "citable", **facts, **text}, *others]


def _tool_result_parts(block: Block) -> list[Part]:
    """Return the parts of a result inside another message, marked with the call it answers."""
    facts = _plain({key: block[key] for key in block if key not in {"type", "content"}})
    return [
        {**part, "extras": {**part.get("extras", {}), "tool_result": facts}}
        for part in _nested_parts(block)
    ]


def _nested_parts(block: Block) -> list[Part]:
    content = block.get("content")
    items = content if isinstance(content, list) else [content] if content else []
    return [part for item in items for part in parts_of_block(item)]


def _cache_parts(block: Block) -> list[Part]:
    return [{"type": "cache", "value": _plain(block)}]


def _wrapped_parts(block: Block) -> list[Part]:
    return parts_of_block(block["value"]) if isinstance(block.get("value"), Mapping) else []


_READERS: Mapping[str, Callable[[Block], list[Part]]] = {
    **dict.fromkeys(("text", "input_text", "output_text"), _text_parts),
    **dict.fromkeys(("reasoning", "thinking", "reasoning_content"), _reasoning_parts),
    **dict.fromkeys((*_KIND_OF_MEDIA, *_MEDIA_OF_ANY_KIND), _media_parts),
    "redacted_thinking": _reasoning_parts,
    "refusal": _refusal_parts,
    "search_result": _citable_parts,
    "tool_result": _tool_result_parts,
    "cachePoint": _cache_parts,
    "non_standard": _wrapped_parts,
}
