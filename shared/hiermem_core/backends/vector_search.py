"""The nearest vectors of the rows in a scope: exactly, or by the index and then exactly enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import func, select, union_all

from hiermem_core.backends.matrices import COLUMNS, Matrix, best, matrix_of, rounded, unit_of
from hiermem_core.backends.planner import WAYS
from hiermem_core.backends.records import Scored
from hiermem_core.backends.sql_restrictions import entry_numbers, in_scope, turn_numbers
from hiermem_core.errors import IndexUnavailableError
from hiermem_core.storage.database import slices
from hiermem_core.storage.tables import memory_entries, searchable, vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray
    from sqlalchemy import Connection, Select

    from hiermem_core.backends.indexing import Indexer
    from hiermem_core.backends.matrices import Matrices
    from hiermem_core.backends.planner import Planner, Way
    from hiermem_core.backends.records import Vector
    from hiermem_core.backends.restrictions import Scope
    from hiermem_core.storage.database import Database

_E, _S, _V = memory_entries.c, searchable.c, vectors.c

_BLOCK = 4096
_SPARE = 16

Found = tuple[float, int, str, int]
"""A row, ordered best first: minus its cosine, minus the time it changed, its id, its number."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One search on one snapshot."""

    connection: Connection
    scope: Scope
    unit: Vector
    limit: int
    embedder: str


