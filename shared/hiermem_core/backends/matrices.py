"""Vectors in memory, for exact scans."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import LRUCache
from sqlalchemy import bindparam, select

from hiermem_core.forks import renewed_after_fork
from hiermem_core.storage.tables import vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from hiermem_core.backends.records import Cosines, Vector

_V = vectors.c

COLUMNS = (_V.number, _V.row, _V.embedding, _V.norm)
"""What a matrix is made of."""

_AFTER = (
    select(*COLUMNS)
    .where(
        _V.tenant == bindparam("tenant"),
        _V.embedder == bindparam("embedder"),
        _V.number > bindparam("last"),
    )
    .order_by(_V.number)
)
_BLOCK = 4096

CACHE_BYTES = 256 * 1024 * 1024
"""For whole tenants."""

WITHIN_BYTES = 64 * 1024 * 1024
"""For what lies within restrictions: four times 10,000 vectors of 384 numbers."""

_LEAST_CAPACITY = 1024
_MOST_OF_ONE_THREAD = 8192
"""Numbers; OpenBLAS multiplies 9,216 in one thread."""


class Matrix:
    """Unit vectors of rows, growing at the end; readers see what was there when they began.

    Attributes:
        last: The highest vector number in it.
    """

    def __init__(self, dimension: int, capacity: int = _LEAST_CAPACITY) -> None:
        self.last = 0
        self._count = 0
        self._numbers = np.empty(capacity, dtype=np.int64)
        self._rows = np.empty(capacity, dtype=np.int64)
        self._units = np.empty((capacity, dimension), dtype=np.float32)

    def __len__(self) -> int:
        """Return the number of vectors."""
        return self._count

    @property
    def bytes(self) -> int:
        """The memory it takes."""
        return self._units.nbytes + self._rows.nbytes + self._numbers.nbytes

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the vectors, ascending."""
        return self._numbers[: self._count]

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows the vectors belong to."""
        return self._rows[: self._count]

    def cosines(self, vector: Vector, places: NDArray[np.int64] | None = None) -> Cosines:
        """Return the cosine with each vector, or with those at some places."""
        units = self._units[: self._count]
        return rounded(products(units if places is None else units[places], vector))

    def add(self, records: Sequence[Any]) -> None:
        """Add records of `COLUMNS`, in ascending number."""
        if not records:
            return
        begin, end = self._count, self._count + len(records)
        self._make_room(end)
        numbers, rows, blobs, norms = zip(*records, strict=True)
        self._numbers[begin:end] = numbers
        self._rows[begin:end] = rows
        self._units[begin:end] = units_of(blobs, norms)
        self.last = numbers[-1]
        self._count = end

    def _make_room(self, count: int) -> None:
        if count <= len(self._rows):
            return
        capacity = max(count, len(self._rows) * 3 // 2)
        for name in ("_numbers", "_rows", "_units"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), dtype=old.dtype)
            new[: self._count] = old[: self._count]
            setattr(self, name, new)


class Matrices:
    """The matrices of tenants, in at most so many bytes, the least recently used leaving first.

    Args:
        limit: For whole tenants.
        within_limit: For the vectors within restrictions.
    """

    def __init__(self, limit: int = CACHE_BYTES, within_limit: int = WITHIN_BYTES) -> None:
        self.limit = limit
        self._within: LRUCache[Any, Matrix] = LRUCache(
            within_limit, getsizeof=lambda one: one.bytes
        )
        self._lock = threading.Lock()
        self._cache: LRUCache[Any, Matrix] = LRUCache(limit, getsizeof=lambda one: one.bytes)
        renewed_after_fork(self)

    def fits(self, count: int, dimension: int) -> bool:
        """Tell whether a matrix of that size may be held beside another."""
        return count * dimension * 4 <= self.limit // 2

    def of_tenant(
        self, connection: Connection, tenant: str, embedder: str, dimension: int
    ) -> Matrix:
        """Return the matrix of a tenant with every vector of the snapshot in it.

        Vectors that were removed stay in it until `forget`; whoever uses a place asks whether its
        row still has that vector.
        """
        key = (tenant, embedder)
        with self._lock:
            matrix = self._cache.get(key)
        if matrix is None:
            matrix = Matrix(dimension)
        facts = {"tenant": tenant, "embedder": embedder, "last": matrix.last}
        for fresh in connection.execute(_AFTER, facts).partitions(_BLOCK):
            with self._lock:
                matrix.add([record for record in fresh if record[0] > matrix.last])
        with self._lock:
            self._keep(key, matrix)
        return matrix

    def cosines(
        self, tenant: str, embedder: str, unit: Vector, numbers: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Cosines]:
        """Return those of these vectors that are in memory, and their cosines with a unit."""
        with self._lock:
            matrix = self._cache.get((tenant, embedder))
        if matrix is None or not len(matrix):
            return numbers[:0], np.empty(0)
        held = matrix.numbers
        places = np.minimum(np.searchsorted(held, numbers), len(held) - 1)
        is_held = held[places] == numbers
        return numbers[is_held], matrix.cosines(unit, places[is_held])

    def within(
        self, tenant: str, restrictions: tuple[Hashable, ...], load: Callable[[], Matrix]
    ) -> Matrix:
        """Return the matrix of what lies within restrictions, loaded unless it is in memory.

        Args:
            restrictions: Equal only where what they leave is equal, vector by vector.
        """
        key = (tenant, *restrictions)
        with self._lock:
            matrix = self._within.get(key)
        if matrix is None:
            matrix = load()
            with self._lock:
                if matrix.bytes <= self._within.maxsize:
                    self._within[key] = matrix
        return matrix

    def size_of(self, tenant: str, embedder: str) -> int | None:
        """Return the vectors held of a tenant; `None` where its matrix is not in memory."""
        with self._lock:
            matrix = self._cache.get((tenant, embedder))
        return None if matrix is None else len(matrix)

    def forget(self, tenant: str) -> None:
        """Drop what is held of a tenant."""
        with self._lock:
            for cache in (self._cache, self._within):
                for key in [key for key in cache if key[0] == tenant]:
                    del cache[key]

    def _keep(self, key: Any, matrix: Matrix) -> None:
        self._cache.pop(key, None)
        if matrix.bytes <= self.limit:
            self._cache[key] = matrix

    def after_fork(self) -> None:
        """Begin with a free lock in a forked child."""
        self._lock = threading.Lock()


def matrix_of(connection: Connection, query: Any, facts: Any, dimension: int) -> Matrix:
    """Return the matrix of a query of `COLUMNS`; reads a block at a time."""
    matrix = Matrix(dimension)
    for records in connection.execute(query, facts).partitions(_BLOCK):
        matrix.add(records)
    return matrix


def cosines_of(records: Sequence[Any], unit: Vector) -> tuple[NDArray[np.int64], Cosines]:
    """Return the numbers of records of `COLUMNS`, and the cosines of their vectors with a unit."""
    if not records:
        return np.empty(0, np.int64), np.empty(0)
    numbers, _, blobs, norms = zip(*records, strict=True)
    vectors_in = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(numbers), -1)
    cosines = products(vectors_in, unit) / np.array(norms)
    return np.array(numbers, dtype=np.int64), rounded(cosines)


def products(matrix: NDArray[np.float32], vector: Vector) -> NDArray[np.float32]:
    """Return the product of each row with a vector, in this thread alone.

    BLAS takes several threads for a large matrix; where they share cores with others, waiting for
    them takes up to 40 times as long as the product. Of a few rows at a time it takes none.
    """
    count, dimension = matrix.shape
    rows = max(1, _MOST_OF_ONE_THREAD // dimension)
    whole = count - count % rows
    head = np.matmul(matrix[:whole].reshape(-1, rows, dimension), vector)
    return np.concatenate([head.ravel(), matrix[whole:] @ vector])


def length_of(vector: Vector) -> float:
    """Return the length of a vector; single precision would overflow where a number is large."""
    double = vector.astype(np.float64)
    return math.sqrt(double @ double)


def unit_of(vector: Vector) -> Vector:
    """Return a vector at length one."""
    unit: Vector = (vector / np.float64(length_of(vector))).astype(np.float32)
    return unit


def units_of(blobs: Iterable[bytes], norms: Iterable[float]) -> NDArray[np.float32]:
    """Return stored vectors at length one, a row each."""
    lengths = np.fromiter(norms, dtype=np.float64)
    joined = np.frombuffer(b"".join(blobs), dtype="<f4")
    units = np.empty((len(lengths), len(joined) // len(lengths)), dtype=np.float32)
    np.divide(joined.reshape(units.shape), lengths[:, None], out=units, casting="same_kind")
    return units


def rounded(cosines: NDArray[Any]) -> Cosines:
    """Return cosines to six decimals: float32 rounds beyond, by the place in memory.

    As float64, in which a figure is the same whether numpy or an index found it.
    """
    result: Cosines = cosines.astype(np.float64).round(6)
    return result


def best(cosines: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return the places of the highest cosines, best first; ties with the last are all in."""
    if 0 < count < len(cosines):
        edge = np.partition(cosines, len(cosines) - count)[len(cosines) - count]
        places = np.flatnonzero(cosines >= edge)
    else:
        places = np.arange(len(cosines) if count else 0)
    chosen: NDArray[np.int64] = places[np.argsort(-cosines[places], kind="stable")]
    return chosen
