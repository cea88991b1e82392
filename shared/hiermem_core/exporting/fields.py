"""The fields of the JSON objects of an export. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.models.moments import aware

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST = 2**62


def moment_text(moment: datetime | None) -> str:
    """Return a moment as ISO text in UTC, to the millisecond."""
    return "" if moment is None else moment.isoformat(timespec="milliseconds")[:23] + "Z"


def present(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that are neither absent, nor an empty list or object, nor false."""
    return {
        name: fact
        for name, fact in facts.items()
        if fact is not None and fact is not False and fact not in ([], {})
    }


def field_of(form: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return a field that must be there, of a type.

    Raises:
        InvalidInputError: It is not.
    """
    value = form.get(name)
    if not isinstance(value, kind):
        raise InvalidInputError(name, f"is missing, or no {kind.__name__}; add it")
    return value


def moment_of(form: Mapping[str, Any], name: str) -> datetime:
    """Return a moment that must be there.

    Raises:
        InvalidInputError: It is not, or is no time.
    """
    try:
        moment = aware(name, datetime.fromisoformat(field_of(form, name, str)))
    except ValueError as error:
        raise InvalidInputError(name, "is no time in ISO form; mend it") from error
    if moment is None:
        raise InvalidInputError(name, "is missing; add it")
    return moment


def count_of(
    form: Mapping[str, Any], name: str, *, least: int = 0, default: int | None = None
) -> int:
    """Return a whole number of a form.

    Raises:
        InvalidInputError: It is none, or below `least`.
    """
    return checked_size(name, form.get(name, default), least=least)


def checked_size(name: str, value: Any, *, least: int = 0) -> int:
    """Return a whole number.

    Raises:
        InvalidInputError: It is none, or below `least`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise InvalidInputError(name, f"must be a whole number, at least {least}; mend it")
    return value
