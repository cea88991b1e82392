"""Neutral parts: what LlamaIndex blocks say, and the blocks that say what other parts mean.

Blocks are told apart by `block_type`, parts by `type`; one table for each direction.
"""

from __future__ import annotations

from base64 import b64encode
from itertools import count
from typing import TYPE_CHECKING, Any

from hiermem_core import ToolCall, from_plain, to_plain
from llamaindex_hiermem.blocks import Fields, MessageEncoder, base64_text, build_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from llama_index.core.bridge.pydantic import BaseModel

    from hiermem_core import Part

_AUDIO_FORMATS = {"mpeg": "mp3", "mp4": "m4a", "wave": "wav", "x-wav": "wav", "x-flac": "flac"}


def parts_of(blocks: Iterable[Any]) -> tuple[Part, ...]:
    """Return the neutral parts of blocks, in their order; tool calls are numbered."""
    indexes = count()
    parts = [part for block in blocks for part in _parts(block)]
    return tuple(
        {**part, "index": next(indexes)} if part["type"] == "tool_call" else part for part in parts
    )


def block_of(part: Part) -> BaseModel | None:
    """Return the block that says a part, or `None` if the installed core has none for it."""
    fields_of = _FIELDS_OF.get(part["type"])
    return None if fields_of is None else _built(fields_of, part)


def block_of_call(call: ToolCall) -> BaseModel | None:
    """Return the block of a tool call, or `None` if the installed core has none."""
    return _built(_call_fields, call)


def _built(fields_of: Callable[[Any], Fields | None], source: Any) -> BaseModel | None:
    try:
        fields = fields_of(source)
        return None if fields is None else build_block(fields)
    except Exception:  # noqa: BLE001 - what others wrote may be anything; it stays in the store
        return None


def _parts(block: Any) -> Sequence[Part]:
    return _PARTS_OF.get(block.block_type, _opaque_parts)(block)


def _text_parts(block: Any) -> Sequence[Part]:
    return [{"type": "text", "text": block.text}]


def _media_parts(block: Any) -> Sequence[Part]:
    kind = block.block_type
    facts = {name: getattr(block, name, None) for name in ("detail", "format", "fps", "title")}
    facts["mime_type"] = getattr(block, f"{kind}_mimetype", None)
    return [{"type": "media", "kind": kind, **_place(block), **_known(facts)}]


def _place(block: Any) -> Fields:
    payload = base64_text(getattr(block, _payload_field(block.block_type)))
    if payload:
        return {"base64": payload}
    if block.path is not None:
        return {"path": str(block.path)}
    return {} if block.url is None else _url_place(str(block.url))


def _url_place(url: str) -> Fields:
    head, separator, data = url.partition(";base64,")
    if separator and head.startswith("data:"):
        return {"base64": data, "mime_type": head.removeprefix("data:")}
    return {"uri": url}


def _payload_field(kind: str) -> str:
    return "data" if kind == "document" else kind


def _known(facts: Mapping[str, Any]) -> Fields:
    return {name: fact for name, fact in facts.items() if fact is not None}


def _reasoning_parts(block: Any) -> Sequence[Part]:
    extras = to_plain(block.additional_information) or None
    facts = _known({"tokens": block.num_tokens, "extras": extras})
    return [{"type": "reasoning", "text": block.content or "", **facts}]


def _call_parts(block: Any) -> Sequence[Part]:
    return [{"type": "tool_call", "id": block.tool_call_id}]


def _citable_parts(block: Any) -> Sequence[Part]:
    return _cited_parts("citable", block, block.content)


def _citation_parts(block: Any) -> Sequence[Part]:
    part, *media = _cited_parts("citation", block, [block.cited_content])
    return [{**part, "locations": to_plain(block.additional_location_info)}, *media]


