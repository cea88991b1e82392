"""The format `claude-flow/mcp-json`: one object of entries under keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.importing.reading import Facts, entry_record, needed, read_each
from hiermem_core.importing.times import moment_of
from hiermem_core.importing.values import value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "claude-flow/mcp-json"

MOVED_MARK = ".migrated-to-sqlite"
"""A file beside it that says its entries went into a database."""


def fits(value: Any) -> bool:
    """Tell whether a JSON value is of this format."""
    return isinstance(value, dict) and isinstance(value.get("entries"), dict) and "version" in value


def read(value: Any, reading: Reading) -> Iterator[Record]:
    """Yield the records."""
    yield from read_each(value["entries"].items(), lambda one: _record(one, reading), named=True)


def _record(named: tuple[str, Any], reading: Reading) -> Record:
    key, one = named
    facts = Facts(
        format=FORMAT,
        value=value_of(needed(one, "value")),
        key=key,
        metadata=one.get("metadata"),
        created_at=moment_of(one.get("storedAt")),
    )
    return entry_record(facts, reading)
