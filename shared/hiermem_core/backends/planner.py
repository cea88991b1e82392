"""How the nearest vectors are found. Pure; the figures are measured, see `Planner`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_FIRST, _SPARE = 200, 16

Way = Literal["scan", "candidates", "index", "blocks"]

WAYS: dict[Way, str] = {
    "scan": "exact scan of the tenant's vectors",
    "candidates": "exact scan of the rows within the restrictions",
    "index": "approximate index, restricted by SQL",
    "blocks": "exact scan in blocks from the database",
}


@dataclass(frozen=True, slots=True)
class Planner:
    """Choose the cheapest way that is exact, or approximate and restricted afterwards.

    Attributes:
        exact_limit: So many rows are scanned exactly: one numpy product over 16,000 vectors of
            384 numbers takes under a millisecond, an approximate index 1 to 2.
        few: So many rows are read and scanned sooner than the index is asked for a first batch.
        most_fetched: Hits asked of the approximate index at most, before an exact scan is cheaper.
    """

    exact_limit: int = 16_000
    few: int = 1_000
    most_fetched: int = 5_000

    def way(self, *, matching: int | None, total: int, indexed: bool, in_memory: bool) -> Way:
        """Return how to search.

        Args:
            matching: Rows within the restrictions; `None`: more than `exact_limit`, or none are
                given.
            total: Vectors of the tenant.
            indexed: The approximate index can answer now.
            in_memory: The tenant's whole matrix may be held in memory.
        """
        if total <= self.exact_limit:
            return "scan"
        if matching is not None:
            return "candidates"
        if indexed:
            return "index"
        return "scan" if in_memory else "blocks"

    def first_size(self, wanted: int, *, is_restricted: bool = True) -> int:
        """Return how many hits to ask of the index first.

        Args:
            is_restricted: Else only turns and expired entries are out of scope.
        """
        size = max(_FIRST, 4 * wanted) if is_restricted else wanted + wanted // 4 + _SPARE
        return min(self.most_fetched, size)

    def is_plenty(self, share: float, total: int) -> bool:
        """Tell whether far more rows are within the restrictions than are scanned exactly.

        Args:
            share: Of the first hits of the index that are within.
            total: Vectors of the tenant.
        """
        return share * total > 2 * self.exact_limit

    def fetch_sizes(self, wanted: int, share: float = 1.0) -> list[int]:
        """Return how many hits to ask of the index in turn, until enough pass.

        Args:
            wanted: Hits that must pass.
            share: Of the rows that pass, as far as it is known.
        """
        size = min(self.most_fetched, max(wanted, round(2 * wanted / max(share, 1e-6))))
        sizes = [size]
        while sizes[-1] < self.most_fetched:
            sizes.append(min(self.most_fetched, sizes[-1] * 4))
        return sizes
