"""Entries in a database: rows and keywords in SQL, vectors beside them and in an index."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import select

from hiermem_core.backends.keywords import (
    by_rank,
    expression_of,
    found_bm25,
    keywords,
    matching,
    rows_with,
)
from hiermem_core.backends.records import EntryCounts, Scored, VectorCounts
from hiermem_core.backends.sql_counts import entry_counts, vectors_made
from hiermem_core.backends.sql_reader import SqlReader
from hiermem_core.backends.sql_restrictions import entry_numbers, in_scope, turn_numbers
from hiermem_core.backends.sql_writer import SqlWriter
from hiermem_core.backends.tenants import generation_of, tenant_number
from hiermem_core.storage.tables import memory_entries, searchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import Connection, Select

    from hiermem_core.backends.indexing import Indexer
    from hiermem_core.backends.records import Attempt, Settled, Vector, Waiting
    from hiermem_core.backends.restrictions import Scope
    from hiermem_core.backends.vector_rows import VectorRows
    from hiermem_core.backends.vector_search import VectorSearch
    from hiermem_core.backends.waiting import WaitingRows
    from hiermem_core.storage.database import Database

ROWS_OF_TENANT = "SELECT count(*) FROM searchable WHERE tenant = ?"

_E, _S = memory_entries.c, searchable.c


class SqlBackend:
    """The backends `sqlite`, `chroma` and `hybrid`: the same rows, other ways to search them.

    Keyword rows and vectors are kept whatever the modes, so that a location opened with another
    backend has lost nothing.

    Args:
        embedder: Gives the name of the embedder whose vectors count, as of a snapshot.
        fields: Metadata fields that have an index.
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
        fields: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.modes = modes
        self._database = database
        self._vectors = vectors
        self._search = search
        self._waiting = waiting
        self._indexer = indexer
        self._embedder = embedder
        self._fields = fields

    @contextmanager
    def read(self, tenant: str, now: datetime) -> Iterator[SqlReader]:
        """Read on one snapshot."""
        with self._database.read() as connection:
            embedder = self._embedder(connection)
            yield SqlReader(connection, tenant, now, embedder=embedder, fields=self._fields)

    @contextmanager
    def write(self, tenant: str, now: datetime) -> Iterator[SqlWriter]:
        """Write in one transaction."""
        with self._database.write() as connection:
            yield SqlWriter(
                connection,
                tenant,
                now,
                embedder=self._embedder(connection),
                fields=self._fields,
                vectors=self._vectors,
            )

    def has_rows(self, scope: Scope) -> bool:
        """Tell whether there is a row in scope."""
        with self._database.read() as connection:
            entries = entry_numbers(scope, fields=self._fields).limit(1)
            if connection.execute(entries).first() is not None:
                return True
            found = connection.execute(turn_numbers(scope).limit(1)) if scope.has_turns else None
            return found is not None and found.first() is not None

    def common_words(self, tenant: str, share: float) -> Callable[[str], bool]:
        """Return what tells whether a word stands in more than this share of a tenant's rows."""

        def is_common(word: str) -> bool:
            with self._database.read() as connection:
                number = tenant_number(connection, tenant)
                if number is None:
                    return False
                rows = self._database.fact(ROWS_OF_TENANT, (tenant,), inside=connection)
                most = max(1, round(share * rows))
                return rows_with(connection, number, word, limit=most + 1) > most

        return is_common

    def keyword(self, scope: Scope, question: str, *, limit: int) -> Scored:
        """Return the rows with words of the question, by BM25, best first."""
        with self._database.read() as connection:
            tenant = tenant_number(connection, scope.tenant)
            expression = None if tenant is None else expression_of(question, scope, tenant)
            if expression is None:
                return Scored((), "keyword index: nothing to look up")
            query = self._matches(scope, limit)
            found = connection.execute(query, {"expression": expression})
            return Scored(tuple((row[0], row[1]) for row in found), "keyword index")

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
        parts = {"keyword": "SQLite FTS5, BM25", "semantic": vectors}
        found = {mode: parts[mode] for mode in parts if mode in self.modes}
        return found | ({"hybrid": " and ".join(found.values())} if len(found) > 1 else {})

    def generation(self, tenant: str) -> int:
        """Return a figure that grows with every committed change of the tenant's entries."""
        return generation_of(self._database, tenant)

    def forget(self, tenant: str) -> None:
        """Drop what is held in memory of a tenant."""
        self._search.forget(tenant)

    def _matches(self, scope: Scope, limit: int) -> Select[tuple[int, float]]:
        query = (
            select(keywords.c.rowid, found_bm25)
            .select_from(keywords)
            .join(searchable, _S.number == keywords.c.rowid)
            .outerjoin(memory_entries, _E.number == keywords.c.rowid)
            .where(matching, in_scope(scope, fields=self._fields))
        )
        ties = (keywords.c.rowid,) if scope.has_turns else (_E.updated_at.desc(), _E.id)
        return query.order_by(by_rank, *ties).limit(limit)
