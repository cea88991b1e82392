"""What the service and a backend hand each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hiermem_core.models.plain import dump_json
from hiermem_core.models.quotas import octets

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from hiermem_core.models.entries import EntryDraft, MemoryEntry
    from hiermem_core.models.patterns import Pattern

    Vector = NDArray[np.float32]
    Cosines = NDArray[np.float64]
    Text = str | tuple[str, ...]


def embedded_text(entry: MemoryEntry | EntryDraft) -> Text:
    """Return what is embedded of an entry: its content, or its passages, each apart."""
    return entry.content if entry.passages is None else tuple(entry.passages)


def stored_bytes(entry: MemoryEntry) -> int:
    """Return the bytes of an entry, as quotas count them."""
    passages = "" if entry.passages is None else dump_json(entry.passages)
    texts = (entry.content, dump_json(entry.metadata), dump_json(entry.tags), passages)
    return sum(octets(text) for text in texts)


@dataclass(frozen=True, slots=True)
class Kept:
    """A living entry as a backend keeps it.

    Attributes:
        number: Of its row, never used again.
        has_vector: A vector made from its present content or passages is stored.
    """

    number: int
    entry: MemoryEntry
    has_vector: bool


@dataclass(frozen=True, slots=True, eq=False)
class MadeVector:
    """The vector to store with a row, or its vectors, where it has passages.

    Attributes:
        values: One vector, or one a passage, a row each.
        is_whole: False where only a prefix of the text was embedded.
        by: The name of the vectors it stands beside; once others count, it is not stored.
    """

    values: Vector
    is_whole: bool = True
    by: str = ""

    @property
    def each(self) -> Vector:
        """The vectors, a row each, however many they are."""
        return self.values if self.values.ndim > 1 else self.values[None, :]


@dataclass(frozen=True, slots=True, eq=False)
class EntryWrite:
    """An entry to write.

    Attributes:
        number: Of the row it replaces; `None` for a new one.
        vector: Made from its content; `None` leaves it without, or with the one it has.
        keeps_vector: What is embedded of it did not change, so the vector it has stays.
        awaits_vector: Its vector is made later.
        digest: What an entry that says the same has too; `None`: it is never merged.
        pattern: What it is the text of; `None`: of the pattern it has, while it bears its name.
    """

    entry: MemoryEntry
    number: int | None
    vector: MadeVector | None = None
    keeps_vector: bool = False
    awaits_vector: bool = False
    digest: str | None = None
    pattern: Pattern | None = None


@dataclass(frozen=True, slots=True)
class Derivation:
    """The row of an entry that was derived, and the ids of the entries it was derived from."""

    number: int
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """Rows with a figure each, best first, and how they were found, in words."""

    rows: tuple[tuple[int, float], ...] = ()
    plan: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows that wait for their vector; those without a text are gone."""

    rows: tuple[int, ...] = ()
    texts: Mapping[int, Text] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """What the embedder gave for a row.

    Attributes:
        vector: `None`: it failed, with an error of the type named.
        is_down: It fails at everything, so the row is not to blame.
    """

    vector: MadeVector | None = None
    error: str = ""
    is_down: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of tried rows.

    Attributes:
        made: Rows that have their vector now.
        lost: Rows that failed for the last time.
        is_idle: No row of the tenant waits any more.
    """

    made: int = 0
    lost: int = 0
    is_idle: bool = True


@dataclass(frozen=True, slots=True)
class EntryCounts:
    """What a tenant keeps; expired entries count only as `expired`."""

    by_namespace: Mapping[str, int]
    by_type: Mapping[str, int]
    bytes: int
    expired: int
    patterns: int = 0


@dataclass(frozen=True, slots=True)
class VectorCounts:
    """How the rows of a tenant stand with their vectors."""

    made: int = 0
    waiting: int = 0
    failed: int = 0
    shortened: int = 0
