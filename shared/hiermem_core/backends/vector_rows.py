"""The vectors of rows in a database, written in the transaction of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from hiermem_core.backends.matrices import length_of
from hiermem_core.storage.database import slices
from hiermem_core.storage.inserting import insert_rows
from hiermem_core.storage.numbering import next_numbers
from hiermem_core.storage.tables import outbox, vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    from hiermem_core.backends.records import EntryWrite, MadeVector
    from hiermem_core.vector_index.indexer import Indexer

_O, _V = outbox.c, vectors.c
_NAMES = tuple(vectors.c.keys())

EMBED = "embed"
"""The change in the outbox that asks for a row's vector."""


class VectorRows:
    """Write vectors, and queue what is to be done about them after the commit.

    Args:
        indexer: Queues what the vector index must learn.
        embedder: Gives the name of the embedder whose vectors are written.
    """

    def __init__(self, indexer: Indexer, embedder: Callable[[Connection], str]) -> None:
        self._indexer = indexer
        self._embedder = embedder

    def renew(self, connection: Connection, tenant: str, writes: Mapping[int, EntryWrite]) -> None:
        """Give written rows their vectors; those whose content changed lose the old ones."""
        changed = [row for row, write in writes.items() if not write.keeps_vector]
        replaced = [row for row in changed if writes[row].number is not None]
        removed = self._take_out(connection, replaced)
        given = {row: vector for row in changed if (vector := writes[row].vector) is not None}
        made = self._that_count(connection, given)
        added = self._add(connection, tenant, made)
        self._indexer.queue(connection, tenant, added=added, removed=removed)
        late = [row for row in changed if writes[row].awaits_vector or row in given.keys() - made]
        self.await_vectors(connection, tenant, late)

    def add(self, connection: Connection, tenant: str, made: Mapping[int, MadeVector]) -> int:
        """Give rows that waited for them their vectors; return how many were stored."""
        made = self._that_count(connection, made)
        removed = self._take_out(connection, list(made))
        added = self._add(connection, tenant, made)
        self._indexer.queue(connection, tenant, added=added, removed=removed)
        return len(made)

    def await_vectors(self, connection: Connection, tenant: str, rows: Iterable[int]) -> None:
        """Queue rows whose vectors are made later."""
        queued = ((EMBED, row, tenant) for row in rows)
        insert_rows(connection, outbox, ("change", "number", "tenant"), queued)

    def remove(self, connection: Connection, tenant: str, rows: Sequence[int]) -> None:
        """Remove the vectors of rows, and what is queued for them."""
        removed = self._take_out(connection, rows)
        self._indexer.queue(connection, tenant, added=(), removed=removed)

    def _take_out(self, connection: Connection, rows: Sequence[int]) -> list[int]:
        removed: list[int] = []
        for some in slices(rows):
            query = select(_V.number).where(_V.row.in_(some))
            removed += connection.execute(query).scalars()
            connection.execute(delete(vectors).where(_V.row.in_(some)))
            connection.execute(delete(outbox).where(_O.change == EMBED, _O.number.in_(some)))
        return removed

    def _that_count(
        self, connection: Connection, made: Mapping[int, MadeVector]
    ) -> dict[int, MadeVector]:
        """Return the vectors by the embedder whose vectors count; a reindex may have changed it."""
        name = self._embedder(connection) if made else ""
        return {row: vector for row, vector in made.items() if vector.by in ("", name)}

    def _add(
        self, connection: Connection, tenant: str, made: Mapping[int, MadeVector]
    ) -> Sequence[int]:
        if not made:
            return ()
        owners = dict.fromkeys(made, tenant)
        return insert_vectors(connection, self._embedder(connection), owners, made)


def insert_vectors(
    connection: Connection, name: str, owners: Mapping[int, str], made: Mapping[int, MadeVector]
) -> Sequence[int]:
    """Insert the vectors of rows of these tenants under a name; return the vectors' numbers."""
    parts = [
        (row, part, values, vector.is_whole)
        for row, vector in made.items()
        for part, values in enumerate(vector.each)
    ]
    numbers = next_numbers(connection, vectors, len(parts))
    rows = (
        (
            number,
            owners[row],
            row,
            name,
            len(values),
            values.astype("<f4", copy=False).tobytes(),
            length_of(values),
            is_whole,
            part,
        )
        for number, (row, part, values, is_whole) in zip(numbers, parts, strict=True)
    )
    insert_rows(connection, vectors, _NAMES, rows)
    return numbers
