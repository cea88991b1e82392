"""The format `claude-flow/advanced`: entries with checksums, their archive, backups and exports.

An entry marked as compressed is merely serialised, and the mark may be stale. Its checksum, of the
compact JSON of the value, tells which.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiermem_core.importing.claude_flow.managed_entries import checksum_of, entry_facts
from hiermem_core.importing.names import namespace_of
from hiermem_core.importing.reading import (
    entry_record,
    needed,
    numbered,
    optional_text,
    read_each,
)
from hiermem_core.importing.records import INDEX
from hiermem_core.importing.times import iso_moment
from hiermem_core.importing.values import compact_json, value_of
from hiermem_core.models.plain import load_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "claude-flow/advanced"


def fits(value: Any) -> bool:
    """Tell whether a JSON value is of this format."""
    if isinstance(value, list):
        return any(
            isinstance(one, dict) and {"checksum", "createdAt"} <= one.keys() for one in value
        )
    if not isinstance(value, dict) or not isinstance(value.get("entries"), list):
        return False
    about = value.get("metadata")
    is_export = isinstance(about, dict) and "exportedAt" in about
    return "statistics" in value or "archivedAt" in value or is_export


def read(value: Any, reading: Reading, *, precedence: int = INDEX) -> Iterator[Record]:
    """Yield the records of a data file, an archive, a backup or a JSON export."""
    listed = value if isinstance(value, list) else value["entries"]
    about = value.get("metadata") if isinstance(value, dict) else None
    exported = iso_moment(about.get("exportedAt")) if isinstance(about, dict) else None
    yield from read_each(
        numbered(listed),
        lambda one: advanced_record(one, reading, clock=exported, precedence=precedence),
    )


def advanced_record(
    one: Any, reading: Reading, *, clock: datetime | None = None, precedence: int = INDEX
) -> Record:
    """Return the record of an entry of any of its files.

    Args:
        clock: When it was exported.
    """
    raw, checksum = _value(one)
    facts = entry_facts(
        one,
        reading,
        format_name=FORMAT,
        value=value_of(raw),
        namespace=namespace_of(optional_text(one.get("namespace")) or ""),
        precedence=precedence,
    )
    facts = replace(facts, clock=clock, about={"checksum": checksum})
    return entry_record(facts, reading)


def _value(one: Any) -> tuple[Any, str | None]:
    """Return the value that an entry stands for, and `mismatch` where none has its checksum."""
    value = needed(one, "value")
    if "checksum" not in one:
        is_serialised = one.get("type") in {"object", "array"} and isinstance(value, str)
        return (_parsed(value) if is_serialised else value), None
    if not one.get("compressed"):
        return value, None
    checksum = one["checksum"]
    if checksum_of(value) == checksum:
        return (_parsed(value) if isinstance(value, str) else value), None
    if checksum_of(compact_json(value)) == checksum:
        return value, None
    parsed = _parsed(value) if isinstance(value, str) else value
    if checksum_of(parsed) == checksum:
        return parsed, None
    return value, "mismatch"


def _parsed(text: str) -> Any:
    try:
        return load_json(text)
    except ValueError:
        return text
