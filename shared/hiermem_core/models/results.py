"""What bulk operations, purges, repairs and statistics answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

    from hiermem_core.errors import HierMemError

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Failure:
    """One item that failed.

    Attributes:
        index: Its place among the items given, from 0.
        id: Its id, where it had one.
    """

    index: int
    id: str | None
    error: HierMemError


@dataclass(frozen=True, slots=True)
class BulkInsertResult:
    """What became of each item, in input order.

    Attributes:
        ids: `None` for a failed item.
        pending: Ids that are stored and wait for their vector.
    """

    ids: tuple[str | None, ...] = ()
    failed: tuple[Failure, ...] = ()
    pending: tuple[str, ...] = ()

    def raise_for_errors(self) -> None:
        """Raise the error of the first failed item, if there is one."""
        if self.failed:
            raise self.failed[0].error


class BulkResult(Mapping[str, V], Generic[V]):
    """An answer for every id asked, and the failures."""

    def __init__(self, answers: Mapping[str, V], failed: tuple[Failure, ...] = ()) -> None:
        self._answers = dict(answers)
        self.failed = failed

    def __getitem__(self, entry_id: str) -> V:
        """Return the answer for an id."""
        return self._answers[entry_id]

    def __iter__(self) -> Iterator[str]:
        """Yield the ids in the order asked."""
        return iter(self._answers)

    def __len__(self) -> int:
        """Return the number of ids."""
        return len(self._answers)

    def __repr__(self) -> str:
        """Show the answers and failures."""
        return f"BulkResult({self._answers!r}, failed={self.failed!r})"


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What a purge removed, and how many expired entries are left."""

    removed: int
    remaining: int


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """What was forgotten, without any content.

    Attributes:
        counts: Removed per store: `entries`, `turns`, `threads`, `notes`, `vectors`.
        failed: Stores that could not be cleaned, with the error's type.
        remaining: What is still to be erased; `complete` only when this is 0.
        vacuumed: The files were cleaned of what they held.
        selector: Digest of what was asked to be forgotten.
    """

    counts: Mapping[str, int]
    failed: tuple[tuple[str, str], ...]
    remaining: int
    vacuumed: bool
    at: datetime
    selector: str
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Tell whether nothing is left to erase."""
        return self.remaining == 0 and not self.failed


@dataclass(frozen=True, slots=True)
class IndexStats:
    """What is searchable by meaning.

    Attributes:
        indexed: Rows with a vector: entries, and turns of threads.
        pending: Rows that wait for their vector or for the vector index.
        failed: Rows that failed five times; `doctor` lists them.
        shortened: Rows of which only a prefix was embedded.
        model_id: Of the embedder; `None`: there is none.
    """

    indexed: int = 0
    pending: int = 0
    failed: int = 0
    shortened: int = 0
    model_id: str | None = None
    dimension: int | None = None


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How the cache of entries served."""

    hits: int = 0
    misses: int = 0
    entries: int = 0
    capacity: int = 0


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Counts of one tenant's entries; expired ones do not count.

    Attributes:
        bytes: Of contents and metadata, in UTF-8.
        expired: Entries that expired and are not purged yet.
        engines: What answers each search mode, in words.
    """

    entries: int
    entries_by_namespace: Mapping[str, int]
    entries_by_type: Mapping[str, int]
    bytes: int
    expired: int
    index: IndexStats
    cache: CacheStats
    generation: int
    location: str
    backend: str
    engines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Where rows and vectors disagree, in numbers, and whether that was repaired.

    Attributes:
        missing: Rows that should have a vector and have none, nor wait for one.
        stale: Vectors in the index whose row has another by now.
        orphans: Vectors without a row.
        unlisted: Rows without their keyword row, or turns recall does not know.
        failures: Id or thread and seq of each failed row, with its error's type.
    """

    missing: int = 0
    stale: int = 0
    orphans: int = 0
    pending: int = 0
    failed: int = 0
    unlisted: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    repaired: bool = False

    @property
    def is_sound(self) -> bool:
        """Tell whether nothing disagrees."""
        return not (self.missing or self.stale or self.orphans or self.failed or self.unlisted)