def _cited_parts(part_type: str, block: Any, nested: Iterable[Any]) -> Sequence[Part]:
    """Return a source as its text, followed by the media within it."""
    texts = [item.text for item in nested if item.block_type == "text"]
    media = [part for item in nested if item.block_type != "text" for part in _parts(item)]
    facts = {"title": block.title, "source": block.source, "text": "\n".join(texts)}
    return [{"type": part_type, **facts}, *media]


def _cache_parts(block: Any) -> Sequence[Part]:
    return [{"type": "cache", "value": to_plain(dict(block.cache_control))}]


def _opaque_parts(block: Any) -> Sequence[Part]:
    return [{"type": "opaque", "value": MessageEncoder().fields(block)}]


_PARTS_OF: Mapping[str, Callable[[Any], Sequence[Part]]] = {
    "text": _text_parts,
    "image": _media_parts,
    "audio": _media_parts,
    "video": _media_parts,
    "document": _media_parts,
    "thinking": _reasoning_parts,
    "tool_call": _call_parts,
    "citable": _citable_parts,
    "citation": _citation_parts,
    "cache": _cache_parts,
}


def _text_fields(part: Part) -> Fields:
    return {"block_type": "text", "text": part["text"]}


def _media_fields(part: Part) -> Fields | None:
    place = _place_fields(part)
    if place is None:
        return None
    kind = part["kind"]
    facts = {name: part.get(name) for name in ("detail", "fps", "title")}
    facts |= {"format": _format(part), f"{kind}_mimetype": part.get("mime_type")}
    return {"block_type": kind, **_known(facts), **place}


def _place_fields(part: Part) -> Fields | None:
    """Return where a medium is; `None` for a provider's file id, which means nothing here."""
    kind = part["kind"]
    if "base64" in part:
        return {_payload_field(kind): part["base64"].encode("ascii")}
    if "path" in part:
        return {"path": ("path", part["path"])}
    if "uri" in part:
        return {"url": part["uri"] if kind == "document" else ("url", part["uri"])}
    return _plain_document(part["text"]) if kind == "document" and "text" in part else None


def _plain_document(text: str) -> Fields:
    return {"data": b64encode(text.encode()), "document_mimetype": "text/plain"}


def _format(part: Part) -> str | None:
    subtype = part.get("mime_type", "").partition("/")[2]
    return part.get("format") or _AUDIO_FORMATS.get(subtype, subtype) or None


def _thinking_fields(part: Part) -> Fields:
    facts = {"content": part.get("text"), "num_tokens": part.get("tokens")}
    extras = from_plain(part.get("extras") or {})
    return {"block_type": "thinking", **facts, "additional_information": extras}


def _call_fields(call: ToolCall) -> Fields:
    args = call.args if isinstance(call.args, str) else from_plain(dict(call.args))
    facts = {"tool_call_id": call.id, "tool_name": call.name, "tool_kwargs": args}
    return {"block_type": "tool_call", **facts}


def _citable_fields(part: Part) -> Fields:
    return {"block_type": "citable", **_source_fields(part), "content": [_text_fields(part)]}


def _citation_fields(part: Part) -> Fields:
    places = part.get("locations") or {}
    locations = {name: place for name, place in places.items() if type(place) is int}
    facts = {"cited_content": _text_fields(part), "additional_location_info": locations}
    return {"block_type": "citation", **_source_fields(part), **facts}


def _source_fields(part: Part) -> Fields:
    return {"title": part.get("title") or "", "source": part.get("source") or ""}


def _cache_fields(part: Part) -> Fields:
    hint = part["value"]
    return {"block_type": "cache", "cache_control": from_plain(hint.get("cachePoint", hint))}


_FIELDS_OF: Mapping[str, Callable[[Part], Fields | None]] = {
    "text": _text_fields,
    "refusal": _text_fields,
    "media": _media_fields,
    "reasoning": _thinking_fields,
    "citable": _citable_fields,
    "citation": _citation_fields,
    "cache": _cache_fields,
}
