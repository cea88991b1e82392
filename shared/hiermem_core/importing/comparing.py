"""Whether an entry of the tenant says what a record says. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hiermem_core.importing.records import EntryRecord
    from hiermem_core.models.entries import MemoryEntry

Verdict = Literal["new", "unchanged", "other", "taken"]

_OWN = frozenset({"format", "id", "time_unknown", "key", "superseded_by", "value_type"})
"""Facts of `import` that no record states: they tell how it was read."""


def verdict_on(
    record: EntryRecord, by_id: MemoryEntry | None, by_key: MemoryEntry | None
) -> Verdict:
    """Return how a record stands to what the tenant has under its id, and under its key.

    `other` is an entry that says something else; `taken`: its id and its key are of two entries.
    """
    if by_id is not None and by_key is not None and by_id.id != by_key.id:
        return "unchanged" if is_said(record, by_id) else "taken"
    entry = by_id or by_key
    if entry is None:
        return "new"
    return "unchanged" if is_said(record, entry) else "other"


def is_said(record: EntryRecord, entry: MemoryEntry) -> bool:
    """Tell whether an entry has every value that the record states."""
    if record.content != entry.content or record.namespace != entry.namespace:
        return False
    if not _times_agree(record, entry):
        return False
    if record.id == entry.id and _format(record.metadata) == _format(entry.metadata):
        return _are_equal(record, entry)
    return _are_stated(record, entry)


def _are_equal(record: EntryRecord, entry: MemoryEntry) -> bool:
    return (
        record.key == entry.key
        and record.type == entry.type
        and record.tags == entry.tags
        and record.metadata == entry.metadata
        and record.user_id == entry.user_id
        and record.expires_at == entry.expires_at
    )


def _are_stated(record: EntryRecord, entry: MemoryEntry) -> bool:
    own = {name: value for name, value in record.metadata.items() if name != "import"}
    about, known = record.metadata["import"], entry.metadata.get("import")
    known = known if isinstance(known, dict) else {}
    stated = {name: value for name, value in about.items() if name not in _OWN | {"fields"}}
    return (
        record.key in (None, entry.key)
        and (not record.states_type or record.type == entry.type)
        and (not record.tags or record.tags == entry.tags)
        and record.user_id in (None, entry.user_id)
        and record.expires_at in (None, entry.expires_at)
        and _is_part(own, entry.metadata)
        and _is_part(stated, known)
        and _is_part(about.get("fields", {}), known.get("fields", {}))
    )


def _times_agree(record: EntryRecord, entry: MemoryEntry) -> bool:
    if record.created_at is not None and record.created_at != entry.created_at:
        return False
    updated_at = record.updated_at or record.created_at
    return updated_at in (None, entry.updated_at)


def _is_part(part: Mapping[str, Any], whole: Any) -> bool:
    return isinstance(whole, dict) and all(
        name in whole and whole[name] == value for name, value in part.items()
    )


def _format(metadata: Mapping[str, Any]) -> Any:
    about = metadata.get("import")
    return about.get("format") if isinstance(about, dict) else None
