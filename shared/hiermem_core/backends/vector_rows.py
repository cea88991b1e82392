"""The vectors of rows in a database, written in the transaction of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import delete, insert, select

from hiermem_core.storage.database import slices
from hiermem_core.storage.numbering import next_numbers
from hiermem_core.storage.tables import outbox, vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    from hiermem_core.backends.indexing import Indexer
    from hiermem_core.backends.records import EntryWrite, MadeVector

_O, _V = outbox.c, vectors.c

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
        made = {row: vector for row in changed if (vector := writes[row].vector) is not None}
        added = self._add(connection, tenant, made)
        self._indexer.queue(connection, tenant, added=added, removed=removed)
        self.await_vectors(
            connection, tenant, [row for row in changed if writes[row].awaits_vector]
        )

    def add(self, connection: Connection, tenant: str, made: Mapping[int, MadeVector]) -> None:
        """Give rows that waited for them their vectors."""
        removed = self._take_out(connection, list(made))
        added = self._add(connection, tenant, made)
        self._indexer.queue(connection, tenant, added=added, removed=removed)

    def await_vectors(self, connection: Connection, tenant: str, rows: Iterable[int]) -> None:
        """Queue rows whose vectors are made later."""
        queued = [{"change": EMBED, "number": row, "tenant": tenant} for row in rows]
        if queued:
            connection.execute(insert(outbox), queued)

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

    def _add(
        self, connection: Connection, tenant: str, made: Mapping[int, MadeVector]
    ) -> Sequence[int]:
        if not made:
            return ()
        embedder = self._embedder(connection)
        numbers = next_numbers(connection, vectors, len(made))
        rows: list[dict[str, Any]] = [
            {
                "number": number,
                "tenant": tenant,
                "row": row,
                "embedder": embedder,
                "dimension": len(vector.values),
                "embedding": vector.values.astype("<f4").tobytes(),
                "norm": float(np.linalg.norm(vector.values)),
                "is_whole": vector.is_whole,
            }
            for number, (row, vector) in zip(numbers, made.items(), strict=True)
        ]
        connection.execute(insert(vectors), rows)
        return numbers
