"""What becomes of an entry that is stored or changed. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from hiermem_core.backends.records import EntryWrite, Kept, embedded_text
from hiermem_core.errors import KeyConflictError, VersionConflictError
from hiermem_core.models.entries import DEFAULT_TRUST, MERGED_TYPES, MemoryEntry, expiry_of
from hiermem_core.models.plain import dump_json
from hiermem_core.models.text import folded
from hiermem_core.service.checking import SOURCES_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from hiermem_core.backends.records import MadeVector
    from hiermem_core.models.entries import EntryDraft, EntrySource

Outcome = Literal["stored", "replaced", "merged"]

_DIGEST_DIGITS = 32
"""128 bits: the index of digests is read and written all over, so it is kept small."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The living entries that a draft may meet: under its id, under its key, saying the same.

    Attributes:
        digest: What the draft shares with those that say the same; `None`: it is never merged.
    """

    by_id: Kept | None = None
    by_key: Kept | None = None
    twin: Kept | None = None
    digest: str | None = None


def entry_to_write(
    draft: EntryDraft, standing: Standing, *, now: datetime, fresh_id: str
) -> tuple[MemoryEntry, Kept | None]:
    """Return the entry that results from storing a draft, and the one whose place it takes.

    Raises:
        KeyConflictError: Id and key name two different entries.
    """
    old = _named(draft, standing)
    if old is None and standing.twin is not None:
        return _counted_again(standing.twin.entry, draft, now), standing.twin
    entry = MemoryEntry(
        id=old.entry.id if old else draft.id or fresh_id,
        content=draft.content,
        namespace=str(draft.namespace),
        type=draft.type,
        key=draft.key,
        tags=tuple(draft.tags),
        metadata=draft.metadata,
        passages=None if draft.passages is None else tuple(draft.passages),
        created_at=old.entry.created_at if old else draft.created_at or now,
        updated_at=now,
        ttl=draft.ttl,
        expires_at=expiry_of(now, draft.ttl),
        version=old.entry.version + 1 if old else 1,
        times_stored=old.entry.times_stored + 1 if old else 1,
        source=draft.source,
        trust=_trusted(draft)[1],
        derived_from=tuple(draft.derived_from),
        user_id=draft.user_id,
    )
    return entry, old


def changed_entry(entry: MemoryEntry, changes: Mapping[str, Any], *, now: datetime) -> MemoryEntry:
    """Return an entry with exactly the given fields changed."""
    values = {name: value for name, value in changes.items() if name != "embedding"}
    if "ttl" in values:
        values["expires_at"] = expiry_of(now, values["ttl"])
    if "trust" in values and values["trust"] is None:
        values["trust"] = DEFAULT_TRUST[entry.source]
    return replace(entry, **values, updated_at=now, version=entry.version + 1)


def check_version(entry: MemoryEntry, expected: int | None) -> None:
    """Raise `VersionConflictError` where an entry has another version than expected."""
    if expected not in (None, entry.version):
        raise VersionConflictError(expected=expected or 0, actual=entry.version)


def is_embedded(standing: Standing, draft: EntryDraft) -> bool:
    """Tell whether what a draft says has its vector already, where it will be stored."""
    old = standing.by_id or standing.by_key or standing.twin
    return old is not None and old.has_vector and embedded_text(old.entry) == embedded_text(draft)


def write_of(
    entry: MemoryEntry,
    old: Kept | None,
    vector: MadeVector | None,
    *,
    awaits: bool,
    digest: str | None,
) -> EntryWrite:
    """Return how to write an entry; its vector stays where its text did and none is given.

    Args:
        awaits: A vector that is missing is made later.
        digest: By which those that say the same are recognised; `None`: it is never merged.
    """
    text = embedded_text(entry)
    is_same = old is not None and embedded_text(old.entry) == text
    keeps = is_same and vector is None and old is not None and old.has_vector
    return EntryWrite(
        entry=entry,
        number=None if old is None else old.number,
        vector=vector,
        keeps_vector=keeps,
        awaits_vector=awaits and vector is None and not keeps and bool(text),
        digest=digest,
    )


def digest_of(entry: MemoryEntry | EntryDraft) -> str | None:
    """Return what an entry shares with those that say the same; `None`: it is never merged.

    Content is compared after NFC and with runs of white space as one space; letter case, digits
    and signs count.
    """
    if entry.type not in MERGED_TYPES or entry.key is not None:
        return None
    said_where = [folded(entry.content), entry.type, str(entry.namespace), entry.user_id]
    facts = [*said_where, list(entry.tags), _sorted(entry.metadata)]
    facts += [] if entry.passages is None else [list(entry.passages)]
    return hashlib.sha256(dump_json(facts).encode()).hexdigest()[:_DIGEST_DIGITS]


def _sorted(value: Any) -> Any:
    """Return a JSON value with the keys of every object in order."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _named(draft: EntryDraft, standing: Standing) -> Kept | None:
    by_id, by_key = standing.by_id, standing.by_key
    if by_key is not None and draft.id not in (None, by_key.entry.id):
        raise KeyConflictError(str(draft.id), str(draft.key))
    return by_id or by_key


def _counted_again(entry: MemoryEntry, draft: EntryDraft, now: datetime) -> MemoryEntry:
    """Return an entry stored once more.

    It lives as long as the longer-lived of both, is trusted as far as the more trusted, and stands
    by itself if either does.
    """
    expires_at = expiry_of(now, draft.ttl)
    ttl, later = entry.ttl, entry.expires_at
    if later is not None and (expires_at is None or expires_at > later):
        ttl, later = draft.ttl, expires_at
    source, trust = max((entry.source, entry.trust), _trusted(draft), key=lambda one: one[1])
    return replace(
        entry,
        ttl=ttl,
        expires_at=later,
        source=source,
        trust=trust,
        derived_from=_joined(entry.derived_from, draft.derived_from),
        times_stored=entry.times_stored + 1,
        version=entry.version + 1,
        updated_at=now,
    )


def _trusted(draft: EntryDraft) -> tuple[EntrySource, float]:
    """Return where a draft comes from, and how far it is trusted."""
    return draft.source, DEFAULT_TRUST[draft.source] if draft.trust is None else draft.trust


def _joined(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    """Return the sources of what was derived twice; none where it was once stored by itself."""
    if not one or not other:
        return ()
    return tuple(dict.fromkeys((*one, *other)))[:SOURCES_LIMIT]
