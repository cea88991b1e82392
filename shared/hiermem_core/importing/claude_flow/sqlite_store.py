"""The formats of one table of values under keys: `claude-flow/sqlite-store` and its kin.

The later command line adds its own columns to a table of `sqlite-store`. A row whose `content` is
empty is still one of `sqlite-store`, times in seconds; any other follows the later rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.importing.names import namespace_of
from hiermem_core.importing.reading import Facts, entry_record, expiry, json_column, read_each
from hiermem_core.importing.records import SQLITE, skipped
from hiermem_core.importing.times import in_milliseconds, in_seconds, iso_moment, moment_of
from hiermem_core.importing.values import Value, structured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

STORE = "claude-flow/sqlite-store"
UNIFIED = "claude-flow/unified-memory"
INITIAL = "claude-flow/v3-initial"
LATER = "claude-flow/v3"

_DELETED = "deleted"


def read_store(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of `sqlite-store`."""
    yield from read_each(rows, lambda row: _store(row, reading))


def read_mixed(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of a table with columns of both generations."""

    def read(row: Row) -> Record:
        if row.get("content"):
            return _later(row, reading, name=STORE)
        return _store(row, reading)

    yield from read_each(rows, read)


def read_unified(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of `unified-memory`."""

    def read(row: Row) -> Record:
        facts = Facts(
            format=UNIFIED,
            value=structured(row.given("value")),
            namespace=namespace_of(row.text("namespace") or ""),
            key=row.needed("key"),
            created_at=in_milliseconds(row.get("timestamp")),
            fields={"source": row.text("source") or None},
            precedence=SQLITE,
        )
        return entry_record(facts, reading)

    yield from read_each(rows, read)


def read_initial(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of `v3-initial`."""

    def read(row: Row) -> Record:
        facts = Facts(
            format=INITIAL,
            value=structured(row.given("value")),
            namespace=namespace_of(row.text("namespace") or ""),
            key=row.needed("key"),
            type=row.text("type"),
            metadata=json_column(row.text("metadata")),
            created_at=_moment(row.get("created_at")),
            updated_at=_moment(row.get("updated_at")),
            expires_at=expiry(row.get("expires_at"), _moment, reading),
            precedence=SQLITE,
        )
        return entry_record(facts, reading)

    yield from read_each(rows, read)


def read_later(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the records of `v3`."""
    yield from read_each(rows, lambda row: _later(row, reading, name=LATER))


def _store(row: Row, reading: Reading) -> Record:
    facts = Facts(
        format=STORE,
        value=structured(row.given("value")),
        namespace=namespace_of(row.text("namespace") or ""),
        key=row.needed("key"),
        metadata=json_column(row.text("metadata")),
        created_at=in_seconds(row.get("created_at")),
        updated_at=in_seconds(row.get("updated_at")),
        expires_at=expiry(row.get("expires_at"), in_seconds, reading),
        precedence=SQLITE,
    )
    return entry_record(facts, reading)


def _later(row: Row, reading: Reading, *, name: str) -> Record:
    """Return the record of a row of the later command line.

    Args:
        name: The format's; in a mixed table times are told by their magnitude, ids by the key.
    """
    is_mixed = name == STORE
    moment = moment_of if is_mixed else in_milliseconds
    source_id, key, status = row.text("id"), row.needed("key"), row.text("status")
    facts = Facts(
        format=name,
        value=Value(row.given("content")),
        namespace=namespace_of(row.text("namespace") or ""),
        key=key,
        id=None if is_mixed else source_id,
        type=row.text("type"),
        tags=json_column(row.text("tags")) or (),
        metadata=json_column(row.text("metadata")),
        created_at=moment(row.get("created_at")),
        updated_at=moment(row.get("updated_at")),
        expires_at=expiry(row.get("expires_at"), moment, reading),
        fields={
            "owner_id": row.text("owner_id"),
            "embedding_model": row.text("embedding_model") if row.get("embedding") else None,
            "status": status if status == "archived" else None,
        },
        precedence=SQLITE,
    )
    if status == _DELETED:
        return skipped(facts.ref, "deleted")
    return entry_record(facts, reading)


def _moment(value: object) -> datetime | None:
    return iso_moment(value) if isinstance(value, str) else moment_of(value)
