"""The reference backend: dictionaries, and the rules said plainly. Everything ends with it."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hiermem_core.backends.in_memory_rows import (
    InMemoryReader,
    InMemoryWriter,
    Row,
    Store,
    lives,
    newest_first,
)
from hiermem_core.backends.matrices import rounded, unit_of
from hiermem_core.backends.quotas import Gate, Quotas
from hiermem_core.backends.records import (
    EntryCounts,
    Scored,
    Settled,
    VectorCounts,
    Waiting,
    embedded_text,
)
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.plain import dump_json
from hiermem_core.models.quotas import Usage
from hiermem_core.ranking.words import bm25, plain_words, query_words
from hiermem_core.vector_index.retrying import Retry, after_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from hiermem_core.backends.records import Attempt, MadeVector, Vector
    from hiermem_core.backends.restrictions import Scope
    from hiermem_core.models.entries import MemoryEntry


class InMemoryBackend:
    """Keep entries in dictionaries, in the memory of this process only."""

    name = "in_memory"
    modes = frozenset({"keyword", "semantic", "hybrid"})

    def __init__(
        self,
        quotas: Quotas | None = None,
        turn_roles: Callable[[str, Collection[str]], Mapping[str, str]] = lambda _tenant, _ids: {},
    ) -> None:
        self._turn_roles = turn_roles
        self._quotas = quotas or Quotas(None, lambda _: None)
        self._stores: dict[str, Store] = {}
        self._lock = threading.RLock()
        self._last_number = 0
        self._counting = ""

    @contextmanager
    def read(self, tenant: str, now: datetime) -> Iterator[InMemoryReader]:
        """Read on one snapshot."""
        with self._lock:
            rows = dict(self._store(tenant).rows)
        yield InMemoryReader(rows, now)

    @contextmanager
    def write(self, tenant: str, now: datetime) -> Iterator[InMemoryWriter]:
        """Write in one transaction."""
        with self._quotas.telling(tenant) as rejected, self._lock:
            store = self._store(tenant)
            writer = InMemoryWriter(dict(store.rows), now, self._next_number, self._counts)
            writer.usage = store.usage
            writer.turn_roles = partial(self._turn_roles, tenant)
            writer.gate = Gate(
                self._quotas.quota,
                to_milliseconds(now),
                usage=writer.counted,
                expired=Usage,
                settle=writer.settle,
                rejected=rejected,
            )
            yield writer
            store.rows = writer.rows
            store.generation += writer.has_changed
            store.usage = writer.usage

    @contextmanager
    def locked(self, *, counting: str | None = None) -> Iterator[dict[str, Store]]:
        """Look after all that is kept, while nobody else does; for reindex and repair.

        Args:
            counting: The name of the vectors that count from then on.
        """
        with self._lock:
            yield self._stores
            self._counting = self._counting if counting is None else counting

    def has_rows(self, scope: Scope) -> bool:
        """Tell whether there is a row in scope."""
        return bool(self._in_scope(scope))

    def keyword(self, scope: Scope, question: str, *, limit: int) -> Scored:
        """Return the rows with words of the question, by BM25, best first."""
        rows = self._in_scope(scope)
        bodies = [plain_words(_body(row.entry)) for row in rows.values()]
        values = bm25(query_words(question), bodies)
        found = {number: value for number, value in zip(rows, values, strict=True) if value > 0}
        return Scored(_best(rows, found, limit), "BM25 over every entry")

    def nearest(self, scope: Scope, vector: Vector, *, limit: int) -> Scored:
        """Return the rows with the nearest vectors, by cosine, best first."""
        rows = self._in_scope(scope)
        return Scored(_best(rows, _cosines(rows, vector), limit), "cosine with every entry")

    def cosines(self, scope: Scope, vector: Vector, rows: Iterable[int]) -> Mapping[int, float]:
        """Return the cosine of each of these rows that has a vector."""
        within = self._in_scope(scope)
        return _cosines({number: within[number] for number in rows if number in within}, vector)

    def waiting(self, tenant: str, *, limit: int, due_ms: int | None = None) -> Waiting:
        """Return up to `limit` rows that wait for their vector, and what is embedded of them."""
        with self._lock:
            texts = {
                number: embedded_text(row.entry)
                for number, row in self._store(tenant).rows.items()
                if row.retry is not None
                and not row.retry.is_failed
                and (due_ms is None or row.retry.due_at <= due_ms)
            }
        rows = tuple(texts)[:limit]
        return Waiting(rows, {number: texts[number] for number in rows})

    def settle(
        self, tenant: str, waiting: Waiting, tried: Mapping[int, Attempt], *, now_ms: int
    ) -> Settled:
        """Store the vectors of rows whose text is still the same, and note the failures."""
        made = lost = 0
        with self._lock:
            rows = self._store(tenant).rows
            for number, attempt in tried.items():
                row = rows.get(number)
                if row is None or row.retry is None:
                    continue
                if attempt.vector is None:
                    retry = _failed_again(row.retry, attempt, now_ms)
                    row = replace(row, retry=retry, error=attempt.error)
                    lost += row.retry is not None and row.retry.is_failed
                elif embedded_text(row.entry) == waiting.texts[number] and self._counts(
                    attempt.vector
                ):
                    row = replace(row, retry=None, vector=attempt.vector)
                    made += 1
                rows[number] = row
            self._store(tenant).generation += bool(made)
        return Settled(made, lost, is_idle=not self.waiting(tenant, limit=1).rows)

    def entry_counts(self, tenant: str, now: datetime) -> EntryCounts:
        """Return what the tenant keeps."""
        with self._lock:
            rows = list(self._store(tenant).rows.values())
        alive = [row for row in rows if lives(row.entry, now)]
        living = [row.entry for row in alive]
        return EntryCounts(
            by_namespace=dict(sorted(Counter(entry.namespace for entry in living).items())),
            by_type=dict(sorted(Counter(str(entry.type) for entry in living).items())),
            bytes=sum(len((e.content + dump_json(e.metadata)).encode()) for e in living),
            expired=len(rows) - len(alive),
            patterns=sum(row.pattern is not None for row in alive),
        )

    def vector_counts(self, tenant: str) -> VectorCounts:
        """Return how the tenant's rows stand with their vectors."""
        with self._lock:
            rows = list(self._store(tenant).rows.values())
        vectors = [row.vector for row in rows if row.vector is not None]
        retries = [row.retry for row in rows if row.retry is not None]
        failed = sum(retry.is_failed for retry in retries)
        shortened = sum(not vector.is_whole for vector in vectors)
        return VectorCounts(len(vectors), len(retries) - failed, failed, shortened)

    def engines(self, tenant: str) -> Mapping[str, str]:
        """Say for each search mode what answers it now, in words."""
        del tenant
        return dict.fromkeys(sorted(self.modes), "every entry is looked at, in memory")

    def generation(self, tenant: str) -> int:
        """Return a figure that grows with every committed change of the tenant's entries."""
        with self._lock:
            return self._store(tenant).generation

    def _counts(self, vector: MadeVector) -> bool:
        """Tell whether a vector stands beside the stored ones; a reindex may have changed them."""
        return not self._counting or vector.by in ("", self._counting)

    def _store(self, tenant: str) -> Store:
        return self._stores.setdefault(tenant, Store())

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def _in_scope(self, scope: Scope) -> dict[int, Row]:
        if scope.entries is None:
            return {}
        with self._lock:
            rows = dict(self._store(scope.tenant).rows)
        return {
            number: row
            for number, row in rows.items()
            if not row.is_stale and lives(row.entry, scope.now) and scope.entries.admits(row.entry)
        }


def _body(entry: MemoryEntry) -> str:
    return "\n".join([entry.content, *entry.tags])


def _cosines(rows: Mapping[int, Row], vector: Vector) -> dict[int, float]:
    unit = unit_of(vector)
    return {
        number: max(float(rounded(np.asarray(unit_of(one) @ unit))) for one in row.vector.each)
        for number, row in rows.items()
        if row.vector is not None and row.vector.values.shape[-1] == len(unit)
    }


def _best(
    rows: Mapping[int, Row], figures: Mapping[int, float], limit: int
) -> tuple[tuple[int, float], ...]:
    order = sorted(figures, key=lambda n: (-figures[n], newest_first(rows[n].entry)))
    return tuple((number, figures[number]) for number in order[:limit])


def _failed_again(retry: Retry, attempt: Attempt, now_ms: int) -> Retry:
    again = after_failure(retry.attempts, now_ms=now_ms)
    return replace(again, attempts=retry.attempts) if attempt.is_down else again
