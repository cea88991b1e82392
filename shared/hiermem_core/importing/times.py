"""Times of foreign records: ISO text, or a number whose unit its magnitude tells. Pure."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

_UNITS = ((1e11, 1), (1e14, 1e3), (1e17, 1e6), (math.inf, 1e9))
"""Below each figure a number counts this many parts of a second."""


def moment_of(value: Any) -> datetime | None:
    """Return a time in UTC; `None` where it is absent, unreadable, or not after 1970.

    Text without an offset is UTC.
    """
    try:
        moment = datetime.fromtimestamp(_seconds(value), UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        return None
    return moment if moment.timestamp() > 0 else None


def _seconds(value: Any) -> float:
    if isinstance(value, str):
        moment = datetime.fromisoformat(value)
        return (moment.replace(tzinfo=moment.tzinfo or UTC)).timestamp()
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError("is no time")
    return float(value / next(parts for limit, parts in _UNITS if value < limit))
