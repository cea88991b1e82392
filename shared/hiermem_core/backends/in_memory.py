"""The reference backend: dictionaries, and the rules said plainly. Everything ends with it."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from hiermem_core.backends.matrices import rounded, unit_of
from hiermem_core.backends.records import (
    Derivation,
    EntryCounts,
    Kept,
    Scored,
    Settled,
    VectorCounts,
    Waiting,
    embedded_text,
)
from hiermem_core.models.namespaces import is_within
from hiermem_core.models.plain import dump_json
from hiermem_core.ranking.words import bm25, plain_words, query_words
from hiermem_core.vector_index.retrying import Retry, after_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from hiermem_core.backends.records import Attempt, EntryWrite, MadeVector, Vector
    from hiermem_core.backends.restrictions import Restrictions, Scope
    from hiermem_core.models.entries import MemoryEntry


@dataclass(frozen=True, slots=True)
class _Row:
    entry: MemoryEntry
    vector: MadeVector | None
    digest: str | None
    retry: Retry | None
    error: str = ""


@dataclass(slots=True)
class _Store:
    """What is kept of one tenant."""

    rows: dict[int, _Row] = field(default_factory=dict)
    generation: int = 0


class InMemoryBackend:
    """Keep entries in dictionaries, in the memory of this process only."""

    name = "in_memory"
    modes = frozenset({"keyword", "semantic", "hybrid"})

    def __init__(self) -> None:
        self._stores: dict[str, _Store] = {}
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
        with self._lock:
            store = self._store(tenant)
            writer = InMemoryWriter(dict(store.rows), now, self._next_number, self._counts)
            yield writer
            store.rows = writer.rows
            store.generation += writer.has_changed

    @contextmanager
    def locked(self, *, counting: str | None = None) -> Iterator[dict[str, _Store]]:
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
            entries = [row.entry for row in self._store(tenant).rows.values()]
        living = [entry for entry in entries if _lives(entry, now)]
        return EntryCounts(
            by_namespace=dict(sorted(Counter(entry.namespace for entry in living).items())),
            by_type=dict(sorted(Counter(str(entry.type) for entry in living).items())),
            bytes=sum(len((e.content + dump_json(e.metadata)).encode()) for e in living),
            expired=len(entries) - len(living),
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

    def _store(self, tenant: str) -> _Store:
        return self._stores.setdefault(tenant, _Store())

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def _in_scope(self, scope: Scope) -> dict[int, _Row]:
        if scope.entries is None:
            return {}
        with self._lock:
            rows = dict(self._store(scope.tenant).rows)
        return {
            number: row
            for number, row in rows.items()
            if _lives(row.entry, scope.now) and scope.entries.admits(row.entry)
        }


class InMemoryReader:
    """The living entries of one tenant at one moment; see `EntryReader`."""

    def __init__(self, rows: dict[int, _Row], now: datetime) -> None:
        self.rows = rows
        self._now = now

    def by_id(self, ids: Collection[str]) -> Mapping[str, Kept]:
        """Return those that exist."""
        return {kept.entry.id: kept for kept in self._living() if kept.entry.id in ids}

    def by_key(self, keys: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Kept]:
        """Return those that exist, by namespace and key."""
        living = {(k.entry.namespace, k.entry.key or ""): k for k in self._living() if k.entry.key}
        return {key: living[key] for key in keys if key in living}

    def by_digest(self, digests: Collection[str]) -> Mapping[str, Kept]:
        """Return for each digest the first entry that bears it."""
        found: dict[str, Kept] = {}
        for kept in self._living():
            digest = self.rows[kept.number].digest
            if digest is not None and digest in digests:
                found.setdefault(digest, kept)
        return found

    def by_number(self, numbers: Collection[int]) -> Mapping[int, Kept]:
        """Return those that exist, by row number."""
        return {kept.number: kept for kept in self._living() if kept.number in set(numbers)}

    def listed(
        self, restrictions: Restrictions, *, limit: int, offset: int = 0
    ) -> Sequence[MemoryEntry]:
        """Return the entries within, newest change first, then by id."""
        within = [kept.entry for kept in self._living() if restrictions.admits(kept.entry)]
        return sorted(within, key=_newest_first)[offset : offset + limit]

    def namespaces(self, under: str | None, *, limit: int, offset: int = 0) -> Sequence[str]:
        """Return, sorted, the namespaces at or below `under` that hold an entry."""
        names = {kept.entry.namespace for kept in self._living()}
        below = [name for name in names if under is None or is_within(name, under)]
        return sorted(below)[offset : offset + limit]

    def vectors_of(self, number: int) -> Sequence[tuple[float, ...]]:
        """Return the vectors of a row, as given."""
        vector = self.rows[number].vector
        return [] if vector is None else [tuple(one) for one in vector.each.tolist()]

    def _living(self) -> list[Kept]:
        return [
            Kept(number, row.entry, row.vector is not None)
            for number, row in self.rows.items()
            if _lives(row.entry, self._now)
        ]


class InMemoryWriter(InMemoryReader):
    """A write transaction on a copy; see `EntryWriter`."""

    def __init__(
        self,
        rows: dict[int, _Row],
        now: datetime,
        next_number: Callable[[], int],
        counts: Callable[[MadeVector], bool],
    ) -> None:
        super().__init__(rows, now)
        self.has_changed = False
        self._next_number = next_number
        self._counts = counts

    def put(self, writes: Sequence[EntryWrite]) -> None:
        """Write entries; an expired one that bears the same id or key makes room."""
        names = {(write.entry.id, write.entry.namespace, write.entry.key) for write in writes}
        for number, row in list(self.rows.items()):
            if not _lives(row.entry, self._now) and _bears_a_name(row.entry, names):
                del self.rows[number]
        for write in writes:
            number = self._next_number() if write.number is None else write.number
            vector = self.rows[number].vector if write.keeps_vector else write.vector
            is_late = vector is not None and not write.keeps_vector and not self._counts(vector)
            vector = None if is_late else vector
            retry = Retry(0, 0) if write.awaits_vector or is_late else None
            self.rows[number] = _Row(write.entry, vector, write.digest, retry)
            self.has_changed = True

    def remove(self, numbers: Collection[int]) -> None:
        """Remove rows with everything that hangs on them."""
        for number in numbers:
            del self.rows[number]
            self.has_changed = True

    def remove_expired(self, *, limit: int) -> tuple[int, int]:
        """Remove up to `limit` expired entries; return how many, and how many are left."""
        expired = [n for n, row in self.rows.items() if not _lives(row.entry, self._now)]
        self.remove(expired[:limit])
        return len(expired[:limit]), len(expired[limit:])

    def refresh(self, moments: Mapping[int, datetime]) -> None:
        """Have rows expire at other moments; nothing else of them changes."""
        for number, moment in moments.items():
            row = self.rows[number]
            self.rows[number] = replace(row, entry=replace(row.entry, expires_at=moment))
            self.has_changed = True

    def traces(
        self, restrictions: Restrictions, ids: Collection[str] | None = None
    ) -> Mapping[int, str]:
        """Return row number and id of all entries within, expired ones too."""
        wanted = None if ids is None else set(ids)
        return {
            number: row.entry.id
            for number, row in self.rows.items()
            if restrictions.admits(row.entry) and (wanted is None or row.entry.id in wanted)
        }

    def derivations(self) -> Mapping[str, Derivation]:
        """Return by id how each entry was derived that was, expired ones too."""
        return {
            row.entry.id: Derivation(number, row.entry.derived_from)
            for number, row in self.rows.items()
            if row.entry.derived_from
        }

    def rederive(self, sources: Mapping[int, tuple[str, ...]]) -> None:
        """Name other sources for rows; each entry's version grows."""
        for number, ids in sources.items():
            row = self.rows[number]
            version = row.entry.version + 1
            entry = replace(row.entry, derived_from=ids, updated_at=self._now, version=version)
            self.rows[number] = replace(row, entry=entry)
            self.has_changed = True

    def vector_count(self) -> int:
        """Return how many vectors are kept."""
        return sum(row.vector is not None for row in self.rows.values())


