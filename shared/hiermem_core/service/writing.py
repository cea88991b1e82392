"""Storing, changing and removing entries: embed first, then one short transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.records import Kept, MadeVector, embedded_text
from hiermem_core.errors import HierMemError
from hiermem_core.models import events
from hiermem_core.models.entries import expiry_of
from hiermem_core.models.ids import new_id
from hiermem_core.models.moments import to_the_millisecond
from hiermem_core.models.results import Failure
from hiermem_core.service.checking import as_entry_draft, checked_draft, checked_fields
from hiermem_core.service.checking_vectors import check_embedding
from hiermem_core.service.derivation import remove_with_derived
from hiermem_core.service.ledger import Ledger
from hiermem_core.service.storing import (
    changed_entry,
    check_version,
    digest_of,
    entry_to_write,
    is_embedded,
    write_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hiermem_core.backends.records import EntryWrite, Text
    from hiermem_core.backends.restrictions import Restrictions
    from hiermem_core.models.entries import EntryDraft, MemoryEntry
    from hiermem_core.models.patterns import Pattern
    from hiermem_core.models.text import TextCleaner
    from hiermem_core.protocols import EntryWriter
    from hiermem_core.service.collaborators import Collaborators
    from hiermem_core.service.storing import Standing


_CLEARED_AT_ONCE = 1000


class EntryWriting:
    """Write entries of one tenant."""

    def __init__(self, shared: Collaborators, tenant_id: str) -> None:
        self._backend = shared.backend
        self._vectoriser = shared.vectoriser
        self._tenant = tenant_id
        self._clock = shared.clock
        self._merges = shared.merges
        self._metadata_limit = shared.metadata_limit
        self._redaction = shared.redaction
        self._tell = shared.tell
        self._go_on = shared.after_write

    def check(self, items: Sequence[Any]) -> tuple[dict[int, EntryDraft], list[Failure], int]:
        """Return the drafts that can be stored, by place, and the failures of the others.

        The last figure is how many code points of the drafts were replaced.
        """
        drafts: dict[int, EntryDraft] = {}
        failed = []
        cleaned = 0
        lengths: set[int] = set()
        for place, item in enumerate(items):
            cleaner = self._redaction.cleaner("entry", self._tenant)
            try:
                drafts[place] = self._checked(as_entry_draft(item, {}), cleaner, lengths)
                cleaned += cleaner.replaced
            except HierMemError as error:
                failed.append(Failure(place, id_of(item), error))
        return drafts, failed, cleaned

    def _checked(self, draft: EntryDraft, cleaner: TextCleaner, lengths: set[int]) -> EntryDraft:
        """Return a draft that holds every rule, its own vector's length included.

        Args:
            lengths: Of vectors that may be stored, as far as it is known.
        """
        ready = checked_draft(draft, cleaner, metadata_limit=self._metadata_limit)
        vector: Any = ready.embedding
        check_embedding(embedded_text(ready), vector)
        if vector is not None and vector.shape[-1] not in lengths:
            self._vectoriser.check_length(vector)
            lengths.add(vector.shape[-1])
        return ready

    def store_one(self, draft: EntryDraft) -> MemoryEntry:
        """Store one draft as given, and return the entry."""
        cleaner = self._redaction.cleaner("entry", self._tenant)
        ready = {0: self._checked(draft, cleaner, set())}
        stored, failed, _ = self.store(ready, cleaned=cleaner.replaced)
        if failed:
            raise failed[0].error
        return stored[0]

    def store(
        self, drafts: Mapping[int, EntryDraft], *, cleaned: int
    ) -> tuple[dict[int, MemoryEntry], list[Failure], list[str]]:
        """Store checked drafts in one transaction.

        Args:
            cleaned: Code points of them that were replaced.

        Returns:
            The entries by place, the failures, and the ids that wait for their vector.
        """
        vectors = self._vectors_of(drafts)
        now = to_the_millisecond(self._clock.now())
        stored: dict[int, MemoryEntry] = {}
        failed: list[Failure] = []
        with self._backend.write(self._tenant, now) as writer:
            ledger = Ledger(writer, merges=self._merges)
            ledger.open_for(drafts)
            for place, draft in drafts.items():
                try:
                    standing = ledger.standing(place, draft)
                    vector = vectors.get(place)
                    stored[place] = self._enter(writer, ledger, draft, standing, vector=vector)
                except HierMemError as error:
                    failed.append(Failure(place, draft.id, error))
            writer.put(ledger.writes)
        waiting = self._after_store(ledger.writes, cleaned if stored else 0)
        return stored, failed, waiting

    def _enter(
        self,
        writer: EntryWriter,
        ledger: Ledger,
        draft: EntryDraft,
        standing: Standing,
        *,
        vector: MadeVector | None,
    ) -> MemoryEntry:
        now = writer.now
        entry, old = entry_to_write(draft, standing, now=now, fresh_id=new_id(now))
        entry = ledger.within_sources(entry)
        writer.admit(entry, None if old is None else old.entry)
        awaits = self._vectoriser.awaits
        write = write_of(entry, old, vector, awaits=awaits, digest=standing.digest)
        ledger.record(write, old)
        return entry

    def learn(
        self, draft: EntryDraft, pattern_of: Callable[[MemoryEntry, Pattern | None], Pattern]
    ) -> Pattern:
        """Store an entry and the pattern it is the text of, in one transaction; return the latter.

        Args:
            pattern_of: Makes the pattern of the entry, and of the one that it had.
        """
        cleaner = self._redaction.cleaner("entry", self._tenant)
        drafts = {0: self._checked(draft, cleaner, set())}
        vectors = self._vectors_of(drafts)
        now = to_the_millisecond(self._clock.now())
        with self._backend.write(self._tenant, now) as writer:
            ledger = Ledger(writer, merges=False)
            ledger.open_for(drafts)
            standing = ledger.standing(0, drafts[0])
            entry = self._enter(writer, ledger, drafts[0], standing, vector=vectors.get(0))
            pattern = pattern_of(entry, writer.patterns({entry.id}).get(entry.id))
            writer.put([replace(write, pattern=pattern) for write in ledger.writes])
        self._after_store(ledger.writes, cleaner.replaced)
        return pattern

    def _vectors_of(self, drafts: Mapping[int, EntryDraft]) -> dict[int, MadeVector]:
        """Return vectors of the drafts that bring one or whose text is new, by place."""
        own = self._given({place: draft.embedding for place, draft in drafts.items()})
        texts = {place: embedded_text(it) for place, it in drafts.items() if place not in own}
        texts = {place: text for place, text in texts.items() if text}
        if self._vectoriser.is_on and texts:
            missing = {place: drafts[place] for place in texts}
            with self._backend.read(self._tenant, self._clock.now()) as reader:
                ledger = Ledger(reader, merges=self._merges)
                ledger.open_for(missing)
            wanted = {
                place: texts[place]
                for place, draft in missing.items()
                if not is_embedded(ledger.standing(place, draft), draft)
            }
            own |= self._vectoriser.vectors_of(wanted)
        return own

    def _given(self, vectors: Mapping[int, Any]) -> dict[int, MadeVector]:
        """Return the vectors that are given; one of each length is checked."""
        checked: dict[int, MadeVector] = {}
        made: dict[int, MadeVector] = {}
        for place, vector in vectors.items():
            if vector is None:
                continue
            length = vector.shape[-1]
            if length not in checked:
                checked[length] = self._vectoriser.given(vector)
            made[place] = MadeVector(vector, by=checked[length].by)
        return made

    def change(
        self, changes: Sequence[tuple[str, Mapping[str, Any], int | None]]
    ) -> tuple[dict[str, MemoryEntry | None], list[Failure]]:
        """Change fields of entries in one transaction; absent ids give `None`.

        Without a field nothing changes.
        """
        ready: dict[int, dict[str, Any]] = {}
        failed: list[Failure] = []
        answers: dict[str, MemoryEntry | None] = {one[0]: None for one in changes}
        cleaned = 0
        for place, (entry_id, given, _) in enumerate(changes):
            cleaner = self._redaction.cleaner("entry", self._tenant)
            try:
                fields = checked_fields(given, cleaner, metadata_limit=self._metadata_limit)
                if fields.get("embedding") is not None:
                    self._vectoriser.check_length(fields["embedding"])
                ready[place] = fields
                cleaned += cleaner.replaced
            except HierMemError as error:
                failed.append(Failure(place, entry_id, error))
        vectors, texts = self._changed_vectors(changes, ready)
        now = to_the_millisecond(self._clock.now())
        with self._backend.write(self._tenant, now) as writer:
            ledger = Ledger(writer, merges=self._merges)
            ledger.open_ids(changes[place][0] for place in ready)
            for place, fields in ready.items():
                entry_id, _, expected = changes[place]
                old = ledger.find(entry_id)
                if old is None:
                    continue
                try:
                    check_version(old.entry, expected)
                    if not fields:
                        answers[entry_id] = old.entry
                        continue
                    entry = ledger.within_sources(changed_entry(old.entry, fields, now=now))
                    check_embedding(embedded_text(entry), fields.get("embedding"))
                    ledger.check_key(entry)
                    writer.admit(entry, old.entry)
                except HierMemError as error:
                    failed.append(Failure(place, entry_id, error))
                    continue
                is_right = texts.get(place, embedded_text(entry)) == embedded_text(entry)
                vector = vectors.get(place) if is_right else None
                self._record_change(ledger, entry, old, vector, fields)
                answers[entry_id] = entry
            writer.put(ledger.writes)
        for write in ledger.writes:
            self._tell(events.EntryUpdated(self._tenant, write.entry.id, write.entry.version))
        self._after_write(_waiting(ledger.writes), cleaned if ledger.writes else 0)
        failed.sort(key=lambda one: one.index)
        return answers, failed

    def _record_change(
        self,
        ledger: Ledger,
        entry: MemoryEntry,
        old: Kept,
        vector: MadeVector | None,
        fields: Mapping[str, Any],
    ) -> None:
        drops_own = "embedding" in fields and vector is None
        standing = Kept(old.number, old.entry, has_vector=False) if drops_own else old
        awaits = self._vectoriser.awaits
        digest = digest_of(entry) if self._merges else None
        write = write_of(entry, standing, vector, awaits=awaits, digest=digest)
        ledger.record(write, old)

    def _changed_vectors(
        self, changes: Sequence[tuple[str, Mapping[str, Any], int | None]], ready: Mapping[int, Any]
    ) -> tuple[dict[int, MadeVector], dict[int, Text]]:
        """Return vectors by place, and the text that each was made from which was not given."""
        own = self._given({place: fields.get("embedding") for place, fields in ready.items()})
        wanted: dict[int, Text] = {}
        with self._backend.read(self._tenant, self._clock.now()) as reader:
            known = reader.by_id({changes[place][0] for place in ready})
        for place, fields in ready.items():
            old = known.get(changes[place][0])
            if place in own or old is None:
                continue
            text = embedded_text(replace(old.entry, **_said(fields)))
            if text and (text != embedded_text(old.entry) or "embedding" in fields):
                wanted[place] = text
        made = self._vectoriser.vectors_of(wanted) if self._vectoriser.is_on else {}
        return own | made, wanted

    def remove(self, ids: Sequence[str]) -> dict[str, bool]:
        """Remove entries; say for each id whether there was one."""
        with self._backend.write(self._tenant, self._clock.now()) as writer:
            found = writer.by_id(set(ids))
            gone = remove_with_derived(writer, {k.number: i for i, k in found.items()})
        for entry_id in gone.values():
            self._tell(events.EntryDeleted(self._tenant, entry_id))
        self._after_write([], 0)
        return {entry_id: entry_id in found for entry_id in ids}

    def remove_key(self, namespace: str, key: str) -> bool:
        """Remove the entry that bears a key at the moment of the removal; say whether one did."""
        place = (namespace, key)
        with self._backend.write(self._tenant, self._clock.now()) as writer:
            kept = writer.by_key({place}).get(place)
            chosen = {} if kept is None else {kept.number: kept.entry.id}
            gone = remove_with_derived(writer, chosen)
        for entry_id in gone.values():
            self._tell(events.EntryDeleted(self._tenant, entry_id))
        if gone:
            self._after_write([], 0)
        return bool(gone)

    def write(
        self,
        items: Sequence[Any],
        *,
        deleting: Sequence[tuple[str, str]],
        refreshing: Sequence[tuple[str, str]],
    ) -> list[str]:
        """Store, remove and refresh in one transaction; return the ids of what was stored."""
        drafts, failed, cleaned = self.check(items)
        if failed:
            raise failed[0].error
        vectors = self._vectors_of(drafts)
        now = to_the_millisecond(self._clock.now())
        with self._backend.write(self._tenant, now) as writer:
            ledger = Ledger(writer, merges=self._merges)
            ledger.open_for(drafts)
            ids = [
                self._enter(
                    writer,
                    ledger,
                    draft,
                    ledger.standing(place, draft),
                    vector=vectors.get(place),
                ).id
                for place, draft in drafts.items()
            ]
            names = {*deleting, *refreshing}
            others = writer.by_key(names) if names else {}
            named = {name: kept for name, kept in others.items() if kept.entry.id not in ids}
            gone = {named[name].number: named[name].entry.id for name in deleting if name in named}
            writer.put(ledger.writes)
            gone = remove_with_derived(writer, gone)
            writer.refresh(
                {
                    kept.number: moment
                    for name in refreshing
                    if (kept := named.get(name)) is not None
                    and kept.number not in gone
                    and (moment := expiry_of(now, kept.entry.ttl)) is not None
                }
            )
        for write in ledger.writes:
            self._tell(events.EntryStored(self._tenant, write.entry.id, write.entry.version))
        for entry_id in gone.values():
            self._tell(events.EntryDeleted(self._tenant, entry_id))
        self._after_write(_waiting(ledger.writes), cleaned)
        return ids

    def clear(self, restrictions: Restrictions) -> int:
        """Remove every entry within restrictions, in steps; return how many."""
        removed = 0
        while True:
            with self._backend.write(self._tenant, self._clock.now()) as writer:
                found = writer.listed(restrictions, limit=_CLEARED_AT_ONCE)
                kept = writer.by_id({entry.id for entry in found})
                remove_with_derived(writer, {one.number: i for i, one in kept.items()})
            removed += len(found)
            if len(found) < _CLEARED_AT_ONCE:
                self._go_on(self._tenant)
                return removed

    def _after_store(self, writes: Sequence[EntryWrite], cleaned: int) -> list[str]:
        """Tell of entries that were stored; return the ids of those that wait for their vector."""
        for write in writes:
            self._tell(events.EntryStored(self._tenant, write.entry.id, write.entry.version))
        waiting = _waiting(writes)
        self._after_write(waiting, cleaned)
        return waiting

    def _after_write(self, waiting: Sequence[str], cleaned: int) -> None:
        if cleaned:
            self._tell(events.TextSanitised(self._tenant, cleaned))
        if waiting:
            self._tell(events.IndexPending(self._tenant, len(waiting)))
        self._go_on(self._tenant)


def id_of(item: Any) -> str | None:
    """Return the id of what was to be stored, where it has one."""
    own = item.get("id") if isinstance(item, Mapping) else getattr(item, "id", None)
    return own if isinstance(own, str) else None


def _waiting(writes: Sequence[EntryWrite]) -> list[str]:
    """Return the ids of the entries that wait for their vector."""
    return [write.entry.id for write in writes if write.awaits_vector]


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of changed fields that are embedded."""
    return {name: fields[name] for name in ("content", "passages") if name in fields}