class VectorSearch:
    """Find the nearest vectors in a database.

    Every committed vector is found. A row that is gone, expired or changed since its vector was
    made never is, since what is found is looked up in the same snapshot.

    Args:
        fields: Metadata fields that have an index.
        embedder: Gives the name of the embedder whose vectors count, as of a snapshot.
    """

    def __init__(
        self,
        database: Database,
        indexer: Indexer,
        *,
        matrices: Matrices,
        planner: Planner,
        fields: frozenset[str],
        embedder: Callable[[Connection], str],
    ) -> None:
        self._database = database
        self._indexer = indexer
        self._matrices = matrices
        self._planner = planner
        self._fields = fields
        self._embedder = embedder

    def nearest(self, scope: Scope, vector: Vector, *, limit: int) -> Scored:
        """Return the rows with the nearest vectors, by cosine, best first."""
        unit = unit_of(vector)
        with self._database.read() as connection:
            asked = _Asked(connection, scope, unit, limit, self._embedder(connection))
            _check_length(connection, asked.scope.tenant, asked.embedder, unit)
            way, found = self._search(asked)
        return Scored(tuple((row, -minus) for minus, _, _, row in found[:limit]), WAYS[way])

    def cosines(self, scope: Scope, vector: Vector, rows: Iterable[int]) -> dict[int, float]:
        """Return the cosine of each of these rows that has a vector."""
        unit, wanted = unit_of(vector), list(rows)
        result: dict[int, float] = {}
        with self._database.read() as connection:
            embedder = self._embedder(connection)
            _check_length(connection, scope.tenant, embedder, unit)
            for some in slices(wanted):
                query = select(*COLUMNS).where(_V.row.in_(some), _V.embedder == embedder)
                part = matrix_of(connection, query, len(unit))
                result |= zip(part.rows.tolist(), part.cosines(unit).tolist(), strict=True)
        return result

    def forget(self, tenant: str) -> None:
        """Drop what is held in memory of a tenant."""
        self._matrices.forget(tenant)

    def _search(self, asked: _Asked) -> tuple[Way, list[Found]]:
        total = self._total(asked)
        is_small = total <= self._planner.exact_limit
        is_usable = not is_small and self._indexer.is_usable(asked.scope.tenant)
        way = self._planner.way(
            matching=None if is_small else self._matching(asked),
            total=total,
            indexed=is_usable,
            in_memory=is_small or (not is_usable and self._fits(asked)),
        )
        if way == "index":
            found = self._by_index(asked)
            if found is not None:
                return way, found
            way = "scan" if self._fits(asked) else "blocks"
        ways = {"candidates": self._candidates, "scan": self._scan, "blocks": self._in_blocks}
        return way, ways[way](asked)

    def _total(self, asked: _Asked) -> int:
        """Return the tenant's vectors, counted no further than it takes to choose."""
        held = self._matrices.size_of(asked.scope.tenant, asked.embedder)
        if held is not None:
            return held
        some = _of_tenant(asked, _V.number).limit(self._planner.exact_limit + 1)
        return _count(asked.connection, some)

    def _fits(self, asked: _Asked) -> bool:
        total = _count(asked.connection, _of_tenant(asked, _V.number))
        return self._matrices.fits(total, len(asked.unit))

    def _matching(self, asked: _Asked) -> int | None:
        """Return the rows in scope; `None` where it is not restricted, or they are too many."""
        if asked.scope.is_everything:
            return None
        limit = self._planner.exact_limit
        count = _count(asked.connection, self._rows_in(asked.scope).limit(limit + 1))
        return count if count <= limit else None

    def _candidates(self, asked: _Asked) -> list[Found]:
        rows = self._rows_in(asked.scope).subquery()
        query = select(*COLUMNS).where(
            _V.embedder == asked.embedder, _V.row.in_(select(rows.c.number))
        )
        return self._exact(asked, matrix_of(asked.connection, query, len(asked.unit)))

    def _scan(self, asked: _Asked) -> list[Found]:
        """Scan the tenant's matrix: first past the restrictions, then only what is within."""
        matrix = self._matrices.of_tenant(
            asked.connection, asked.scope.tenant, asked.embedder, len(asked.unit)
        )
        cosines = matrix.cosines(asked.unit)
        numbers = matrix.numbers[: len(cosines)]
        spare = _SPARE if asked.scope.is_everything else 3 * asked.limit
        places = best(cosines, asked.limit + spare)
        found = self._passing(asked, numbers[places], cosines[places])
        if len(found) >= asked.limit or len(places) == len(numbers):
            return found
        rows = np.fromiter(asked.connection.execute(self._rows_in(asked.scope)).scalars(), np.int64)
        within = np.flatnonzero(np.isin(matrix.rows[: len(cosines)], rows))
        places = within[best(cosines[within], asked.limit + _SPARE)]
        found = self._passing(asked, numbers[places], cosines[places])
        if len(found) < min(asked.limit, len(places)):
            self._matrices.forget(asked.scope.tenant)
            found = self._passing(asked, numbers[within], cosines[within])
        return found

    def _exact(self, asked: _Asked, matrix: Matrix) -> list[Found]:
        cosines = matrix.cosines(asked.unit)
        places = best(cosines, asked.limit)
        return self._passing(asked, matrix.numbers[places], cosines[places])

    def _by_index(self, asked: _Asked) -> list[Found] | None:
        """Ask the index for more and more hits until enough are in scope, and add the pending.

        Returns:
            `None` where the index cannot answer, or hardly anything it finds is in scope.
        """
        pending = self._pending(asked)
        for size in self._planner.fetch_sizes(asked.limit):
            answer = self._indexer.nearest(
                asked.scope.tenant, asked.unit, size, embedder=asked.embedder
            )
            if answer is None:
                return None
            numbers, cosines = answer
            found = self._passing(asked, numbers, rounded(cosines))
            if len(found) >= asked.limit or len(numbers) < size:
                return sorted({*found, *pending})
        return None

    def _pending(self, asked: _Asked) -> list[Found]:
        numbers = self._indexer.pending_numbers(asked.connection, asked.scope.tenant)
        found: list[Found] = []
        for some in slices(numbers.tolist()):
            query = select(*COLUMNS).where(_V.number.in_(some), _V.embedder == asked.embedder)
            found += self._exact(asked, matrix_of(asked.connection, query, len(asked.unit)))
        return found

    def _in_blocks(self, asked: _Asked) -> list[Found]:
        """Scan what the database holds, a block at a time, in bounded memory."""
        query = _of_tenant(asked, *COLUMNS).order_by(_V.number)
        numbers, cosines = np.empty(0, np.int64), np.empty(0, np.float32)
        found: list[Found] = []
        for records in asked.connection.execute(query).partitions(_BLOCK):
            block = Matrix(len(asked.unit), len(records))
            block.add(records)
            scores = block.cosines(asked.unit)
            if asked.scope.is_everything:
                numbers = np.concatenate([numbers, block.numbers])
                cosines = np.concatenate([cosines, scores])
                kept = best(cosines, asked.limit + _SPARE)
                numbers, cosines = numbers[kept], cosines[kept]
            else:
                found = sorted([*found, *self._passing(asked, block.numbers, scores)])
                found = found[: asked.limit]
        return sorted([*found, *self._passing(asked, numbers, cosines)])

    def _passing(self, asked: _Asked, numbers: NDArray[np.int64], cosines: Vector) -> list[Found]:
        """Return the rows of these vectors that are in scope, in their order."""
        cosine_of = dict(zip(numbers.tolist(), cosines.tolist(), strict=True))
        found: list[Found] = []
        for some in slices(list(cosine_of)):
            query = (
                select(_V.number, _V.row, func.coalesce(_E.updated_at, _S.created_at), _E.id)
                .join(searchable, _S.number == _V.row)
                .outerjoin(memory_entries, _E.number == _V.row)
                .where(
                    _V.number.in_(some),
                    _V.embedder == asked.embedder,
                    in_scope(asked.scope, fields=self._fields),
                )
            )
            found += (
                (-cosine_of[number], -changed, entry_id or "", row)
                for number, row, changed, entry_id in asked.connection.execute(query)
            )
        return sorted(found)

    def _rows_in(self, scope: Scope) -> Select[tuple[int]]:
        parts = []
        if scope.entries is not None:
            parts.append(entry_numbers(scope, fields=self._fields))
        if scope.has_turns or not parts:
            parts.append(turn_numbers(scope))
        rows = union_all(*parts).subquery() if len(parts) > 1 else parts[0].subquery()
        return select(rows.c.number)


def _check_length(connection: Connection, tenant: str, embedder: str, unit: Vector) -> None:
    """Raise where a question was embedded just before the vectors were made anew by another."""
    query = select(_V.dimension).where(_V.tenant == tenant, _V.embedder == embedder).limit(1)
    dimension = connection.execute(query).scalar()
    if dimension not in (None, len(unit)):
        reason = "the vectors were made anew meanwhile; search again"
        raise IndexUnavailableError("semantic search", reason)


def _of_tenant(asked: _Asked, *columns: Any) -> Select[Any]:
    return select(*columns).where(_V.tenant == asked.scope.tenant, _V.embedder == asked.embedder)


def _count(connection: Connection, query: Select[Any]) -> int:
    return connection.execute(select(func.count()).select_from(query.subquery())).scalar_one()
