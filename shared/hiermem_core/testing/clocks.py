"""A clock that moves only when told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A clock for tests.

    Args:
        start: Its first moment; aware.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        """Return the moment it stands at."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds it was advanced by."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Move both times on; a negative figure steps the wall time back only."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += max(0.0, seconds)
