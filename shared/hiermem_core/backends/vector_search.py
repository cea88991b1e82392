"""The nearest vectors of the rows in a scope: exactly, or by the index and then exactly enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import bindparam, func, select, union_all

from hiermem_core.backends.matrices import (
    COLUMNS,
    best,
    cosines_of,
    matrix_of,
    rounded,
    unit_of,
)
from hiermem_core.backends.planner import WAYS
from hiermem_core.backends.records import Scored
from hiermem_core.backends.sql_restrictions import (
    MOST_STATEMENTS,
    entry_numbers,
    facts_of,
    filter_of,
    in_scope,
    shape_of,
    turn_numbers,
)
from hiermem_core.errors import IndexUnavailableError
from hiermem_core.storage.given import as_given, given_numbers
from hiermem_core.storage.tables import memory_entries, searchable, tenants, vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray
    from sqlalchemy import Connection, Select

    from hiermem_core.backends.matrices import Matrices
    from hiermem_core.backends.planner import Planner, Way
    from hiermem_core.backends.records import Cosines, Vector
    from hiermem_core.backends.restrictions import Scope
    from hiermem_core.backends.sql_filters import Fields
    from hiermem_core.backends.sql_restrictions import Shape
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.indexer import Indexer

_E, _S, _V = memory_entries.c, searchable.c, vectors.c

_BLOCK = 4096
_SPARE = 16
_MORE = 8
_MOST_TOTALS = 1024

_of_embedder = _V.embedder == bindparam("embedder")
_of_tenant = (_V.tenant == bindparam("tenant"), _of_embedder)
_DIMENSION = select(_V.dimension).where(*_of_tenant).limit(1)
_LAST = select(func.max(_V.number)).where(*_of_tenant)
_STAMP = select(
    select(tenants.c.generation).where(tenants.c.tenant == bindparam("tenant")).scalar_subquery(),
    _LAST.scalar_subquery(),
)
"""What changes with every change of the entries, and with every vector that is made."""
_COUNT = select(func.count()).select_from(vectors).where(*_of_tenant)
_RECORDS = select(*COLUMNS).where(*_of_tenant).order_by(_V.number)
_RECORDS_OF = select(*COLUMNS).where(_V.number.in_(given_numbers("numbers")), _of_embedder)
_NUMBERS_OF = select(_V.number, _V.row).where(_V.row.in_(given_numbers("rows")), _of_embedder)

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

    @property
    def facts(self) -> dict[str, Any]:
        """What is bound to statements about the scope's vectors."""
        return {"tenant": self.scope.tenant, "embedder": self.embedder}


