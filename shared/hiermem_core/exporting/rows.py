"""What of a tenant is exported, in the order of an export, page by page on one snapshot."""

from __future__ import annotations

from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from sqlalchemy import select

from hiermem_core.backends.restrictions import Restrictions
from hiermem_core.backends.sql_reader import SqlReader
from hiermem_core.backends.sql_restrictions import living
from hiermem_core.backends.sql_rows import COLUMNS, entry_of
from hiermem_core.exporting.forms import Vectors
from hiermem_core.storage.database import slices
from hiermem_core.storage.tables import memory_entries, searchable, vectors
from hiermem_core.threads import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from hiermem_core.backends.in_memory_rows import InMemoryReader
    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.turns import Status, Turn
    from hiermem_core.threads.reading import Head

PAGE = 500

_E, _S, _V = memory_entries.c, searchable.c, vectors.c
_ALL = 2**62

Exported = tuple["MemoryEntry", bool, Vectors | None]
"""An entry, whether the same said again is counted there, and its vectors."""


def entries_of(
    reader: SqlReader | InMemoryReader, now: datetime, embedder: str | None
) -> Iterator[Exported]:
    """Yield the living entries of a tenant by id.

    Args:
        embedder: The name of the vectors to add; `None`: none.
    """
    if isinstance(reader, SqlReader):
        return _stored_entries(reader.connection, reader.tenant, now, embedder)
    return _entries_in_memory(reader, with_vectors=embedder is not None)


def heads_of(connection: Connection, tenant: str) -> Iterator[Head]:
    """Yield the threads of a tenant in the order of their first turn."""
    offset = 0
    while page := reading.heads_of(connection, tenant, limit=PAGE, offset=offset):
        yield from page
        offset += len(page)


def turns_of(
    connection: Connection, thread: int, embedder: str | None
) -> Iterator[tuple[Turn, Vectors | None]]:
    """Yield every turn of a thread by seq, archived ones too."""
    kinds = (_turns_of(connection, thread, status) for status in ("active", "archived"))
    turns = merge(*kinds, key=attrgetter("seq"))
    while page := list(islice(turns, PAGE)):
        found = {} if embedder is None else _turn_vectors(connection, thread, page, embedder)
        for turn in page:
            yield turn, None if turn.status == "archived" else found.get(turn.seq)


def turn_numbers(connection: Connection, thread: int, seqs: Iterable[int]) -> dict[int, int]:
    """Return the rows under which turns of a thread are searched, by seq."""
    numbers: dict[int, int] = {}
    for some in slices(list(seqs)):
        query = select(_S.seq, _S.number).where(_S.thread == thread, _S.seq.in_(some))
        numbers |= dict(connection.execute(query).all())
    return numbers


def _stored_entries(
    connection: Connection, tenant: str, now: datetime, embedder: str | None
) -> Iterator[Exported]:
    query = select(*COLUMNS, _E.digest.is_not(None)).where(_E.tenant == tenant, living(now))
    after = ""
    while rows := connection.execute(
        query.where(_E.id > after).order_by(_E.id).limit(PAGE)
    ).fetchall():
        numbers = [row[0] for row in rows]
        found = {} if embedder is None else _vectors_of(connection, numbers, embedder)
        for row in rows:
            yield entry_of(row[:-1]), bool(row[-1]), found.get(row[0])
        after = rows[-1][1]


def _entries_in_memory(reader: InMemoryReader, *, with_vectors: bool) -> Iterator[Exported]:
    ids = {entry.id for entry in reader.listed(Restrictions(), limit=_ALL)}
    for _, kept in sorted(reader.by_id(ids).items(), key=lambda item: item[0].encode()):
        row = reader.rows[kept.number]
        given = row.vector if with_vectors else None
        blobs = () if given is None else tuple(one.astype("<f4").tobytes() for one in given.each)
        found = Vectors(blobs, is_whole=given.is_whole) if given is not None else None
        yield kept.entry, row.digest is not None, found


def _turns_of(connection: Connection, thread: int, status: Status) -> Iterator[Turn]:
    after = 0
    while page := reading.turns_between(connection, thread, after=after, first=PAGE, status=status):
        yield from page
        after = page[-1].seq


def _turn_vectors(
    connection: Connection, thread: int, page: Sequence[Turn], embedder: str
) -> dict[int, Vectors]:
    numbers = turn_numbers(connection, thread, [turn.seq for turn in page])
    found = _vectors_of(connection, list(numbers.values()), embedder)
    return {seq: found[number] for seq, number in numbers.items() if number in found}


def _vectors_of(
    connection: Connection, numbers: Sequence[int], embedder: str
) -> dict[int, Vectors]:
    blobs: dict[int, list[bytes]] = {}
    shortened: set[int] = set()
    for some in slices(numbers):
        query = select(_V.row, _V.embedding, _V.is_whole).where(
            _V.row.in_(some), _V.embedder == embedder
        )
        for row, blob, is_whole in connection.execute(query.order_by(_V.row, _V.part)):
            blobs.setdefault(row, []).append(blob)
            shortened |= set() if is_whole else {row}
    return {row: Vectors(tuple(each), is_whole=row not in shortened) for row, each in blobs.items()}
