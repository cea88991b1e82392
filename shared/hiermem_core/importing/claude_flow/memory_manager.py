"""The format `claude-flow/memory-manager`: what agents noted, in a table or in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.importing.names import segment_of
from hiermem_core.importing.reading import (
    Facts,
    entry_record,
    json_column,
    needed,
    needed_text,
    optional_text,
    read_each,
)
from hiermem_core.importing.records import INDEX, SQLITE
from hiermem_core.importing.times import iso_moment, moment_of
from hiermem_core.importing.values import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "claude-flow/memory-manager"

COLUMNS = frozenset({"agent_id", "session_id", "context"})
"""By which its table is known."""


def fits(value: Any) -> bool:
    """Tell whether a JSON value is the index of this format."""
    return isinstance(value, dict) and any(
        isinstance(one, dict) and {"agentId", "sessionId", "content"} <= one.keys()
        for one in value.values()
    )


def read(value: Any, reading: Reading) -> Iterator[Record]:
    """Yield the records of an index."""
    yield from read_each(value.items(), lambda one: noted(one, reading), named=True)


def noted(named: tuple[str, Any], reading: Reading, *, precedence: int = INDEX) -> Record:
    """Return the record of what an agent noted, of an index or in its words."""
    name, one = named
    source_id = optional_text(one.get("id")) or name
    agent = needed_text(one, "agentId")
    facts = Facts(
        format=FORMAT,
        value=value_of(needed(one, "content")),
        namespace=f"agents/{segment_of(agent)}",
        key=source_id,
        id=source_id,
        type=optional_text(one.get("type")),
        tags=one.get("tags") or (),
        metadata=one.get("metadata"),
        created_at=moment_of(one.get("timestamp")),
        fields={
            "agent_id": agent,
            "session_id": one.get("sessionId"),
            "context": one.get("context"),
            "version": one.get("version"),
            "parent_id": one.get("parentId"),
        },
        version=one.get("version"),
        precedence=precedence,
    )
    return entry_record(facts, reading)


def read_rows(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of the table."""
    yield from read_each(rows, lambda row: _of_row(row, reading))


def _of_row(row: Row, reading: Reading) -> Record:
    source_id, agent = row.needed("id"), row.needed("agent_id")
    facts = Facts(
        format=FORMAT,
        value=value_of(row.given("content")),
        namespace=f"agents/{segment_of(agent)}",
        key=source_id,
        id=source_id,
        type=row.text("type"),
        tags=json_column(row.text("tags")) or (),
        metadata=json_column(row.text("metadata")),
        created_at=moment_of(row.get("timestamp")),
        updated_at=iso_moment(row.get("updated_at")),
        fields={
            "agent_id": agent,
            "session_id": row.text("session_id"),
            "context": json_column(row.text("context")),
            "version": row.get("version"),
            "parent_id": row.text("parent_id"),
        },
        version=row.get("version"),
        precedence=SQLITE,
    )
    return entry_record(facts, reading)
