"""Times of foreign records, in units that are known or that their magnitude tells. Pure.

Each function returns a moment in UTC, or `None` where there is none that can be read: absent, not
after 1970, beyond the calendar, or no time.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from hiermem_core.models.moments import from_milliseconds, to_the_millisecond

_SECOND, _MILLISECOND, _MICROSECOND, _NANOSECOND = 1, 10**3, 10**6, 10**9
_MAGNITUDES = (
    (10**11, _SECOND),
    (10**14, _MILLISECOND),
    (10**17, _MICROSECOND),
    (math.inf, _NANOSECOND),
)
"""Below each figure a number counts this many parts of a second."""


def moment_of(value: Any) -> datetime | None:
    """Return a time given as ISO text, or as a number whose magnitude tells its unit.

    Text without an offset is UTC.
    """
    if isinstance(value, str):
        return iso_moment(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _moment(value, next((parts for limit, parts in _MAGNITUDES if value < limit), _SECOND))


def iso_moment(value: Any) -> datetime | None:
    """Return a time given as ISO 8601 or SQL text; without an offset it is UTC."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        moment = to_the_millisecond(moment.replace(tzinfo=moment.tzinfo or UTC))
    except (ValueError, OverflowError):
        return None
    return moment if moment.timestamp() > 0 else None


def in_seconds(value: Any) -> datetime | None:
    """Return a time given in seconds."""
    return _moment(value, _SECOND)


def in_milliseconds(value: Any) -> datetime | None:
    """Return a time given in milliseconds."""
    return _moment(value, _MILLISECOND)


def in_nanoseconds(value: Any) -> datetime | None:
    """Return a time given in nanoseconds."""
    return _moment(value, _NANOSECOND)


def sql_or_seconds(value: Any) -> datetime | None:
    """Return a time given as SQL text, or in seconds."""
    return iso_moment(value) if isinstance(value, str) else in_seconds(value)


def _moment(value: Any, parts: int) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None
    try:
        return from_milliseconds(int(value * 1000 // parts))
    except (OverflowError, ValueError):
        return None
