"""A database with vectors in it, for the tests of the vector index."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import numpy as np
from sqlalchemy import delete, insert, select

from hiermem_core.storage.database import Database
from hiermem_core.storage.location import resolve
from hiermem_core.storage.migrations import prepare
from hiermem_core.storage.numbering import next_numbers
from hiermem_core.storage.tables import outbox, searchable, tenants, vectors
from hiermem_core.testing import FakeClock
from hiermem_core.vector_index.facts import read_facts
from hiermem_core.vector_index.indexer import Indexer

DIMENSION = 16
EMBEDDER = "fake (16)"


def vector_for(seed, dimension=DIMENSION):
    """Return the vector that stands for a seed."""
    return np.random.default_rng(seed).standard_normal(dimension).astype("<f4")


@contextmanager
def opened_database(folder):
    """Open a database with the schema in a folder."""
    database = Database(resolve(folder))
    prepare(database, now_ms=0)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def opened_worlds(folder):
    """Yield what makes worlds on one database in a folder; all are closed at the end."""
    made = []
    with opened_database(folder) as database:

        def make(**options):
            made.append(World(database, folder, **options))
            return made[-1]

        try:
            yield make
        finally:
            for one in made:
                one.indexer.close()


def facts_of(world):
    """Return what the database knows of the index."""
    with world.database.read() as connection:
        return read_facts(connection)


def outbox_rows(world, change=None):
    """Return the queued changes, of one kind or all."""
    query = select(outbox.c.change, outbox.c.number)
    if change is not None:
        query = query.where(outbox.c.change == change)
    with world.database.read() as connection:
        return sorted(tuple(row) for row in connection.execute(query))


def generations(world):
    """Return the names of the index's folders."""
    return sorted(path.name for path in world.folder.glob("gen-*"))


class World:
    """A database and its index, and the writes that a backend makes.

    Rows are counted by `seed`, so that a row's vector can be made again.
    """

    def __init__(self, database, folder, *, embedder=EMBEDDER, threshold=0, **options):
        self.database = database
        self.folder = folder / "chroma"
        self.clock = options.pop("clock", None) or FakeClock()
        self.indexer = Indexer(
            database,
            self.folder,
            threshold=threshold,
            clock=self.clock,
            embedder=embedder,
            **options,
        )

    def store(self, seeds, tenant="acme", *, embedder=EMBEDDER, vector=vector_for):
        """Store a row and a vector for each seed; return the vectors' numbers."""
        seeds = list(seeds)
        with self.database.write() as connection:
            self.know(connection, tenant)
            rows = next_numbers(connection, searchable, len(seeds))
            connection.execute(
                insert(searchable), [{"number": row, "tenant": tenant} for row in rows]
            )
            numbers = next_numbers(connection, vectors, len(seeds))
            connection.execute(
                insert(vectors),
                [
                    _vector_row(number, row, tenant, embedder, vector(seed))
                    for number, row, seed in zip(numbers, rows, seeds, strict=True)
                ],
            )
            self.indexer.queue(connection, tenant, added=numbers, removed=())
        return list(numbers)

    def remove(self, numbers, tenant="acme"):
        """Remove vectors."""
        with self.database.write() as connection:
            connection.execute(delete(vectors).where(vectors.c.number.in_(numbers)))
            self.indexer.queue(connection, tenant, added=(), removed=numbers)

    def know(self, connection, tenant):
        query = select(tenants.c.number).where(tenants.c.tenant == tenant)
        if connection.execute(query).scalar() is None:
            connection.execute(insert(tenants), [{"tenant": tenant, "generation": 0}])

    def state(self, tenant="acme"):
        with self.database.read() as connection:
            return self.indexer.state(connection, tenant)

    def pending(self, tenant="acme"):
        with self.database.read() as connection:
            return set(self.indexer.pending_numbers(connection, tenant).tolist())

    def living(self, tenant="acme"):
        with self.database.read() as connection:
            query = select(vectors.c.number, vectors.c.embedding)
            return dict(connection.execute(query.where(vectors.c.tenant == tenant)).all())

    def nearest(self, vector, count=5, tenant="acme", **options):
        """Return what the index answers, as a list of numbers; `None` where it does not."""
        answer = self.indexer.nearest(tenant, vector, count, **options)
        return None if answer is None else answer[0].tolist()

    def found(self, tenant="acme", *, every=1):
        """Return the share of the living vectors that the index finds by themselves.

        Every so manieth is looked up, and each of the newest hundred.
        """
        living = list(self.living(tenant).items())
        living = dict(living[::every] + living[-100:])
        hits = 0
        for number, blob in living.items():
            hits += number in (self.nearest(np.frombuffer(blob, "<f4"), 5, tenant) or [])
        return hits / max(1, len(living))


def _vector_row(number, row, tenant, embedder, vector):
    return {
        "number": number,
        "tenant": tenant,
        "row": row,
        "embedder": embedder,
        "dimension": len(vector),
        "embedding": vector.tobytes(),
        "norm": float(np.nan_to_num(np.linalg.norm(vector))),
        "is_whole": True,
    }


def until(condition, seconds=20):
    """Wait until a condition holds; tell whether it does."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(0.01)
    return True