class VectorSearch:
    """Find the nearest vectors in a database.

    Every committed vector is found. A row that is gone, expired or changed since its vector was
    made never is, since what is found is looked up in the same snapshot.

    Args:
        fields: The metadata fields of the database.
        embedder: Gives the name of the embedder whose vectors count, as of a snapshot.
    """

    def __init__(
        self,
        database: Database,
        indexer: Indexer,
        *,
        matrices: Matrices,
        planner: Planner,
        fields: Fields,
        embedder: Callable[[Connection], str],
    ) -> None:
        self._database = database
        self._indexer = indexer
        self._matrices = matrices
        self._planner = planner
        self._fields = fields
        self._embedder = embedder
        self._totals: dict[tuple[str, str], tuple[int, int]] = {}

    def nearest(self, scope: Scope, vector: Vector, *, limit: int) -> Scored:
        """Return the rows with the nearest vectors, by cosine, best first."""
        unit = unit_of(vector)
        with self._database.read() as connection:
            asked = _Asked(connection, scope, unit, limit, self._embedder(connection))
            _check_length(asked)
            way, found = self._search(asked)
        return Scored(tuple((row, -minus) for minus, _, _, row in found[:limit]), WAYS[way])

    def cosines(self, scope: Scope, vector: Vector, rows: Iterable[int]) -> dict[int, float]:
        """Return the cosine of each of these rows that has a vector."""
        unit = unit_of(vector)
        with self._database.read() as connection:
            asked = _Asked(connection, scope, unit, 0, self._embedder(connection))
            _check_length(asked)
            facts = {"rows": as_given(rows), "embedder": asked.embedder}
            row_of = {row[0]: row[1] for row in connection.execute(_NUMBERS_OF, facts).all()}
            numbers, cosines = self._matrices.cosines(
                scope.tenant, asked.embedder, unit, np.fromiter(row_of, np.int64)
            )
            found = dict(zip(numbers.tolist(), cosines.tolist(), strict=True))
            missing = [number for number in row_of if number not in found]
            if missing:
                numbers, cosines = self._read(asked, missing)
                found |= zip(numbers.tolist(), cosines.tolist(), strict=True)
        ascending = sorted(found.items(), key=lambda one: one[1])
        return {row_of[number]: cosine for number, cosine in ascending}

    def forget(self, tenant: str) -> None:
        """Drop what is held in memory of a tenant."""
        self._matrices.forget(tenant)

    def _search(self, asked: _Asked) -> tuple[Way, list[Found]]:
        total = self._total(asked)
        is_small = total <= self._planner.exact_limit
        is_usable = not is_small and self._indexer.is_usable(asked.scope.tenant)
        share = 1.0
        if is_usable and not asked.scope.is_everything:
            is_narrow = not asked.scope.is_every_entry
            if is_narrow and self._matching(asked, self._planner.few) is not None:
                return "candidates", self._candidates(asked)
            found, share = self._first_batch(asked)
            if len(found) >= asked.limit and self._planner.is_plenty(share, total):
                return "index", found
        way = self._planner.way(
            matching=None if is_small else self._matching(asked, self._planner.exact_limit),
            total=total,
            indexed=is_usable,
            in_memory=is_small or self._matrices.fits(total, len(asked.unit)),
        )
        if way == "index":
            best_found = self._by_index(asked, share)
            if best_found is not None:
                return way, best_found
            way = "scan" if self._matrices.fits(total, len(asked.unit)) else "blocks"
        ways = {"candidates": self._candidates, "scan": self._scan, "blocks": self._in_blocks}
        return way, ways[way](asked)

    def _total(self, asked: _Asked) -> int:
        """Return about how many vectors the tenant has; counted anew when it has grown."""
        held = self._matrices.size_of(asked.scope.tenant, asked.embedder)
        if held is not None:
            return held
        key = (asked.scope.tenant, asked.embedder)
        last = asked.connection.execute(_LAST, asked.facts).scalar() or 0
        known, at = self._totals.get(key, (0, 0))
        if not at or not 0 <= last - at <= known // 8:
            known = asked.connection.execute(_COUNT, asked.facts).scalar_one()
            if len(self._totals) >= _MOST_TOTALS:
                self._totals.clear()
            self._totals[key] = (known, last)
        return known

    def _matching(self, asked: _Asked, limit: int) -> int | None:
        """Return the rows in scope; `None` where it is not restricted, or they are more."""
        if asked.scope.is_everything:
            return None
        some = self._rows_in(asked.scope).limit(limit + 1).subquery()
        query = select(func.count()).select_from(some)
        count = asked.connection.execute(query, facts_of(asked.scope)).scalar_one()
        return count if count <= limit else None

    def _candidates(self, asked: _Asked) -> list[Found]:
        """Scan what is within the restrictions; of entries it stays in memory until they change."""
        query = select(*COLUMNS).where(_V.row.in_(self._rows_in(asked.scope)), _of_embedder)
        facts = facts_of(asked.scope) | asked.facts
        if asked.scope.has_turns:
            return self._best_passing(asked, *_cosines(asked, query, facts))
        stamp = asked.connection.execute(_STAMP, asked.facts).one()
        matrix = self._matrices.within(
            asked.scope.tenant,
            (asked.embedder, repr(asked.scope.entries), *stamp),
            lambda: matrix_of(asked.connection, query, facts, len(asked.unit)),
        )
        return self._best_passing(asked, matrix.numbers, matrix.cosines(asked.unit))

    def _scan(self, asked: _Asked) -> list[Found]:
        """Scan the tenant's matrix: first past the restrictions, then only what is within."""
        matrix = self._matrices.of_tenant(
            asked.connection, asked.scope.tenant, asked.embedder, len(asked.unit)
        )
        cosines = matrix.cosines(asked.unit)
        numbers = matrix.numbers[: len(cosines)]
        spare = _SPARE if asked.scope.is_everything else _SPARE + min(3 * asked.limit, _SPARE * 4)
        places = best(cosines, asked.limit + spare)
        found = self._passing(asked, numbers[places], cosines[places])
        if len(found) >= asked.limit or len(places) == len(numbers):
            return found
        query = self._rows_in(asked.scope)
        rows = asked.connection.execute(query, facts_of(asked.scope)).scalars()
        within = np.flatnonzero(np.isin(matrix.rows[: len(cosines)], np.fromiter(rows, np.int64)))
        living = asked.connection.execute(_COUNT, asked.facts).scalar_one()
        if len(numbers) > living + living // 4 + _SPARE:
            self._matrices.forget(asked.scope.tenant)
        return self._best_passing(asked, numbers[within], cosines[within])

    def _first_batch(self, asked: _Asked) -> tuple[list[Found], float]:
        """Return what of a batch from the index is in scope with the pending, and the share."""
        is_narrow = not asked.scope.is_every_entry
        size = self._planner.first_size(asked.limit, is_restricted=is_narrow)
        pending = self._pending(asked)
        found = self._from_index(asked, size)
        if found is None:
            return [], 1.0
        share = len(found) / size
        return _merged(found, pending)[: len(found)], share

    def _by_index(self, asked: _Asked, share: float) -> list[Found] | None:
        """Ask the index for more and more hits until enough are in scope, and add the pending.

        Returns:
            `None` where the index cannot answer, or hardly anything it finds is in scope.
        """
        pending = self._pending(asked)
        for size in self._planner.fetch_sizes(asked.limit, share):
            found = self._from_index(asked, size)
            if found is None:
                return None
            if len(found) >= asked.limit:
                return _merged(found, pending)
        return None

    def _from_index(self, asked: _Asked, size: int) -> list[Found] | None:
        """Return what of the nearest in the index is in scope; `None` where it cannot answer."""
        answer = self._indexer.nearest(
            asked.scope.tenant, asked.unit, size, embedder=asked.embedder
        )
        if answer is None:
            return None
        numbers, cosines = answer
        return self._passing(asked, numbers, rounded(cosines))

    def _pending(self, asked: _Asked) -> list[Found]:
        numbers = self._indexer.pending_numbers(asked.connection, asked.scope.tenant)
        if not len(numbers):
            return []
        return self._best_passing(asked, *self._read(asked, numbers.tolist()))

    def _read(self, asked: _Asked, numbers: list[int]) -> tuple[NDArray[np.int64], Cosines]:
        """Return the numbers of these vectors that are there, and their cosines."""
        facts = {"numbers": as_given(numbers), "embedder": asked.embedder}
        return _cosines(asked, _RECORDS_OF, facts)

    def _in_blocks(self, asked: _Asked) -> list[Found]:
        """Scan what the database holds, a block at a time, in bounded memory."""
        found: list[Found] = []
        for records in asked.connection.execute(_RECORDS, asked.facts).partitions(_BLOCK):
            numbers, cosines = cosines_of(records, asked.unit)
            if len(found) >= asked.limit:
                near = cosines >= -found[-1][0]
                numbers, cosines = numbers[near], cosines[near]
            more = self._best_passing(asked, numbers, cosines)
            found = _merged(found, more)[: asked.limit]
        return found

    def _best_passing(
        self, asked: _Asked, numbers: NDArray[np.int64], cosines: Cosines
    ) -> list[Found]:
        """Return the best rows of these vectors that are in scope, at least as many as asked."""
        size = asked.limit + _SPARE
        while True:
            places = best(cosines, size)
            found = self._passing(asked, numbers[places], cosines[places])
            if len(found) >= asked.limit or len(places) == len(numbers):
                return found
            size *= _MORE

    def _passing(self, asked: _Asked, numbers: NDArray[np.int64], cosines: Cosines) -> list[Found]:
        """Return the rows of these vectors that are in scope, each once, in their order."""
        if not len(numbers):
            return []
        cosine_of = dict(zip(numbers.tolist(), cosines.tolist(), strict=True))
        query = _rows_of(shape_of(asked.scope))
        fits = filter_of(asked.scope, fields=self._fields)
        query = query if fits is None else query.where(fits)
        facts = facts_of(asked.scope) | asked.facts | {"numbers": as_given(cosine_of)}
        return _merged(
            (-cosine_of[number], -changed, entry_id or "", row)
            for number, row, changed, entry_id in asked.connection.execute(query, facts).all()
        )

    def _rows_in(self, scope: Scope) -> Select[tuple[int]]:
        """Return the query of the rows in scope; expired entries may be among them."""
        entries = entry_numbers(scope, fields=self._fields)
        if not scope.has_turns:
            return entries
        if scope.entries is None:
            return turn_numbers(scope)
        rows = union_all(entries, turn_numbers(scope)).subquery()
        return select(rows.c.number)


