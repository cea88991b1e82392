"""Entries in a database: rows and keywords in SQL, vectors beside them and in an index."""

from __future__ import annotations

from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from hiermem_core.backends.common_words import CommonWords
from hiermem_core.backends.keywords import keyword_index, rows_with, scope_tokens
from hiermem_core.backends.records import EntryCounts, Scored, VectorCounts
from hiermem_core.backends.sql_counts import entry_counts, vectors_made
from hiermem_core.backends.sql_filters import NO_FIELDS
from hiermem_core.backends.sql_reader import SqlReader
from hiermem_core.backends.sql_restrictions import (
    MOST_STATEMENTS,
    entry_numbers,
    facts_of,
    filter_of,
    in_scope,
    living,
    shape_of,
    turn_numbers,
)
from hiermem_core.backends.sql_writer import SqlWriter
from hiermem_core.backends.tenants import generation_of, tenant_number
from hiermem_core.ranking.words import query_words
from hiermem_core.storage.tables import memory_entries, searchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Select

    from hiermem_core.backends.keywords import KeywordIndex
    from hiermem_core.backends.quotas import Quotas
    from hiermem_core.backends.records import Attempt, Settled, Vector, Waiting
    from hiermem_core.backends.restrictions import Scope
    from hiermem_core.backends.sql_filters import Fields
    from hiermem_core.backends.sql_restrictions import Shape
    from hiermem_core.backends.vector_rows import VectorRows
    from hiermem_core.backends.vector_search import VectorSearch
    from hiermem_core.backends.waiting import WaitingRows
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.indexer import Indexer

ROWS_OF_TENANT = "SELECT count(*) FROM searchable WHERE tenant = ?"

_E, _S = memory_entries.c, searchable.c
_NOTHING = Scored((), "keyword index: nothing to look up")
_SPARE = 50
_ALL = 2**62


