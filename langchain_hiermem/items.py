"""Items of LangGraph as entries of HierMem, and back. Pure.

The item's value is the entry's metadata. What is indexed of the value is its content; several
indexed texts are its passages, each with a vector of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langgraph.store.base import Item, SearchItem, get_text_at_path

from hiermem_core import EntryDraft, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langgraph.store.base import PutOp

    from hiermem_core import MemoryEntry
    from langchain_hiermem.labels import Labels

EVERYTHING = "$"
"""The path of the whole value."""

_MINUTE = 60
_METADATA = "metadata"


def draft_of(put: PutOp, namespace: str, fields: Sequence[str]) -> EntryDraft:
    """Return the draft of an item to be put.

    Args:
        namespace: Of the entry.
        fields: The paths to index where the operation names none.

    Raises:
        InvalidInputError: The value is no object, or `index` names no paths.
    """
    if not isinstance(put.value, Mapping):
        raise InvalidInputError("value", f"must be an object, not {type(put.value).__name__}")
    value = dict(put.value)
    texts = indexed_texts(value, put.index, fields)
    return EntryDraft(
        content="\n".join(texts) or _as_json(value),
        namespace=namespace,
        key=str(put.key),
        metadata=value,
        passages=None if len(texts) == 1 else tuple(texts),
        ttl=None if put.ttl is None else put.ttl * _MINUTE,
    )


def indexed_texts(value: Mapping[str, Any], index: Any, fields: Sequence[str]) -> list[str]:
    """Return the texts of a value that are found by meaning, each once.

    Args:
        index: `False`: none; paths, or `None` for those of `fields`.

    Raises:
        InvalidInputError: `index` is neither.
    """
    if index is False:
        return []
    paths = fields if index is None else index
    if isinstance(paths, str) or not all(isinstance(path, str) for path in paths):
        raise InvalidInputError("index", "must be False, None or a list of paths")
    texts = [text for path in paths for text in _texts_at(value, path)]
    return list(dict.fromkeys(text for text in texts if text.strip()))


def item_of(entry: MemoryEntry, labels: Labels) -> Item:
    """Return the item of an entry that has a key."""
    return Item(
        value=dict(entry.metadata),
        key=str(entry.key),
        namespace=labels,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
    )


def search_item_of(entry: MemoryEntry, labels: Labels, score: float | None) -> SearchItem:
    """Return the found item of an entry that has a key."""
    return SearchItem(
        value=dict(entry.metadata),
        key=str(entry.key),
        namespace=labels,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        score=score,
    )


def of_value(error: InvalidInputError) -> InvalidInputError:
    """Return an error about an entry's metadata as one about an item's value."""
    is_ours = type(error) is InvalidInputError and error.name.startswith(_METADATA)
    if not is_ours:
        return error
    return InvalidInputError(f"value{error.name.removeprefix(_METADATA)}", error.reason)


def _texts_at(value: Mapping[str, Any], path: str) -> list[str]:
    """Return the texts at a path; none of a value that is no JSON, which is refused later."""
    try:
        return list(get_text_at_path(value, path))
    except (TypeError, ValueError, RecursionError):
        return []


def _as_json(value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return "{}"
