"""Probes: the vectors and changes that a HierMem keeps below its public face."""
# ruff: noqa: SLF001 - a probe looks where the public face cannot

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sqlalchemy import NullPool, create_engine, select

from hiermem_core.backends.keywords import add_keywords
from hiermem_core.embedding.calling import HARMLESS_TEXT
from hiermem_core.embedding.identity import PROBE_TEXTS
from hiermem_core.storage.tables import vectors
from hiermem_core.testing.contracts.samples import said
from hiermem_core.vector_index.chroma import collection_name

if TYPE_CHECKING:
    from pathlib import Path

    from hiermem_core import HierMem
    from hiermem_core.storage.location import Server
    from hiermem_core.testing.embedders import FakeEmbedder

PROBED = frozenset({*PROBE_TEXTS, HARMLESS_TEXT})
"""What an embedder is given to prove itself."""

PEARS = 100
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
                    counts[name, row.vector.values.shape[-1]] += 1
    return dict(counts)


def rows_waiting(hiermem: HierMem) -> int:
    """Return how many rows wait for their vector."""
    return hiermem._services.health._state(None).rows


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


def run_behind(hiermem: HierMem, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement on the database behind the store's back, as another program would."""
    location = hiermem._services.database.location
    if location.server is not None:
        return _run_on_server(location.server, statement, values)
    with closing(sqlite3.connect(str(location.database))) as connection, connection:
        return connection.execute(statement, values).fetchall()


def _run_on_server(
    server: Server, statement: str, values: tuple[object, ...]
) -> list[tuple[Any, ...]]:
    """Run a statement without the server's care for what belongs together."""
    options = f"-c search_path={server.schema} -c session_replication_role=replica"
    engine = create_engine(server.url, poolclass=NullPool, connect_args={"options": options})
    with engine.begin() as connection:
        done = connection.exec_driver_sql(
            statement.replace("?", "%s").replace("% 2", "%% 2"), values
        )
        return [tuple(row) for row in done.all()] if done.returns_rows else []


def add_stray_keywords(hiermem: HierMem, number: int) -> None:
    """Add words of a row that is not there."""
    with hiermem._services.database.write() as connection:
        add_keywords(connection, [(number, "t1", "x")])


def index_folder_of(hiermem: HierMem) -> Path:
    """Return the folder of the vector index."""
    folder = hiermem._services.database.location.index_folder
    assert folder is not None
    return folder


def chroma_of(hiermem: HierMem, tenant: str) -> tuple[Any, str]:
    """Return the open vector index, and the name of a tenant's collection."""
    work: Any = hiermem._services.memories.indexer._work
    return work.store.index, collection_name(tenant, work.store.embedder)