class SqlBackend:
    """The backends `sqlite`, `chroma` and `hybrid`: the same rows, other ways to search them.

    Keyword rows and vectors are kept whatever the modes, so that a location opened with another
    backend has lost nothing.

    Args:
        embedder: Gives the name of the embedder whose vectors count, as of a snapshot.
        fields: The metadata fields of the database.
        quotas: Let writes pass, or refuse them.
    """

    def __init__(
        self,
        name: str,
        modes: frozenset[str],
        database: Database,
        *,
        vectors: VectorRows,
        search: VectorSearch,
        waiting: WaitingRows,
        indexer: Indexer,
        embedder: Callable[[Connection], str],
        quotas: Quotas,
        fields: Fields = NO_FIELDS,
    ) -> None:
        self.name = name
        self.modes = modes
        self._database = database
        self._vectors = vectors
        self._search = search
        self._waiting = waiting
        self._indexer = indexer
        self._embedder = embedder
        self._quotas = quotas
        self._fields = fields
        self._common = CommonWords()

    @contextmanager
    def read(self, tenant: str, now: datetime) -> Iterator[SqlReader]:
        """Read on one snapshot."""
        with self._database.read() as connection:
            embedder = self._embedder(connection)
            yield SqlReader(connection, tenant, now, embedder=embedder, fields=self._fields)

    @contextmanager
    def write(self, tenant: str, now: datetime) -> Iterator[SqlWriter]:
        """Write in one transaction."""
        with self._quotas.telling(tenant) as rejected, self._database.write(tenant) as connection:
            yield SqlWriter(
                connection,
                tenant,
                now,
                embedder=self._embedder(connection),
                fields=self._fields,
                vectors=self._vectors,
                gate=self._quotas.gate(connection, tenant, now, rejected),
            )

    def has_rows(self, scope: Scope) -> bool:
        """Tell whether there is a row in scope."""
        with self._database.read() as connection:
            entries = entry_numbers(scope, fields=self._fields).where(living(scope.now))
            queries = (entries, turn_numbers(scope)) if scope.has_turns else (entries,)
            found = (connection.execute(one.limit(1), facts_of(scope)).first() for one in queries)
            return any(row is not None for row in found)

    def common_words(self, tenant: str, share: float) -> Callable[[str], bool]:
        """Return what tells whether a word stands in more than this share of a tenant's rows."""

        def is_common(word: str) -> bool:
            with self._database.read() as connection:
                number = tenant_number(connection, tenant)
                if number is None:
                    return False
                rows: int = self._database.fact(ROWS_OF_TENANT, (tenant,), inside=connection)
                most = max(1, round(share * rows))
                return rows_with(connection, number, word, limit=most + 1) > most

        return is_common

    def keyword(self, scope: Scope, question: str, *, limit: int) -> Scored:
        """Return the rows with words of the question, by BM25, best first."""
        with self._database.read() as connection:
            tenant = tenant_number(connection, scope.tenant)
            if tenant is None:
                return _NOTHING
            words = query_words(question)
            telling = self._common.without(connection, scope.tenant, tenant, words)
            index = keyword_index(connection)
            tokens = list(scope_tokens(scope, tenant))
            asked = index.asked(telling, tenant=tenant, scope=tokens)
            if asked is None:
                return _NOTHING
            attempts = [(asked, size) for size in _sizes(limit)]
            if index.is_faster_unscoped and scope.is_broad:
                everywhere = index.asked(telling, tenant=tenant, scope=None)
                if everywhere is not None and self._common.is_most(connection, scope.tenant):
                    attempts.insert(0, (everywhere, attempts[0][1]))
            rows = self._matches(connection, scope, attempts, limit)
        return Scored(tuple(rows), "keyword index")

    def nearest(self, scope: Scope, vector: Vector, *, limit: int) -> Scored:
        """Return the rows with the nearest vectors, by cosine, best first."""
        return self._search.nearest(scope, vector, limit=limit)

    def cosines(self, scope: Scope, vector: Vector, rows: Iterable[int]) -> dict[int, float]:
        """Return the cosine of each of these rows that has a vector."""
        return self._search.cosines(scope, vector, rows)

    def waiting(self, tenant: str, *, limit: int, due_ms: int | None = None) -> Waiting:
        """Return up to `limit` rows that wait for their vector, and what is embedded of them."""
        return self._waiting.some(tenant, limit=limit, due_ms=due_ms)

    def settle(
        self, tenant: str, waiting: Waiting, tried: Mapping[int, Attempt], *, now_ms: int
    ) -> Settled:
        """Store the vectors of rows whose text is still the same, and note the failures."""
        return self._waiting.settle(tenant, waiting, tried, now_ms=now_ms)

    def entry_counts(self, tenant: str, now: datetime) -> EntryCounts:
        """Return what the tenant keeps."""
        with self._database.read() as connection:
            return entry_counts(connection, tenant, now)

    def vector_counts(self, tenant: str) -> VectorCounts:
        """Return how the tenant's rows stand with their vectors."""
        waiting, failed = self._waiting.counts(tenant)
        with self._database.read() as connection:
            made, shortened = vectors_made(connection, tenant, self._embedder(connection))
            state = self._indexer.state(connection, tenant)
        return VectorCounts(
            made=made,
            waiting=waiting + state.pending,
            failed=failed + state.failed,
            shortened=shortened,
        )

    def engines(self, tenant: str) -> Mapping[str, str]:
        """Say for each search mode what answers it now, in words."""
        with self._database.read() as connection:
            vectors = self._indexer.state(connection, tenant).engine
            words = keyword_index(connection).engine
        parts = {"keyword": words, "semantic": vectors}
        found = {mode: parts[mode] for mode in parts if mode in self.modes}
        return found | ({"hybrid": " and ".join(found.values())} if len(found) > 1 else {})

    def generation(self, tenant: str) -> int:
        """Return a figure that grows with every committed change of the tenant's entries."""
        return generation_of(self._database, tenant)

    def forget(self, tenant: str) -> None:
        """Drop what is held in memory of a tenant."""
        self._search.forget(tenant)

    def _matches(
        self,
        connection: Connection,
        scope: Scope,
        attempts: Sequence[tuple[Mapping[str, Any], int]],
        limit: int,
    ) -> list[tuple[int, float]]:
        """Take more and more of the best matches, until enough of them are in scope.

        Looking up every match of common words costs several times what ranking them does.

        Args:
            attempts: What is bound to look up, and how many of the best matches to take.
        """
        query = _best_matches(keyword_index(connection), shape_of(scope))
        fits = filter_of(scope, fields=self._fields)
        query = query if fits is None else query.add_columns(fits.label("fits"))
        facts = facts_of(scope)
        rows: list[tuple[int, float]] = []
        for asked, size in attempts:
            found = connection.execute(query, {**facts, **asked, "size": size}).all()
            is_all = len(found) != size
            edge = 0.0 if is_all else found[-1][1]
            rows = [(row[0], row[1]) for row in found if row.is_in and row[-1] and row[1] > edge]
            if is_all or len(rows) >= limit:
                break
        return rows[:limit]


def _sizes(limit: int) -> tuple[int, ...]:
    """Return how many of the best matches to take in turn."""
    least = limit + _SPARE
    return least, 3 * least, 20 * least, _ALL


@lru_cache(MOST_STATEMENTS)
def _best_matches(index: KeywordIndex, shape: Shape) -> Select[Any]:
    """Return the query of the best `size` matches, and whether they are in scope."""
    best = index.best
    ties = (_E.updated_at.desc(), _E.id) if shape.turns is None else (best.c.number,)
    query = select(best, in_scope(shape).label("is_in")).outerjoin(
        memory_entries, _E.number == best.c.number
    )
    if shape.turns is not None:
        query = query.outerjoin(searchable, _S.number == best.c.number)
    return query.order_by(best.c.value.desc(), *ties)