def _lives(entry: MemoryEntry, now: datetime) -> bool:
    return entry.expires_at is None or now < entry.expires_at


def _newest_first(entry: MemoryEntry) -> tuple[float, str]:
    return (-entry.updated_at.timestamp(), entry.id)


def _bears_a_name(entry: MemoryEntry, names: Collection[tuple[str, str, str | None]]) -> bool:
    return any(
        entry.id == entry_id or (key is not None and (entry.namespace, entry.key) == (space, key))
        for entry_id, space, key in names
    )


def _body(entry: MemoryEntry) -> str:
    return "\n".join([entry.content, *entry.tags])


def _cosines(rows: Mapping[int, _Row], vector: Vector) -> dict[int, float]:
    unit = unit_of(vector)
    return {
        number: max(float(rounded(np.asarray(unit_of(one) @ unit))) for one in row.vector.each)
        for number, row in rows.items()
        if row.vector is not None and row.vector.values.shape[-1] == len(unit)
    }


def _best(
    rows: Mapping[int, _Row], figures: Mapping[int, float], limit: int
) -> tuple[tuple[int, float], ...]:
    order = sorted(figures, key=lambda n: (-figures[n], _newest_first(rows[n].entry)))
    return tuple((number, figures[number]) for number in order[:limit])


def _failed_again(retry: Retry, attempt: Attempt, now_ms: int) -> Retry:
    again = after_failure(retry.attempts, now_ms=now_ms)
    return replace(again, attempts=retry.attempts) if attempt.is_down else again
