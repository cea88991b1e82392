"""Moments: aware UTC datetimes here, whole milliseconds where they are stored. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hiermem_core.errors import InvalidInputError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_milliseconds(moment: datetime) -> int:
    """Return an aware datetime as UTC milliseconds, the rest cut off."""
    return (moment - _EPOCH) // _MILLISECOND


def from_milliseconds(value: int) -> datetime:
    """Return UTC milliseconds as an aware datetime."""
    return _EPOCH + value * _MILLISECOND


def to_the_millisecond(moment: datetime) -> datetime:
    """Return an aware datetime as it is stored: in UTC, the rest of a millisecond cut off."""
    return from_milliseconds(to_milliseconds(moment))


def aware(name: str, moment: datetime | None) -> datetime | None:
    """Return a moment that a caller gave, in UTC and to the millisecond.

    Raises:
        InvalidInputError: It has no time zone, is no datetime, or is no moment of the years 1 to
            9999 in UTC.
    """
    if moment is None:
        return None
    try:
        if isinstance(moment, datetime) and moment.utcoffset() is not None:
            return to_the_millisecond(moment)
    except OverflowError:
        reason = "is beyond the calendar in UTC; give a moment of the years 1 to 9999"
        raise InvalidInputError(name, reason) from None
    raise InvalidInputError(name, "has no time zone; give an aware datetime")
