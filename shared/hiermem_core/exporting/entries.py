"""Storing the entries of an export as they were: ids, times, versions and vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from hiermem_core.backends.records import EntryWrite, Kept, MadeVector, embedded_text
from hiermem_core.errors import QuotaExceededError
from hiermem_core.exporting.forms import array_of
from hiermem_core.exporting.report import AT_HAND, QUOTA, ReadItem
from hiermem_core.models import events
from hiermem_core.models.moments import to_the_millisecond
from hiermem_core.service.storing import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from hiermem_core.exporting.forms import ReadEntry, Vectors
    from hiermem_core.exporting.report import Outcome
    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.events import Event
    from hiermem_core.models.patterns import Pattern
    from hiermem_core.protocols import Backend, Clock, EntryReader
    from hiermem_core.service.vectorising import Vectoriser

OnConflict = Literal["skip", "overwrite", "fail"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What becomes of an entry.

    Attributes:
        entry: To be written; `None`: nothing is.
        old: In whose place.
    """

    outcome: Outcome | ReadItem
    entry: MemoryEntry | None = None
    old: Kept | None = None


class EntryTaking:
    """Store entries of exports.

    Args:
        tell: Takes the events of a change, after its commit.
    """

    def __init__(
        self,
        backend: Backend,
        vectoriser: Vectoriser,
        *,
        clock: Clock,
        tell: Callable[[Event], None],
    ) -> None:
        self._backend = backend
        self._vectoriser = vectoriser
        self._clock = clock
        self._tell = tell

    def take(
        self,
        tenant: str,
        entries: Sequence[ReadEntry],
        *,
        on_conflict: OnConflict,
        vectors_by: str | None,
        dry_run: bool,
    ) -> list[Outcome | ReadItem]:
        """Store entries in one transaction; return what became of each.

        Args:
            vectors_by: The name under which their vectors are stored; `None`: they are made anew.
            dry_run: Store nothing.
        """
        now = to_the_millisecond(self._clock.now())
        if dry_run:
            with self._backend.read(tenant, now) as reader:
                return [one.outcome for one in _choices(reader, entries, on_conflict, now)]
        writes: list[EntryWrite] = []
        with self._backend.write(tenant, now) as writer:
            choices = _choices(writer, entries, on_conflict, now)
            for place, (read, choice) in enumerate(zip(entries, choices, strict=True)):
                if choice.entry is None:
                    continue
                try:
                    writer.admit(choice.entry, None if choice.old is None else choice.old.entry)
                except QuotaExceededError as error:
                    failed = ReadItem("entry", read.entry.id, "failed", QUOTA, str(error))
                    choices[place] = Choice(failed)
                    continue
                writes.append(self._write_of(read, choice.entry, choice.old, vectors_by))
            if writes:
                writer.put(writes)
        for write in writes:
            self._tell(events.EntryStored(tenant, write.entry.id, write.entry.version))
        return [one.outcome for one in choices]

    def _write_of(
        self, read: ReadEntry, entry: MemoryEntry, old: Kept | None, vectors_by: str | None
    ) -> EntryWrite:
        text = embedded_text(entry)
        vector = None
        if read.vectors is not None and vectors_by is not None:
            vector = made_vector(read.vectors, vectors_by, is_one=isinstance(text, str))
        is_same = old is not None and old.has_vector and embedded_text(old.entry) == text
        keeps = is_same and vector is None
        return EntryWrite(
            entry=entry,
            number=None if old is None else old.number,
            vector=vector,
            keeps_vector=keeps,
            awaits_vector=self._vectoriser.awaits and vector is None and not keeps and bool(text),
            digest=digest_of(entry) if read.merges else None,
            pattern=None if read.pattern is None else replace(read.pattern, id=entry.id),
        )


def made_vector(vectors: Vectors, name: str, *, is_one: bool) -> MadeVector:
    """Return vectors as they are stored beside the others of a name."""
    values = array_of(vectors, is_one=is_one)
    return MadeVector(values, is_whole=vectors.is_whole, by=name)


def _choices(
    reader: EntryReader, entries: Sequence[ReadEntry], on_conflict: OnConflict, now: datetime
) -> list[Choice]:
    ids = {read.entry.id for read in entries}
    keys = {
        (read.entry.namespace, read.entry.key) for read in entries if read.entry.key is not None
    }
    by_id = dict(reader.by_id(ids))
    by_key = dict(reader.by_key(keys)) if keys else {}
    standing = {kept.entry.id for kept in (*by_id.values(), *by_key.values())}
    patterns = reader.patterns(standing) if any(read.pattern for read in entries) else {}
    written: set[str] = set()
    choices = []
    for read in entries:
        one = read.entry
        old = by_id.get(one.id)
        holder = None if one.key is None else by_key.get((one.namespace, one.key))
        choice = choice_of(
            one,
            old,
            holder,
            has_its_pattern=_has_its_pattern(read, old or holder, patterns),
            on_conflict=on_conflict,
            now=now,
        )
        if choice.entry is not None and choice.entry.id in written:  # twice in a file of others
            choice = Choice(_item(one, "skipped", "duplicate", "the export holds it twice"))
        if choice.entry is not None:
            written.add(choice.entry.id)
            kept = Kept(choice.old.number if choice.old else 0, choice.entry, has_vector=False)
            by_id[choice.entry.id] = kept
            if choice.entry.key is not None:
                by_key[choice.entry.namespace, choice.entry.key] = kept
        choices.append(choice)
    return choices


def _has_its_pattern(read: ReadEntry, old: Kept | None, known: Mapping[str, Pattern]) -> bool:
    if read.pattern is None or old is None:
        return read.pattern is None
    return replace(read.pattern, id=old.entry.id) == known.get(old.entry.id)


def choice_of(
    entry: MemoryEntry,
    old: Kept | None,
    holder: Kept | None,
    *,
    has_its_pattern: bool = True,
    on_conflict: OnConflict,
    now: datetime,
) -> Choice:
    """Return what becomes of an entry. Pure.

    Args:
        old: The entry of its id.
        holder: The entry that bears its key.
        has_its_pattern: What is there is the text of the same pattern, or it is of none itself.
    """
    if entry.expires_at is not None and entry.expires_at <= now:
        return Choice(_item(entry, "skipped", "expired", "its time to live is over"))
    standing = old or holder
    if standing is None:
        return Choice("imported", entry)
    if has_its_pattern and replace(entry, id=standing.entry.id) == standing.entry:
        return Choice(_item(entry, "skipped", AT_HAND, ""))
    is_apart = holder is not None and holder.entry.id != standing.entry.id
    if on_conflict == "overwrite" and not is_apart:
        version = max(entry.version, standing.entry.version + 1)
        changed = replace(entry, id=standing.entry.id, version=version)
        return Choice("updated", changed, standing)
    what = "another entry bears its key" if is_apart or old is None else "it was changed since"
    remedy = "delete one of them" if is_apart else "add --on-conflict overwrite to replace it"
    return Choice(_item(entry, "skipped", "conflict", f"{what}; {remedy}"))


def _item(entry: MemoryEntry, outcome: Literal["skipped"], reason: str, detail: str) -> ReadItem:
    return ReadItem("entry", entry.id, outcome, reason, detail)
