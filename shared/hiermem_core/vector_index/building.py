"""Filling a new generation of the vector index from the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hiermem_core.errors import InvalidInputError
from hiermem_core.vector_index import rows
from hiermem_core.vector_index.chroma import collection_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.chroma import ChromaIndex

BULK_BATCH = 1_000
TRICKLE_BATCH = 128
"""Vectors added at once: Chroma stops every other Python thread for about 0.3 ms a vector."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast to work.

    Attributes:
        batch: Vectors at once.
        between: Called after each batch; raises `IndexUnavailableError` to end the work.
    """

    batch: int
    between: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """What a new generation holds, by tenant, and what it refused, with the error's name."""

    numbers: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    refused: dict[str, dict[int, str]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The vectors in it."""
        return sum(map(len, self.numbers.values()))


def fill(index: ChromaIndex, database: Database, embedder: str, pace: Pace) -> Copied:
    """Add the vectors of every indexed tenant. Holds no transaction while Chroma works."""
    copied = Copied()
    with database.read() as connection:
        tenants = rows.indexed_tenants(connection)
    for tenant in tenants:
        name = collection_name(tenant, embedder)
        numbers = [np.empty(0, np.int64)]
        refused: dict[int, str] = {}
        index.begin_bulk(name)
        for page in _pages(database, tenant, embedder, pace):
            refused |= add_each(index, name, page)
            numbers.append(page.numbers)
        index.end_bulk(name)
        every = np.concatenate(numbers)
        copied.numbers[tenant] = np.setdiff1d(every, list(refused))
        copied.refused[tenant] = refused
    return copied


def add_each(index: ChromaIndex, collection: str, vectors: rows.Vectors) -> dict[int, str]:
    """Add vectors; return those that are refused, with the error's name.

    One bad vector keeps no other out.
    """
    misfits = dict.fromkeys(vectors.misfits, "DimensionMismatchError")
    return misfits | _add_each(index, collection, vectors.numbers.tolist(), vectors.matrix)


def settle_copied(connection: Connection, copied: Copied) -> None:
    """Forget changes that a copy has made needless, and record what it could not take."""
    for tenant, numbers in copied.numbers.items():
        adds = rows.pending(connection, tenant, "add")
        removes = rows.pending(connection, tenant, "remove")
        rows.settle(connection, "add", np.intersect1d(adds, numbers).tolist())
        rows.settle(connection, "remove", np.setdiff1d(removes, numbers).tolist())
        refused = copied.refused[tenant]
        for number in rows.still_there(connection, list(refused)):
            rows.fail(connection, tenant, number, refused[number])


def _add_each(
    index: ChromaIndex, collection: str, numbers: Sequence[int], matrix: NDArray[np.float32]
) -> dict[int, str]:
    if not numbers:
        return {}
    try:
        index.add(collection, numbers, matrix)
    except InvalidInputError as error:
        if len(numbers) == 1:
            return {numbers[0]: type(error.__cause__ or error).__name__}
        half = len(numbers) // 2
        first = _add_each(index, collection, numbers[:half], matrix[:half])
        return first | _add_each(index, collection, numbers[half:], matrix[half:])
    return {}


def _pages(database: Database, tenant: str, embedder: str, pace: Pace) -> Iterator[rows.Vectors]:
    last = 0
    while True:
        pace.between()
        with database.read() as connection:
            page = rows.vectors_after(connection, tenant, embedder, last, pace.batch)
        found = [*page.numbers[-1:].tolist(), *page.misfits]
        if not found:
            return
        yield page
        last = max(found)