@lru_cache(MOST_STATEMENTS)
def _rows_of(shape: Shape) -> Select[Any]:
    """Return the query of the rows in scope that have one of some vectors."""
    changed = _E.updated_at if shape.turns is None else func.coalesce(_E.updated_at, _S.created_at)
    query = (
        select(_V.number, _V.row, changed, _E.id)
        .select_from(vectors)
        .outerjoin(memory_entries, _E.number == _V.row)
    )
    if shape.turns is not None:
        query = query.outerjoin(searchable, _S.number == _V.row)
    return query.where(_V.number.in_(given_numbers("numbers")), _of_embedder, in_scope(shape))


def _merged(*parts: Iterable[Found]) -> list[Found]:
    """Return rows in their order, each by the best of its vectors."""
    first: dict[int, Found] = {}
    for one in sorted(chain(*parts)):
        first.setdefault(one[3], one)
    return list(first.values())


def _cosines(
    asked: _Asked, query: Select[Any], facts: Mapping[str, Any]
) -> tuple[NDArray[np.int64], Cosines]:
    """Return the numbers of a query of `COLUMNS`, and the cosines; holds a block at a time."""
    blocks = [
        cosines_of(records, asked.unit)
        for records in asked.connection.execute(query, facts).partitions(_BLOCK)
    ]
    numbers, cosines = zip(*(blocks or [cosines_of([], asked.unit)]), strict=True)
    return np.concatenate(numbers), np.concatenate(cosines)


def _check_length(asked: _Asked) -> None:
    """Raise where a question was embedded just before the vectors were made anew by another."""
    dimension = asked.connection.execute(_DIMENSION, asked.facts).scalar()
    if dimension not in (None, len(asked.unit)):
        reason = "the vectors were made anew meanwhile; search again"
        raise IndexUnavailableError("semantic search", reason)
