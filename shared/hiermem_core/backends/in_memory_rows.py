"""Rows in dictionaries: one tenant's entries at one moment, and writing them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hiermem_core.backends.records import Derivation, Kept, stored_bytes
from hiermem_core.models.metadata import copied
from hiermem_core.models.namespaces import is_within
from hiermem_core.models.patterns import standing
from hiermem_core.models.quotas import Usage
from hiermem_core.operations import touched
from hiermem_core.vector_index.retrying import Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from hiermem_core.backends.quotas import Gate
    from hiermem_core.backends.records import EntryWrite, MadeVector
    from hiermem_core.backends.restrictions import Restrictions
    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.patterns import Pattern


@dataclass(frozen=True, slots=True)
class Row:
    """A row: an entry, and what hangs on it."""

    entry: MemoryEntry
    vector: MadeVector | None
    digest: str | None
    retry: Retry | None
    error: str = ""
    pattern: Pattern | None = None
    is_stale: bool = False


@dataclass(slots=True)
class Store:
    """What is kept of one tenant.

    Attributes:
        usage: The writes of its current minute.
    """

    rows: dict[int, Row] = field(default_factory=dict)
    generation: int = 0
    usage: Usage = field(default_factory=Usage)


class InMemoryReader:
    """The living entries of one tenant at one moment; see `EntryReader`."""

    def __init__(self, rows: dict[int, Row], now: datetime) -> None:
        self.rows = rows
        self.now = now
        self.turn_roles: Callable[[Collection[str]], Mapping[str, str]] = lambda _: {}

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
        return sorted(within, key=newest_first)[offset : offset + limit]

    def namespaces(self, under: str | None, *, limit: int, offset: int = 0) -> Sequence[str]:
        """Return, sorted, the namespaces at or below `under` that hold an entry."""
        names = {kept.entry.namespace for kept in self._living()}
        below = [name for name in names if under is None or is_within(name, under)]
        return sorted(below)[offset : offset + limit]

    def vectors_of(self, number: int) -> Sequence[tuple[float, ...]]:
        """Return the vectors of a row, as given."""
        vector = self.rows[number].vector
        return [] if vector is None else [tuple(one) for one in vector.each.tolist()]

    def patterns(self, ids: Collection[str]) -> Mapping[str, Pattern]:
        """Return by id the patterns of living entries that are the text of one."""
        return {one.id: one for one in self._living_patterns() if one.id in ids}

    def listed_patterns(self, *, min_confidence: float, limit: int) -> Sequence[Pattern]:
        """Return the patterns of living entries, the most confident first, then by name."""
        sure = [one for one in self._living_patterns() if one.confidence >= min_confidence]
        return sorted(sure, key=lambda one: (-one.confidence, one.name.encode()))[:limit]

    def pattern_count(self) -> int:
        """Return how many patterns are kept, those of expired entries too."""
        return sum(row.pattern is not None for row in self.rows.values())

    def _living_patterns(self) -> list[Pattern]:
        found = (self.rows[kept.number].pattern for kept in self._living())
        return [pattern for one in found if (pattern := _apart(one)) is not None]

    def _living(self) -> list[Kept]:
        return [
            Kept(number, row.entry, row.vector is not None)
            for number, row in self.rows.items()
            if lives(row.entry, self.now)
        ]


class InMemoryWriter(InMemoryReader):
    """A write transaction on a copy; see `EntryWriter`."""

    def __init__(
        self,
        rows: dict[int, Row],
        now: datetime,
        next_number: Callable[[], int],
        counts: Callable[[MadeVector], bool],
    ) -> None:
        super().__init__(rows, now)
        self.has_changed = False
        self.usage = Usage()
        self.gate: Gate | None = None
        self._next_number = next_number
        self._counts = counts

    def admit(self, entry: MemoryEntry, old: MemoryEntry | None) -> None:
        """Count an entry that is to be put in place of another, if the quota has room for it."""
        if self.gate is not None:
            size = stored_bytes(entry) - (0 if old is None else stored_bytes(old))
            self.gate.admit(entries=int(old is None), size=size)

    def counted(self) -> Usage:
        """Return what is kept, and the writes of the current minute."""
        living = [kept.entry for kept in self._living()]
        return replace(self.usage, entries=len(living), bytes=sum(map(stored_bytes, living)))

    def settle(self, usage: Usage) -> None:
        """Note the writes that were made."""
        self.usage = usage

    def put(self, writes: Sequence[EntryWrite]) -> None:
        """Write entries and patterns; an expired one of the same id or key makes room."""
        if self.gate is not None:
            self.gate.settle()
        names = {(write.entry.id, write.entry.namespace, write.entry.key) for write in writes}
        for number, row in list(self.rows.items()):
            if not lives(row.entry, self.now) and _bears_a_name(row.entry, names):
                del self.rows[number]
        touched(write.entry.id for write in writes)
        for write in writes:
            number = self._next_number() if write.number is None else write.number
            old = self.rows.get(number)
            pattern = standing(write.pattern or (old.pattern if old else None), write.entry)
            pattern = _apart(pattern)
            vector = self.rows[number].vector if write.keeps_vector else write.vector
            is_late = vector is not None and not write.keeps_vector and not self._counts(vector)
            vector = None if is_late else vector
            retry = Retry(0, 0) if write.awaits_vector or is_late else None
            self.rows[number] = Row(write.entry, vector, write.digest, retry, pattern=pattern)
            self.has_changed = True

    def put_pattern(self, pattern: Pattern) -> None:
        """Write a pattern that is there anew; its entry stays as it is."""
        kept = self.by_id({pattern.id})[pattern.id]
        touched((pattern.id,))
        self.rows[kept.number] = replace(self.rows[kept.number], pattern=_apart(pattern))

    def remove(self, numbers: Collection[int]) -> None:
        """Remove rows with everything that hangs on them."""
        touched(self.rows[number].entry.id for number in numbers)
        for number in numbers:
            del self.rows[number]
            self.has_changed = True

    def remove_expired(self, *, limit: int) -> tuple[int, int]:
        """Remove up to `limit` expired entries; return how many, and how many are left."""
        expired = [n for n, row in self.rows.items() if not lives(row.entry, self.now)]
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
        """Name other sources for rows, which are stale then; each entry's version grows."""
        for number, ids in sources.items():
            row = self.rows[number]
            version = row.entry.version + 1
            entry = replace(row.entry, derived_from=ids, updated_at=self.now, version=version)
            self.rows[number] = replace(row, entry=entry, is_stale=True)
            self.has_changed = True

    def vector_count(self) -> int:
        """Return how many vectors are kept."""
        return sum(row.vector is not None for row in self.rows.values())


def lives(entry: MemoryEntry, now: datetime) -> bool:
    """Tell whether an entry is not past its expiry."""
    return entry.expires_at is None or now < entry.expires_at


def newest_first(entry: MemoryEntry) -> tuple[float, str]:
    """Return what sorts entries by their newest change, then by id."""
    return (-entry.updated_at.timestamp(), entry.id)


def _apart(pattern: Pattern | None) -> Pattern | None:
    """Return a pattern that shares nothing a caller could change."""
    return None if pattern is None else replace(pattern, data=copied(pattern.data))


def _bears_a_name(entry: MemoryEntry, names: Collection[tuple[str, str, str | None]]) -> bool:
    return any(
        entry.id == entry_id or (key is not None and (entry.namespace, entry.key) == (space, key))
        for entry_id, space, key in names
    )
