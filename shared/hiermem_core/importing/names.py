"""Names of foreign records: namespaces, ids that follow from the source, types, tags. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from hiermem_core.errors import InvalidNamespaceError
from hiermem_core.importing.values import compact_json
from hiermem_core.models.namespaces import parse_namespace

if TYPE_CHECKING:
    from hiermem_core.models.entries import MemoryType

IMPORT = UUID("59349856-e3c6-5c12-a3a8-514548abb095")
"""Namespace of the ids that are derived from a source."""

DEFAULT = "default"

_UNSAFE = re.compile(r"[%/\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_TYPES: dict[str, MemoryType] = {
    **dict.fromkeys(
        (
            *("episodic", "observation", "error", "result", "results", "communication"),
            *("communications", "message", "metric", "metrics", "log", "logs", "event"),
            *("task", "tasks"),
        ),
        "episodic",
    ),
    **dict.fromkeys(
        (
            *("procedural", "pattern", "patterns", "procedure", "workflow", "skill"),
            "reasoning_memory",
        ),
        "procedural",
    ),
    **dict.fromkeys(
        ("working", "state", "context", "cache", "coordination", "temporary"), "working"
    ),
}


def derived_id(*facts: Any) -> str:
    """Return the id of a record: the same for the same facts of it, in every run."""
    return str(uuid5(IMPORT, compact_json(list(facts))))


@lru_cache(1024)
def namespace_of(text: str) -> str:
    """Return a foreign namespace as one of ours: as it is where that is one."""
    if not text:
        return DEFAULT
    try:
        parse_namespace(text)
    except InvalidNamespaceError:
        return segment_of(text)
    return text


@lru_cache(1024)
def segment_of(text: str) -> str:
    """Return a text as one segment of a namespace; what a segment cannot hold is encoded."""
    return _UNSAFE.sub(_percent, text) or DEFAULT


def type_of(text: str | None) -> MemoryType:
    """Return the type of an entry by what its source calls it."""
    return _TYPES.get((text or "").lower(), "semantic")


def tags_of(raw: Any) -> tuple[str, ...]:
    """Return tags in their order, each once; numbers as text, nulls dropped."""
    listed = raw if isinstance(raw, list | tuple) else [raw]
    texts = (
        tag if isinstance(tag, str) else compact_json(tag) for tag in listed if tag is not None
    )
    return tuple(dict.fromkeys(filter(None, texts)))


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))
