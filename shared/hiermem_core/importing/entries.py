"""Storing a batch of entry records in one transaction, and what became of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from hiermem_core.errors import (
    BackendError,
    BackendUnavailableError,
    QuotaExceededError,
)
from hiermem_core.importing.comparing import verdict_on
from hiermem_core.importing.records import skipped
from hiermem_core.importing.report import ImportItem
from hiermem_core.models import events
from hiermem_core.models.entries import DEFAULT_TRUST, MemoryEntry
from hiermem_core.models.patterns import Pattern
from hiermem_core.service.storing import write_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from hiermem_core.backends.records import EntryWrite, Kept, MadeVector, Vector
    from hiermem_core.errors import HierMemError
    from hiermem_core.importing.comparing import Verdict
    from hiermem_core.importing.importer import OnConflict
    from hiermem_core.importing.records import EntryRecord
    from hiermem_core.importing.report import Reason
    from hiermem_core.protocols import EntryReader
    from hiermem_core.service.collaborators import Collaborators

Outcome = Literal["imported", "updated"] | ImportItem

_EDITED = "the entry there is another by now; add --on-conflict overwrite"
_SAME = 0.999
"""Cosine of two vectors that one embedder made of one text; machines differ in the last digits."""

_TAKEN = "another entry bears its key; delete or rename that one"


@dataclass(frozen=True, slots=True)
class _Standing:
    """What the tenant has where a record belongs.

    Attributes:
        record: Under another name, where it is a pattern whose own is taken.
    """

    record: EntryRecord
    verdict: Verdict
    old: Kept | None


class EntryStoring:
    """Store entry records of a tenant, or tell what storing them would do."""

    def __init__(
        self,
        shared: Collaborators,
        tenant: str,
        now: datetime,
        on_conflict: OnConflict,
        *,
        dry_run: bool,
    ) -> None:
        self._shared = shared
        self._tenant = tenant
        self._now = now
        self._overwrites = on_conflict == "overwrite"
        self._dry_run = dry_run
        self._owned: dict[str, bool] = {}

    def store(self, records: Sequence[EntryRecord]) -> list[Outcome]:
        """Store records in one transaction; a record that the storage refuses fails alone.

        Raises:
            BackendUnavailableError: The storage is full, locked or away. Nothing was stored.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        with self._shared.backend.read(self._tenant, self._now) as reader:
            standings = _standings(reader, records)
        wanted = {
            place: standing.record
            for place, standing in enumerate(standings)
            if self._is_to_write(standing)
        }
        if self._dry_run or not wanted:
            return [
                self._outcome(record, standing)
                for record, standing in zip(records, standings, strict=True)
            ]
        vectors = self._vectors_of(wanted, standings)
        try:
            return self._write(records, vectors)
        except BackendUnavailableError:
            raise
        except BackendError as error:
            if len(records) == 1:
                return [_refused(records[0], error, "store_error")]
        return [outcome for record in records for outcome in self.store([record])]

    def _write(
        self, records: Sequence[EntryRecord], vectors: dict[int, MadeVector]
    ) -> list[Outcome]:
        writes: dict[str, EntryWrite] = {}
        outcomes: list[Outcome] = []
        with self._shared.backend.write(self._tenant, self._now) as writer:
            standings = _standings(writer, records)
            for place, (record, standing) in enumerate(zip(records, standings, strict=True)):
                entry = _entry(standing.record, standing.old)
                if self._is_to_write(standing) and entry.id not in writes:
                    try:
                        writer.admit(entry, None if standing.old is None else standing.old.entry)
                    except QuotaExceededError as error:
                        outcomes.append(_refused(record, error, "quota_exceeded"))
                        continue
                    write = write_of(
                        entry,
                        standing.old,
                        vectors.get(place),
                        awaits=self._shared.vectoriser.awaits,
                        digest=None,
                    )
                    pattern = pattern_of(standing.record, entry)
                    writes[entry.id] = replace(write, pattern=pattern)
                outcomes.append(self._outcome(record, standing))
            if writes:
                writer.put(list(writes.values()))
        self._tell(list(writes.values()))
        return outcomes

    def _tell(self, writes: Sequence[EntryWrite]) -> None:
        for write in writes:
            entry = write.entry
            kind = events.EntryStored if entry.version == 1 else events.EntryUpdated
            self._shared.tell(kind(self._tenant, entry.id, entry.version))
        waiting = sum(write.awaits_vector for write in writes)
        if waiting:
            self._shared.tell(events.IndexPending(self._tenant, waiting))
        if writes:
            self._shared.after_write(self._tenant)

    def _is_to_write(self, standing: _Standing) -> bool:
        return standing.verdict == "new" or (self._overwrites and standing.verdict == "other")

    def _outcome(self, record: EntryRecord, standing: _Standing) -> Outcome:
        match standing.verdict:
            case "new":
                return "imported"
            case "unchanged":
                return skipped(record.ref, "unchanged", kind=record.kind)
            case "other" if self._overwrites:
                return "updated"
        detail = _EDITED if standing.verdict == "other" else _TAKEN
        return ImportItem(record.ref, "skipped", "conflict", detail, kind=record.kind)

    def _vectors_of(
        self, records: dict[int, EntryRecord], standings: Sequence[_Standing]
    ) -> dict[int, MadeVector]:
        vectoriser = self._shared.vectoriser
        if not vectoriser.is_on:
            return {}
        made: dict[int, MadeVector] = {
            place: vectoriser.given(np.asarray(record.vector, np.float32))
            for place, record in records.items()
            if record.vector is not None and self._is_own(record)
        }
        texts = {
            place: record.content
            for place, record in records.items()
            if place not in made and not _has_vector(standings[place].old, record)
        }
        return made | vectoriser.vectors_of(texts)

    def _is_own(self, record: EntryRecord) -> bool:
        """Tell whether the vectors of a namespace are by the tenant's embedder.

        The first of them is made anew and compared; what it costs is one text a namespace.
        """
        known = self._owned.get(record.namespace)
        if known is None:
            made = self._shared.vectoriser.vectors_of({0: record.content}).get(0)
            known = made is not None and _is_same(made.values, record.vector or ())
            self._owned[record.namespace] = known
        return known


