"""Probes: the vectors and changes that a HierMem keeps below its public face."""
# ruff: noqa: SLF001 - a probe looks where the public face cannot

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from hiermem_core.embedding.calling import HARMLESS_TEXT
from hiermem_core.embedding.identity import PROBE_TEXTS
from hiermem_core.storage.tables import outbox, vectors
from hiermem_core.testing.contracts.samples import said

if TYPE_CHECKING:
    from hiermem_core import HierMem
    from hiermem_core.testing.embedders import FakeEmbedder

PROBED = frozenset({*PROBE_TEXTS, HARMLESS_TEXT})
"""What an embedder is given to prove itself."""

PEARS = 200
ROWS = PEARS * 3 // 2


def vectors_of(hiermem: HierMem) -> dict[tuple[str, int], int]:
    """Return how many vectors are kept, by model and length, of all tenants."""
    counts: Counter[tuple[str, int]] = Counter()
    with hiermem._services.database.read() as connection:
        query = select(vectors.c.embedder, vectors.c.dimension)
        for name, length in connection.execute(query):
            counts[name.rpartition(" (")[0], length] += 1
    memory = hiermem._services.reindexing._parts.memory
    if memory is not None:
        with memory._backend.locked() as stores:
            for row in (row for store in stores.values() for row in store.rows.values()):
                if row.vector is not None:
                    name = row.vector.by.rpartition(" (")[0]
                    counts[name, len(row.vector.values)] += 1
    return dict(counts)


def index_changes(hiermem: HierMem) -> int:
    """Return how many changes wait for the vector index."""
    if not hiermem._services.memories.indexer.is_on:
        return 0
    with hiermem._services.database.read() as connection:
        query = select(func.count()).select_from(outbox).where(outbox.c.change != "embed")
        return connection.execute(query).scalar_one()


def filled(hiermem: HierMem) -> list[str]:
    """Store entries of two tenants and turns; return the ids of the first tenant's entries."""
    memory = hiermem.tenant("acme").memory
    stored = memory.bulk_insert(f"pear number {number}" for number in range(PEARS))
    hiermem.tenant("other").memory.bulk_insert(f"apple {number}" for number in range(PEARS // 4))
    thread = hiermem.tenant("acme").thread("t1")
    thread.append(said(f"cherry {number}" for number in range(PEARS // 4)))
    return [str(entry_id) for entry_id in stored.ids]


def texts_of(embedder: FakeEmbedder, since: int = 0) -> set[str]:
    """Return what an embedder was given, from some call on, what it proves itself by left out."""
    return {text for call in embedder.calls[since:] for text in call} - PROBED
