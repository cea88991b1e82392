"""A batch of writes, each seeing what those before it did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hiermem_core.backends.records import EntryWrite, Kept
from hiermem_core.errors import KeyConflictError
from hiermem_core.service.derivation import trust_of_turn
from hiermem_core.service.storing import Standing, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hiermem_core.models.entries import EntryDraft, MemoryEntry
    from hiermem_core.protocols import EntryReader

_UNNUMBERED = 0


class Ledger:
    """The living entries a batch meets, as its own writes change them.

    Args:
        merges: Entries that say the same as a living one are looked for.
    """

    def __init__(self, reader: EntryReader, *, merges: bool) -> None:
        self._reader = reader
        self._merges = merges
        self._by_id: dict[str, Kept] = {}
        self._by_key: dict[tuple[str, str], Kept] = {}
        self._by_digest: dict[str, Kept] = {}
        self._digests: dict[int, str | None] = {}
        self._borne: dict[str, str] = {}
        self._writes: dict[str, EntryWrite] = {}

    @property
    def writes(self) -> Sequence[EntryWrite]:
        """What is to be written, one for each entry; none takes a key another still holds."""
        return tuple(self._writes.values())

    def open_for(self, drafts: Mapping[int, EntryDraft]) -> None:
        """Read what the drafts may meet."""
        self._digests = {place: self._digest(draft) for place, draft in drafts.items()}
        ids = {draft.id for draft in drafts.values() if draft.id is not None}
        keys = {(str(d.namespace), d.key) for d in drafts.values() if d.key is not None}
        digests = {digest for digest in self._digests.values() if digest is not None}
        self._by_id.update(self._reader.by_id(ids) if ids else {})
        self._by_key.update(self._reader.by_key(keys) if keys else {})
        self._by_digest.update(self._reader.by_digest(digests) if digests else {})
        self._borne = {kept.entry.id: digest for digest, kept in self._by_digest.items()}
        for kept in (*self._by_key.values(), *self._by_digest.values()):
            self._by_id.setdefault(kept.entry.id, kept)

    def open_ids(self, ids: Iterable[str]) -> None:
        """Read the entries of some ids."""
        self._by_id.update(self._reader.by_id(set(ids)))

    def standing(self, place: int, draft: EntryDraft) -> Standing:
        """Return what a draft meets that the ledger was opened for, at its place."""
        key = None if draft.key is None else (str(draft.namespace), draft.key)
        digest = self._digests[place]
        return Standing(
            by_id=None if draft.id is None else self._by_id.get(draft.id),
            by_key=None if key is None else self._by_key.get(key),
            twin=None if digest is None else self._by_digest.get(digest),
            digest=digest,
        )

    def find(self, entry_id: str) -> Kept | None:
        """Return the entry of an id, as it stands by now."""
        return self._by_id.get(entry_id)

    def within_sources(self, entry: MemoryEntry) -> MemoryEntry:
        """Return an entry that is trusted no further than anything it was derived from."""
        if not entry.derived_from:
            return entry
        self.open_ids(set(entry.derived_from) - self._by_id.keys())
        known = {i: self._by_id[i] for i in entry.derived_from if i in self._by_id}
        others = set(entry.derived_from) - known.keys()
        roles = self._reader.turn_roles(others) if others else {}
        trusts = [kept.entry.trust for kept in known.values()]
        trust = min([entry.trust, *trusts, *map(trust_of_turn, roles.values())])
        return entry if trust == entry.trust else replace(entry, trust=trust)

    def check_key(self, entry: MemoryEntry) -> None:
        """Raise `KeyConflictError` where another entry bears the entry's key."""
        if entry.key is None:
            return
        key = (entry.namespace, entry.key)
        holder = self._by_key.get(key) or self._reader.by_key({key}).get(key)
        if holder is None or holder.entry.id == entry.id:
            return
        now = self._by_id.get(holder.entry.id, holder).entry
        if (now.namespace, now.key) == key:
            raise KeyConflictError(entry.id, entry.key)

    def record(self, write: EntryWrite, old: Kept | None) -> None:
        """Take a write into the batch, in place of an earlier one of the same entry."""
        entry = write.entry
        earlier = self._writes.pop(entry.id, None)
        if earlier is not None:
            write = _joined(earlier, write)
        self._writes[entry.id] = write
        has_vector = write.keeps_vector or write.vector is not None
        kept = Kept(old.number if old else _UNNUMBERED, entry, has_vector)
        if old is not None and old.entry.key is not None:
            self._by_key.pop((old.entry.namespace, old.entry.key), None)
        digest = self._borne.pop(entry.id, None)
        if digest is not None:
            del self._by_digest[digest]
        self._by_id[entry.id] = kept
        if entry.key is not None:
            self._by_key[entry.namespace, entry.key] = kept
        if write.digest is not None and write.digest not in self._by_digest:
            self._by_digest[write.digest] = kept
            self._borne[entry.id] = write.digest

    def _digest(self, draft: EntryDraft) -> str | None:
        return digest_of(draft) if self._merges and draft.id is None else None


def _joined(earlier: EntryWrite, later: EntryWrite) -> EntryWrite:
    """Return one write for two of an entry: the later, on the row of the earlier."""
    later = replace(later, number=earlier.number)
    if later.keeps_vector:
        return replace(
            later,
            vector=earlier.vector,
            keeps_vector=earlier.keeps_vector,
            awaits_vector=earlier.awaits_vector,
        )
    return later
