"""When a change that failed is tried again. Pure; one rule for every kind of change."""

from __future__ import annotations

from dataclasses import dataclass

MOST_ATTEMPTS = 5
"""After so many failed attempts a change stays as it is, failed, until it is repaired."""

_FIRST_PAUSE_MS = 1_000
_GROWTH = 5
_LONGEST_PAUSE_MS = 600_000


@dataclass(frozen=True, slots=True)
class Retry:
    """What is kept of a failed change.

    Attributes:
        attempts: Failed ones so far.
        due_at: Not before this moment, in UTC milliseconds.
    """

    attempts: int
    due_at: int

    @property
    def is_failed(self) -> bool:
        """Tell whether it is not tried again by itself."""
        return is_failed(self.attempts)


def is_failed(attempts: int) -> bool:
    """Tell whether a change with so many failed attempts is not tried again by itself."""
    return attempts >= MOST_ATTEMPTS


def pause_ms(attempts: int) -> int:
    """Return the pause after so many failed attempts, in milliseconds: 1, 5, 25, 125 s, ..."""
    if attempts < 1:
        return 0
    steps = min(attempts - 1, MOST_ATTEMPTS)
    return int(min(_FIRST_PAUSE_MS * _GROWTH**steps, _LONGEST_PAUSE_MS))


def after_failure(attempts: int, *, now_ms: int) -> Retry:
    """Return what to keep of a change that has just failed, after `attempts` earlier failures."""
    return Retry(attempts + 1, now_ms + pause_ms(attempts + 1))