def _standings(reader: EntryReader, records: Sequence[EntryRecord]) -> list[_Standing]:
    ids = {record.id for record in records}
    keys = {(record.namespace, record.key) for record in records if record.key is not None}
    others = (record.renamed() for record in records if record.pattern is not None)
    keys |= {(record.namespace, str(record.key)) for record in others}
    by_id, by_key = reader.by_id(ids), reader.by_key(keys) if keys else {}
    known = {kept.entry.id for kept in (*by_id.values(), *by_key.values())}
    patterns = reader.patterns(known) if any(one.pattern for one in records) else {}
    found = []
    for record in records:
        standing = _standing(record, by_id, by_key, patterns)
        if standing.verdict != "unchanged" and _is_renamed(record, by_id, by_key):
            standing = _standing(record.renamed(), by_id, by_key, patterns)
        found.append(standing)
    return found


def _is_renamed(
    record: EntryRecord, by_id: Mapping[str, Kept], by_key: Mapping[tuple[str, str], Kept]
) -> bool:
    """Tell whether a record is a pattern whose name another entry has, or had when it came."""
    if record.pattern is None or record.key is None:
        return False
    own, named = by_id.get(record.id), by_key.get((record.namespace, record.key))
    was_renamed = own is not None and own.entry.key == record.renamed().key
    return was_renamed or (named is not None and named.entry.id != record.id)


def _standing(
    record: EntryRecord,
    by_id: Mapping[str, Kept],
    by_key: Mapping[tuple[str, str], Kept],
    patterns: Mapping[str, Pattern],
) -> _Standing:
    own = by_id.get(record.id)
    named = None if record.key is None else by_key.get((record.namespace, record.key))
    verdict = verdict_on(
        record, None if own is None else own.entry, None if named is None else named.entry
    )
    old = own or named
    if verdict == "unchanged" and old is not None and record.pattern is not None:
        known = patterns.get(old.entry.id)
        verdict = "unchanged" if known == pattern_of(record, old.entry) else "other"
    return _Standing(record, verdict, old)


def pattern_of(record: EntryRecord, entry: MemoryEntry) -> Pattern | None:
    """Return the pattern of a record whose entry is this one; `None` of no pattern."""
    facts = record.pattern
    if facts is None:
        return None
    return Pattern(
        id=entry.id,
        name=str(entry.key),
        data=facts.data,
        confidence=facts.confidence,
        uses=facts.uses,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        user_id=entry.user_id,
    )


def _entry(record: EntryRecord, old: Kept | None) -> MemoryEntry:
    created_at = record.created_at or (old.entry.created_at if old else record.clock_at)
    expires_at = record.expires_at
    ttl = None if expires_at is None else (expires_at - created_at).total_seconds()
    return MemoryEntry(
        id=old.entry.id if old else record.id,
        content=record.content,
        namespace=record.namespace,
        type=record.type,
        key=record.key,
        tags=record.tags,
        metadata=record.metadata,
        created_at=created_at,
        updated_at=record.updated_at or created_at,
        ttl=ttl if ttl is None or ttl > 0 else None,
        expires_at=expires_at,
        version=old.entry.version + 1 if old else 1,
        times_stored=old.entry.times_stored if old else 1,
        source="import",
        trust=DEFAULT_TRUST["import"],
        derived_from=(),
        user_id=record.user_id,
    )


def _is_same(one: Vector, other: Sequence[float]) -> bool:
    """Tell whether two vectors are of one text by one embedder."""
    given = np.asarray(other, np.float64)
    if one.shape != given.shape:
        return False
    lengths = float(np.linalg.norm(one) * np.linalg.norm(given))
    return lengths > 0 and float(one @ given) / lengths >= _SAME


def _has_vector(old: Kept | None, record: EntryRecord) -> bool:
    return old is not None and old.has_vector and old.entry.content == record.content


def _refused(record: EntryRecord, error: HierMemError, reason: Reason) -> ImportItem:
    return ImportItem(record.ref, "failed", reason, str(error), kind=record.kind)
