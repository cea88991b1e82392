"""Identifiers: time-ordered fresh ones, derived ones, and what a name may look like."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError, LimitExceededError, MissingIdentityError
from hiermem_core.models.text import is_clean

if TYPE_CHECKING:
    from datetime import datetime

NAME_LIMIT = 512
"""Characters of a tenant, thread, turn or user id."""

_RANDOM_BYTES = 10
_RANDOM = (0xFFF << 64) | (1 << 62) - 1
_VERSION_AND_VARIANT = (0x7 << 76) | (0b10 << 62)


def new_id(now: datetime) -> str:
    """Return a fresh UUID (version 7 of RFC 9562) that sorts by `now`."""
    milliseconds = int(now.timestamp() * 1000) & ((1 << 48) - 1)
    chance = secrets.token_bytes(_RANDOM_BYTES)
    value = milliseconds << 80 | int.from_bytes(chance) & _RANDOM | _VERSION_AND_VARIANT
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def check_name(kind: str, value: object) -> str:
    """Return `value` if it can name a tenant, thread, turn or user.

    Raises:
        MissingIdentityError: It is `None` or empty.
        InvalidInputError: It is not text, or holds a lone surrogate or NUL.
        LimitExceededError: It is longer than 512 characters.
    """
    if value is None:
        raise MissingIdentityError(kind)
    if not isinstance(value, str):
        raise InvalidInputError(kind, f"must be text, not {type(value).__name__}")
    if not value:
        raise MissingIdentityError(kind)
    if len(value) > NAME_LIMIT:
        raise LimitExceededError(kind, limit=NAME_LIMIT, actual=len(value))
    if not is_clean(value):
        raise InvalidInputError(kind, "holds a lone surrogate or NUL; remove it")
    return value
