"""The format `claude-flow/shared-memory`: one table, whose column `type` tells text from JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.importing.names import namespace_of
from hiermem_core.importing.reading import Facts, entry_record, expiry, json_column, read_each
from hiermem_core.importing.records import SQLITE
from hiermem_core.importing.times import in_seconds
from hiermem_core.importing.values import Value, decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "claude-flow/shared-memory"

COLUMNS = frozenset({"key", "namespace", "value", "type"})
"""By which its table is known."""

_SWARM = "swarm:"


def read_rows(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of the table."""
    yield from read_each(rows, lambda row: _record(row, reading))


def _record(row: Row, reading: Reading) -> Record:
    namespace, text = row.text("namespace") or "", row.given("value")
    facts = Facts(
        format=FORMAT,
        value=Value(text) if row.text("type") == "string" else decoded(text),
        namespace=namespace_of(namespace),
        key=row.needed("key"),
        tags=json_column(row.text("tags")) or (),
        metadata=json_column(row.text("metadata")),
        created_at=in_seconds(row.get("created_at")),
        updated_at=in_seconds(row.get("updated_at")),
        expires_at=expiry(row.get("expires_at"), in_seconds, reading),
        kept_as=namespace.removeprefix(_SWARM) if namespace.startswith(_SWARM) else None,
        precedence=SQLITE,
    )
    return entry_record(facts, reading)
