"""Identifiers: time-ordered fresh ones, derived ones, and what a name may look like."""

from __future__ import annotations

import secrets
import uuid
from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError, LimitExceededError, MissingIdentityError
from hiermem_core.models.text import is_clean

if TYPE_CHECKING:
    from datetime import datetime

NAME_LIMIT = 512
"""Characters of a tenant, thread, turn or user id."""

_RANDOM_BITS = 62
_SEQUENCE_BITS = 12


def new_id(now: datetime) -> str:
    """Return a fresh UUID (version 7 of RFC 9562) that sorts by `now`."""
    milliseconds = int(now.timestamp() * 1000) & ((1 << 48) - 1)
    value = milliseconds << 80
    value |= 0x7 << 76
    value |= secrets.randbits(_SEQUENCE_BITS) << 64
    value |= 0b10 << _RANDOM_BITS
    value |= secrets.randbits(_RANDOM_BITS)
    return str(uuid.UUID(int=value))


def check_name(kind: str, value: object) -> str:
    """Return `value` if it can name a tenant, thread, turn or user.

    Raises:
        MissingIdentityError: It is `None` or empty.
        InvalidInputError: It is not text, or holds a lone surrogate or NUL.
        LimitExceededError: It is longer than 512 characters.
    """
    if value is None or value == "":
        raise MissingIdentityError(kind)
    if not isinstance(value, str):
        raise InvalidInputError(kind, f"must be text, not {type(value).__name__}")
    if len(value) > NAME_LIMIT:
        raise LimitExceededError(kind, limit=NAME_LIMIT, actual=len(value))
    if not is_clean(value):
        raise InvalidInputError(kind, "holds a lone surrogate or NUL; remove it")
    return value
