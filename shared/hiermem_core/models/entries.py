"""Entries: what is remembered for long."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from hiermem_core.models.displayed import Displayed
from hiermem_core.models.metadata import copied
from hiermem_core.models.moments import to_the_millisecond

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

MemoryType = Literal["episodic", "semantic", "procedural", "working"]
EntrySource = Literal["user", "assistant", "tool", "import", "system"]
Dedup = Literal["content", "off"]

MEMORY_TYPES: tuple[str, ...] = get_args(MemoryType)
ENTRY_SOURCES: tuple[str, ...] = get_args(EntrySource)

DEFAULT_TRUST: Mapping[str, float] = {
    "system": 1.0,
    "user": 0.8,
    "import": 0.5,
    "assistant": 0.5,
    "tool": 0.3,
}
"""How far an entry is trusted by where it comes from, if nothing else is said."""

MERGED_TYPES: frozenset[str] = frozenset({"semantic", "procedural"})
"""Types of which a repeated entry is counted instead of stored again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDraft:
    """An entry to be stored.

    Attributes:
        content: At least one character that is not blank.
        id: Replaces the entry of this id; a fresh, time-ordered one is made when `None`.
        namespace: A path, `"a/b"` or `("a", "b")`.
        key: At most one living entry of a namespace bears it; storing under it again replaces.
        tags: Any texts, compared exactly.
        metadata: A JSON object; filters ask for its top-level keys.
        passages: Texts that stand for it in meaning, each with a vector of its own; the best of
            them is its score. `None`: its content; empty: it is never found by meaning.
        embedding: Your own vector instead of the embedder's, of the same length; with passages,
            one a passage.
        created_at: Aware; the clock's now when `None`. Later stores keep the first.
        ttl: Seconds until the entry is absent; `None`: never.
        trust: 0 to 1; by `source` when `None`.
        derived_from: Ids of the entries and turns it was made from; forgetting all of them
            forgets it.
    """

    content: str
    id: str | None = None
    namespace: str | Sequence[str] = "default"
    type: MemoryType = "semantic"
    key: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    passages: Sequence[str] | None = None
    embedding: Sequence[float] | Sequence[Sequence[float]] | None = None
    created_at: datetime | None = None
    ttl: float | None = None
    source: EntrySource = "user"
    trust: float | None = None
    derived_from: Sequence[str] = ()
    user_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry(Displayed):
    """One long-term memory, as stored.

    Attributes:
        namespace: Its path, as text.
        passages: What is embedded in place of the content, each apart; `None`: the content is.
        embedding: Only where it was asked for; with passages, a vector each.
        ttl: Seconds it was to live when its time to live was set; `expires_at` decides.
        version: From 1; grows with every committed change.
        times_stored: How often the same was stored.
    """

    id: str
    content: str
    namespace: str
    type: MemoryType
    key: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    passages: tuple[str, ...] | None = None
    embedding: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = None
    created_at: datetime
    updated_at: datetime
    ttl: float | None
    expires_at: datetime | None
    version: int
    times_stored: int
    source: EntrySource
    trust: float
    derived_from: tuple[str, ...]
    user_id: str | None

    def draft(self) -> EntryDraft:
        """Return what stores this entry again, under its id."""
        return EntryDraft(
            content=self.content,
            id=self.id,
            namespace=self.namespace,
            type=self.type,
            key=self.key,
            tags=self.tags,
            metadata=self.metadata,
            passages=self.passages,
            embedding=self.embedding,
            created_at=self.created_at,
            ttl=self.ttl,
            source=self.source,
            trust=self.trust,
            derived_from=self.derived_from,
            user_id=self.user_id,
        )


class EntryUpdate(TypedDict, total=False):
    """The fields of an entry that change; what is not named stays, and `None` is a value."""

    content: str
    type: MemoryType
    key: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    passages: Sequence[str] | None
    embedding: Sequence[float] | Sequence[Sequence[float]] | None
    ttl: float | None
    trust: float | None
    derived_from: Sequence[str]
    user_id: str | None


def expiry_of(moment: datetime, ttl: float | None) -> datetime | None:
    """Return when an entry whose time to live is set at `moment` is absent.

    Raises:
        OverflowError: That is beyond the calendar.
    """
    return None if ttl is None else to_the_millisecond(moment + timedelta(seconds=ttl))


def copy_of(entry: MemoryEntry) -> MemoryEntry:
    """Return an entry that shares nothing a caller could change."""
    return replace(entry, metadata=copied(entry.metadata))
