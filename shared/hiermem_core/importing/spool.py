"""The spool: records that are read and not stored yet, in a file without a name.

Which of them count is known only when all are read, and a source may hold more than memory does.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hiermem_core.importing.records import EntryRecord, PatternFacts, skipped
from hiermem_core.importing.resolving import Rank, losers_of_id, losers_of_key
from hiermem_core.models.moments import from_milliseconds, to_milliseconds
from hiermem_core.models.plain import dump_json, load_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from hiermem_core.importing.report import ImportItem

_SCHEMA = """
CREATE TABLE records (
    n INTEGER PRIMARY KEY, id TEXT, place TEXT, ref TEXT, version REAL, updated INTEGER,
    created INTEGER, precedence INTEGER, digest BLOB, body TEXT, vector BLOB,
    is_out INTEGER DEFAULT 0, successor INTEGER
)
"""
_INSERT = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"
_RANK = "n, ref, version, updated, created, precedence, digest"
_UNKNOWN = -1
_DIGEST_BYTES = 16


class Spool:
    """Keep entry records on disk until it is known which of them count."""

    def __init__(self) -> None:
        # SQLite's temporary file goes with its connection, even when the process is killed.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", _SCHEMA):
            self._connection.execute(statement)
        self.count = 0

    def __enter__(self) -> Self:
        """Return itself; the block's end removes it."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Remove the file."""
        self._connection.close()

    def add(self, records: Iterable[tuple[int, EntryRecord]]) -> None:
        """Keep records, each with its place among all that were read."""
        rows = [_row(n, record) for n, record in records]
        self.count += len(rows)
        self._connection.execute("BEGIN")
        self._connection.executemany(_INSERT, rows)
        self._connection.execute("COMMIT")

    def resolve(self) -> Iterator[tuple[int, ImportItem]]:
        """Decide which records count; yield those that do not, with their places."""
        self._connection.execute("CREATE INDEX by_id ON records (id)")
        for ranks in self._groups("id", "1"):
            for loser in losers_of_id(ranks):
                yield self._put_out(loser.n, loser.reason, loser.of)
        for n, kind, ref in self._expired():
            self._connection.execute("UPDATE records SET is_out = 1 WHERE n = ?", (n,))
            yield n, skipped(ref, "expired", kind=kind)
        self._connection.execute("CREATE INDEX by_place ON records (place)")
        for ranks in self._groups("place", "is_out = 0 AND place IS NOT NULL"):
            losers, keyless = losers_of_key(ranks)
            for loser in losers:
                yield self._put_out(loser.n, loser.reason, loser.of)
            pairs = [(one.successor, one.n) for one in keyless]
            self._connection.executemany("UPDATE records SET successor = ? WHERE n = ?", pairs)

    def batches(self, size: int, *, characters: int) -> Iterator[list[tuple[int, EntryRecord]]]:
        """Yield the records that count, in their order."""
        query = (
            "SELECT r.n, r.body, r.vector, s.id FROM records r "
            "LEFT JOIN records s ON s.n = r.successor WHERE r.is_out = 0 ORDER BY r.n"
        )
        batch: list[tuple[int, EntryRecord]] = []
        room = characters
        with closing(self._connection.execute(query)) as cursor:
            for n, body, vector, successor in cursor:
                record = _record(body, vector, successor)
                batch.append((n, record))
                room -= record.size
                if len(batch) == size or room <= 0:
                    yield batch
                    batch, room = [], characters
        if batch:
            yield batch

    def _groups(self, column: str, condition: str) -> Iterator[list[Rank]]:
        query = f"SELECT {column} FROM records WHERE {condition} GROUP BY 1 HAVING count(*) > 1"  # noqa: S608 - ours
        each = f"SELECT {_RANK} FROM records WHERE {column} = ? AND {condition} ORDER BY n"  # noqa: S608 - ours
        for (name,) in self._connection.execute(query).fetchall():
            yield [Rank(*row) for row in self._connection.execute(each, (name,)).fetchall()]

    def _expired(self) -> list[tuple[int, Any, str]]:
        query = "SELECT n, body, ref FROM records WHERE is_out = 2"
        return [(n, load_json(body)[-1], ref) for n, body, ref in self._connection.execute(query)]

    def _put_out(self, n: int, reason: Any, of: str) -> tuple[int, ImportItem]:
        query = "SELECT ref, body FROM records WHERE n = ?"
        ref, body = self._connection.execute(query, (n,)).fetchone()
        self._connection.execute("UPDATE records SET is_out = 1 WHERE n = ?", (n,))
        return n, skipped(ref, reason, of=of, kind=load_json(body)[-1])


def _row(n: int, record: EntryRecord) -> tuple[Any, ...]:
    created, updated = _milliseconds(record.created_at), _milliseconds(record.updated_at)
    body = [
        *(record.ref, record.id, record.namespace, record.key, record.content, record.type),
        *(record.tags, record.metadata, created, _milliseconds(record.clock_at), updated),
        *(_milliseconds(record.expires_at), record.user_id, record.states_type),
        *(_pattern_body(record.pattern), record.kind),
    ]
    vector = None if record.vector is None else np.asarray(record.vector, "<f4").tobytes()
    return (
        n,
        record.id,
        None if record.key is None else f"{record.namespace}\x00{record.key}",
        record.ref,
        record.version,
        next((one for one in (updated, created) if one is not None), _UNKNOWN),
        _UNKNOWN if created is None else created,
        record.precedence,
        _digest(record),
        dump_json(body),
        vector,
        2 if record.is_expired else 0,
    )


def _record(body: str, vector: bytes | None, successor: str | None) -> EntryRecord:
    ref, name, namespace, key, content, kept_as, tags, metadata, *rest = load_json(body)
    created, clock, updated, expires, user_id, states_type, pattern, _ = rest
    record = EntryRecord(
        ref=ref,
        id=name,
        namespace=namespace,
        key=key,
        content=content,
        type=kept_as,
        tags=tuple(tags),
        metadata=metadata,
        created_at=_moment(created),
        clock_at=from_milliseconds(clock),
        updated_at=_moment(updated),
        expires_at=_moment(expires),
        user_id=user_id,
        states_type=states_type,
        vector=None if vector is None else tuple(np.frombuffer(vector, "<f4").tolist()),
        pattern=None if pattern is None else PatternFacts(*pattern),
    )
    if successor is None:
        return record
    return _without_key(record, successor) if pattern is None else record.renamed()


def _digest(record: EntryRecord) -> bytes:
    """Return what two records share that say the same."""
    said = record.content
    if record.pattern is not None:
        said = dump_json([said, _pattern_body(record.pattern)])
    return hashlib.blake2b(said.encode(), digest_size=_DIGEST_BYTES).digest()


def _pattern_body(pattern: PatternFacts | None) -> list[Any] | None:
    return None if pattern is None else [pattern.data, pattern.confidence, pattern.uses]


def _without_key(record: EntryRecord, successor: str) -> EntryRecord:
    about = dict(record.metadata["import"])
    fields = about.pop("fields", None)
    about |= {"key": record.key, "superseded_by": successor}
    about |= {} if fields is None else {"fields": fields}
    return replace(record, key=None, metadata={**record.metadata, "import": about})


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else to_milliseconds(moment)


def _moment(value: int | None) -> datetime | None:
    return None if value is None else from_milliseconds(value)
