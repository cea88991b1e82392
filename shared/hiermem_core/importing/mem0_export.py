"""The format `mem0/export`: a list of memories, of one user or of several."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing.reading import (
    Facts,
    entry_record,
    expiry,
    needed,
    needed_text,
    numbered,
    optional_text,
    read_each,
)
from hiermem_core.importing.times import iso_moment, moment_of
from hiermem_core.importing.values import value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "mem0/export"
NAMESPACE = "mem0"

_FIELDS = ("hash", "agent_id", "run_id", "actor_id", "role", "attributed_to")
_DATE_LENGTH = len("2026-11-30")


def fits(value: Any) -> bool:
    """Tell whether a JSON value is of this format."""
    return any(isinstance(one, dict) and {"id", "memory"} <= one.keys() for one in _listed(value))


def read(value: Any, reading: Reading) -> Iterator[Record]:
    """Yield the records of an export.

    Raises:
        InvalidInputError: It holds several users' memories, and it is not said whose are meant.
    """
    listed = [(place, one) for place, one in numbered(_listed(value)) if chosen(one, reading)]
    check_users([one.get("user_id") for _, one in listed if isinstance(one, dict)], reading)
    yield from read_each(listed, lambda one: memory_record(one, reading))


def chosen(one: Any, reading: Reading) -> bool:
    """Tell whether a record has the values in its fields that it must have."""
    if not reading.only:
        return True
    return isinstance(one, dict) and all(
        optional_text(one.get(name)) == value for name, value in reading.only.items()
    )


def check_users(users: Sequence[Any], reading: Reading) -> None:
    """Check that memories are of one user, or that all users' are meant.

    Raises:
        InvalidInputError: They are of several.
    """
    count = len({user for user in users if isinstance(user, str)})
    if count > 1 and not reading.all_users:
        reason = f"holds memories of {count} users; add --only user_id=NAME, or --all-users"
        raise InvalidInputError("source", reason)


def memory_record(one: Any, reading: Reading) -> Record:
    """Return the record of a memory.

    Raises:
        RecordError: It cannot be stored.
    """
    about = one.get("metadata")
    known = about if isinstance(about, dict) else {}
    is_procedure = known.get("memory_type") == "procedural_memory"
    facts = Facts(
        format=FORMAT,
        value=value_of(needed(one, "memory")),
        namespace=NAMESPACE,
        id=needed_text(one, "id"),
        type="procedure" if is_procedure else None,
        tags=one.get("categories") or known.get("categories") or (),
        metadata=about,
        created_at=moment_of(one.get("created_at")),
        updated_at=moment_of(one.get("updated_at")),
        expires_at=expiry(one.get("expiration_date"), _end_of, reading),
        fields={name: one.get(name) for name in _FIELDS},
        user_id=optional_text(one.get("user_id")),
    )
    return entry_record(facts, reading)


def _listed(value: Any) -> Sequence[Any]:
    listed = value.get("results") if isinstance(value, dict) else value
    return listed if isinstance(listed, list) else ()


def _end_of(value: Any) -> datetime | None:
    """Return the end of a day in UTC; of a moment, that moment."""
    if not isinstance(value, str) or len(value) > _DATE_LENGTH:
        return moment_of(value)
    try:
        return iso_moment((date.fromisoformat(value) + timedelta(days=1)).isoformat())
    except (ValueError, OverflowError):
        return None
