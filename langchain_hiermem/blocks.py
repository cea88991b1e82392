"""Standard v1 content blocks: what the neutral parts of a turn say in LangChain's own words.

A part that LangChain has no word for travels in a `non_standard` block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core import from_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hiermem_core import Part, ToolCall

Block = dict[str, Any]


def blocks_of_parts(parts: Sequence[Part], calls: Sequence[ToolCall]) -> list[Block]:
    """Return the v1 blocks of a turn's parts, in order, then of the calls that have no place."""
    blocks: list[Block] = []
    placed: set[int | None] = set()
    for part in map(_revived, parts):
        index = _index_of_call(part, calls)
        placed.add(index)
        if index is not None:
            blocks.append(call_block(calls[index]) | _more(part))
        elif part["type"] == "citation" and blocks and blocks[-1]["type"] == "text":
            blocks[-1].setdefault("annotations", []).append(_annotation(part))
        else:
            blocks.append(_block_of_part(part))
    return blocks + [call_block(call) for index, call in enumerate(calls) if index not in placed]


def call_block(call: ToolCall) -> Block:
    """Return the v1 block of a tool call; a raw text as arguments makes an invalid one."""
    facts = {"id": call.id, "name": call.name}
    if isinstance(call.args, str):
        return {"type": "invalid_tool_call", **facts, "args": call.args, "error": call.error}
    return {"type": "tool_call", **facts, "args": _revived(call.args)}


def _revived(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a plain mapping with its encoded values restored, where they can be."""
    try:
        value = from_plain(dict(plain))
    except Exception:  # noqa: BLE001 - what looks like a tag and is none stays as it is
        value = None
    return value if isinstance(value, dict) else dict(plain)


def _index_of_call(part: Part, calls: Sequence[ToolCall]) -> int | None:
    """Return which call a part stands for; the id decides, since a view may hold fewer calls."""
    if part["type"] != "tool_call":
        return None
    call_id, index, ids = part.get("id"), part.get("index"), [call.id for call in calls]
    if isinstance(index, int) and index in range(len(calls)) and call_id in {None, ids[index]}:
        return index
    return ids.index(call_id) if call_id is not None and call_id in ids else None


def _block_of_part(part: Part) -> Block:
    """Return the v1 block of a part, or the part itself in one if there is none for it."""
    try:
        block = _WRITERS[part["type"]](part)
    except (LookupError, TypeError):
        block = None
    return block or {"type": "non_standard", "value": dict(part)}


def _some(**facts: Any) -> dict[str, Any]:
    """Return the facts that are there."""
    return {name: fact for name, fact in facts.items() if fact not in (None, {}, [])}


def _more(part: Part, *names: str) -> dict[str, Any]:
    """Return the field for the extras of a part, and for its facts that v1 has no field for."""
    own = part.get("extras")
    facts = {name: part[name] for name in names if name in part}
    return _some(extras={**own, **facts} if isinstance(own, dict) else facts)


def _text_block(part: Part) -> Block:
    annotations = _some(annotations=list(part.get("annotations", ())))
    return {"type": "text", "text": part["text"], **annotations, **_more(part)}


def _refusal_block(part: Part) -> Block:
    return {"type": "refusal", "refusal": part["text"], **_more(part)}


def _reasoning_block(part: Part) -> Block:
    return {"type": "reasoning", "reasoning": part["text"], **_more(part)}


def _media_block(part: Part) -> Block | None:
    keys = {"base64": "base64", "uri": "url", "file_id": "file_id"}
    payload = {key: part[name] for name, key in keys.items() if name in part}
    if part["kind"] == "document" and "text" in part:
        names = {name: part[name] for name in ("text", "title", "context") if name in part}
        return {"type": "text-plain", "mime_type": "text/plain", **names, **payload, **_more(part)}
    kind = part["kind"] if part["kind"] in {"image", "audio", "video"} else "file"
    extras = _more(part, "detail", "format", "fps", "title", "context", "text")
    mime_type = _some(mime_type=_mime_type(part))
    return {"type": kind, **payload, **mime_type, **extras} if payload else None


def _mime_type(part: Part) -> str | None:
    family = "application" if part["kind"] == "document" else part["kind"]
    guess = f"{family}/{part['format']}" if "format" in part else None
    mime_type: str | None = part.get("mime_type", guess)
    return mime_type


def _server_block(part: Part) -> Block:
    value: Block = part["value"]
    is_standard = value["type"] == part["type"]
    return value if is_standard else {"type": "non_standard", "value": value}


def _opaque_block(part: Part) -> Block | None:
    value = part["value"]
    return {"type": "non_standard", "value": value} if isinstance(value, dict) else None


def _annotation(part: Part) -> dict[str, Any]:
    where = _some(source=part.get("source"), locations=part.get("locations"))
    facts = _some(title=part.get("title"), cited_text=part.get("text"), extras=where)
    return {"type": "citation", **facts}


_WRITERS: Mapping[str, Callable[[Part], Block | None]] = {
    "text": _text_block,
    "refusal": _refusal_block,
    "reasoning": _reasoning_block,
    "media": _media_block,
    "server_tool_call": _server_block,
    "server_tool_result": _server_block,
    "opaque": _opaque_block,
}
