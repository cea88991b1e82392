"""Queries, and the hits that answer them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from hiermem_core.models.displayed import Displayed
from hiermem_core.models.entries import MemoryEntry
from hiermem_core.models.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from hiermem_core.models.entries import EntrySource, MemoryType
    from hiermem_core.models.warnings import ContextWarning

Mode = Literal["exact", "prefix", "tag", "keyword", "semantic", "hybrid"]
Fusion = Literal["scores", "rrf"]
RecallThreads = Literal["this", "all"]

EVERYWHERE: frozenset[str] = frozenset({"exact", "prefix", "tag"})
"""Modes that need no index of their own, so that every backend has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuery:
    """What is asked of the entries of a tenant. Every restriction applies before the limit.

    Attributes:
        text: Plain text, no operators; without it the query lists, newest change first.
        mode: How `text` is matched; default: the best mode the backend has.
        vector: Stands for the text in semantic and hybrid mode; it is not embedded then.
        namespace: Entries there and below; `None`: everywhere.
        subtree: False: only in the namespace itself.
        filter: On metadata, such as `{"year": {"$gte": 2024}}`.
        tags: All of them must be there.
        threshold: The least score; `None` and 0 keep all.
        fusion: How hybrid mode joins its two legs.
        explain: Tell how each hit came by its score.
    """

    text: str | None = None
    mode: Mode | None = None
    vector: Sequence[float] | None = None
    namespace: str | Sequence[str] | None = None
    subtree: bool = True
    filter: Mapping[str, Any] | None = None
    type: MemoryType | None = None
    tags: Sequence[str] = ()
    key: str | None = None
    source: EntrySource | None = None
    min_trust: float | None = None
    user_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None
    limit: int = 10
    offset: int = 0
    threshold: float | None = None
    fusion: Fusion = "scores"
    explain: bool = False
    include_embedding: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(MemoryEntry):
    """An entry with its score.

    Attributes:
        score: 0 to 1, higher is better.
        explanation: The terms of the score, the raw `cosine` and `bm25`, and the `plan`; empty
            unless asked for.
    """

    score: float
    explanation: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit(Displayed):
    """A recalled turn of a thread with its score.

    Attributes:
        part: Turns of one stretch of a thread without a long pause share it.
        author: The speaker's name where the turn has one, else `None`.
    """

    thread_id: str
    id: str
    seq: int
    part: int
    role: str
    author: str | None
    content: str
    created_at: datetime
    score: float
    explanation: Mapping[str, Any] = field(default_factory=dict)


T = TypeVar("T")


class ResultList(Displayed, Sequence[T]):
    """An immutable sequence of hits, best first, with what is weaker than asked for."""

    def __init__(self, hits: Iterable[T] = (), *, warnings: Iterable[ContextWarning] = ()) -> None:
        self._hits = tuple(hits)
        self.warnings = tuple(warnings)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        """Return the hit at a place, or those of a slice."""
        return self._hits[place]

    def __len__(self) -> int:
        """Return the number of hits."""
        return len(self._hits)

    def __eq__(self, other: object) -> bool:
        """Compare hits and warnings."""
        if not isinstance(other, ResultList):
            return NotImplemented
        return (self._hits, self.warnings) == (other._hits, other.warnings)

    def __hash__(self) -> int:
        """Raise, as hits hold metadata."""
        raise TypeError("hits cannot be hashed; use their ids")

    def __repr__(self) -> str:
        """Show the hits a line each, scores first."""
        lines = [f"  {_line(hit)}" for hit in self._hits]
        told = [f"  {warning}" for warning in self.warnings]
        return "\n".join([f"{len(self._hits)} hits", *lines, *told])


class SearchResult(ResultList[Hit]):
    """The hits of a search."""


class RecallResult(ResultList["Hit | TurnHit"]):
    """The hits of a recall: entries, and turns of threads."""


def _line(hit: Any) -> str:
    where = f"{hit.thread_id} #{hit.seq}" if isinstance(hit, TurnHit) else hit.namespace
    return f"{hit.score:.2f}  {where}: {shortened(hit.content)}"
