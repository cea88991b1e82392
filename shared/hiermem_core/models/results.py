"""What bulk operations, purges, repairs and statistics answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from hiermem_core.models.displayed import Displayed

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
class BulkInsertResult(Displayed):
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

    def raise_for_errors(self) -> None:
        """Raise the error of the first failed item, if there is one."""
        if self.failed:
            raise self.failed[0].error

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
class PurgeResult(Displayed):
    """What a purge removed, and how many expired entries are left."""

    removed: int
    remaining: int


@dataclass(frozen=True, slots=True)
class ForgetReceipt(Displayed):
    """What was forgotten, without any content.

    Attributes:
        counts: Removed by this call, per store: `entries`, `turns`, `threads`, `notes`, `vectors`,
            `patterns`, `sessions`, `steps`.
        failed: What could not be cleaned, `files` of the database or the vector `index`, with the
            error's type.
        remaining: How much is gone from the rows, and may still be in the files. Repeat the call,
            or open the location again, until it is 0; of a dry run: what would be removed.
        vacuumed: The database's files hold nothing any more of what was removed from it.
        at: When the rows were removed.
        selector: SHA-256 of tenant and selector.
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
        """Tell whether it is done, and nothing is left to erase."""
        return self.remaining == 0 and not self.failed and not self.dry_run


@dataclass(frozen=True, slots=True)
class IndexStats(Displayed):
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
class CacheStats(Displayed):
    """How the cache of entries served the tenant; `capacity` is shared by all."""

    hits: int = 0
    misses: int = 0
    entries: int = 0
    capacity: int = 0


@dataclass(frozen=True, slots=True)
class MemoryStats(Displayed):
    """Counts of one tenant's entries; expired ones do not count.

    Attributes:
        bytes: Of contents and metadata, in UTF-8.
        expired: Entries that expired and are not purged yet.
        patterns: Entries that are the text of a pattern.
        engines: What answers each search mode, in words.
    """

    entries: int
    entries_by_namespace: Mapping[str, int]
    entries_by_type: Mapping[str, int]
    bytes: int
    expired: int
    patterns: int
    index: IndexStats
    cache: CacheStats
    generation: int
    location: str
    backend: str
    engines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReindexReport(Displayed):
    """What a reindex did.

    Attributes:
        rows: Entries and turns that are searched, of all tenants.
        embedded: Rows that got their vector by this call; an earlier one that was cut off may have
            made others.
        refused: Rows the embedder failed at; they wait, and are tried again.
        replaced: The vectors that count were by another embedder before.
    """

    model_id: str
    dimension: int
    rows: int
    embedded: int
    refused: int
    replaced: bool


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A row that failed five times.

    Attributes:
        name: Of an entry its id; of a turn its thread and seq.
        error: The type's name of the error.
    """

    tenant_id: str
    name: str
    error: str


@dataclass(frozen=True, slots=True)
class DoctorReport(Displayed):
    """Where rows, keyword rows and vectors disagreed, in numbers, and whether that was repaired.

    Attributes:
        missing: Rows that should have a vector and neither have one nor wait for it, and vectors
            that the vector index lacks.
        stale: Vectors by an embedder that does not count any more.
        orphans: Vectors without a row, in the database or in the vector index, and rows without
            their entry or turn.
        pending: Rows that wait for their vector, and changes that wait for the vector index.
        failed: Rows and changes that failed five times.
        unlisted: Rows without their keyword row, keyword rows without a row, and turns that recall
            should know and does not.
        failures: At most a thousand of the failed ones.
        unchecked: Why the vector index could not be compared; `None`: it was, or there is none.
        repaired: A repair was asked for, and nothing disagrees any more.
    """

    missing: int = 0
    stale: int = 0
    orphans: int = 0
    pending: int = 0
    failed: int = 0
    unlisted: int = 0
    failures: tuple[FailedRow, ...] = ()
    unchecked: str | None = None
    repaired: bool = False

    @property
    def is_sound(self) -> bool:
        """Tell whether nothing disagrees, as far as could be checked."""
        return not (self.missing or self.stale or self.orphans or self.failed or self.unlisted)
