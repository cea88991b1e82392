"""What Layer 1 tells: where an answer came from, and how it served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from hiermem_core.models.displayed import Displayed

R = TypeVar("R")

Source = Literal["cache", "flight", "backend"]


@dataclass(frozen=True, slots=True)
class Served(Generic[R]):
    """An answer, and where it came from.

    Attributes:
        source: `"cache"`: it was kept; `"flight"`: a load in progress was joined; `"backend"`: the
            searcher was asked.
        age_seconds: Since its load began; 0.0 where this call loaded it.
    """

    result: R
    source: Source
    age_seconds: float


@dataclass(frozen=True, slots=True)
class WorkingMemoryStats(Displayed):
    """How a working memory served, at one moment.

    Attributes:
        hits: Calls answered by what was kept.
        misses: Calls that began a load.
        joined: Calls that waited for a load of another call.
        bypassed: Calls that went straight to the searcher, as their arguments have no stable key,
            or their load asks for itself.
        failures: Loads that raised, or gave an answer that tells of a failure.
        expired: Answers dropped because of their age.
        evicted: Answers dropped to make room.
        invalidated: Answers dropped because of a write or by hand.
        entries: Answers kept now.
        pinned: Pins set now.
        in_flight: Loads running now.
        load_seconds: Spent in loads, in total.
    """

    hits: int = 0
    misses: int = 0
    joined: int = 0
    bypassed: int = 0
    failures: int = 0
    expired: int = 0
    evicted: int = 0
    invalidated: int = 0
    entries: int = 0
    pinned: int = 0
    in_flight: int = 0
    load_seconds: float = 0.0

    @property
    def calls(self) -> int:
        """All calls: hits, misses, joined and bypassed."""
        return self.hits + self.misses + self.joined + self.bypassed

    @property
    def hit_rate(self) -> float:
        """The share of calls that were hits, 0.0 without calls."""
        return self.hits / self.calls if self.calls else 0.0


@dataclass(slots=True)
class Counters:
    """What is counted on the way; whoever shares it locks."""

    hits: int = 0
    misses: int = 0
    joined: int = 0
    bypassed: int = 0
    failures: int = 0
    expired: int = 0
    evicted: int = 0
    invalidated: int = 0
    load_seconds: float = 0.0
