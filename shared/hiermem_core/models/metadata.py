"""Metadata: a JSON object that comes back equal, or is refused. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError, LimitExceededError
from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from hiermem_core.models.text import TextCleaner

METADATA_LIMIT = 64 * 1024
"""Bytes of an entry's metadata as JSON in UTF-8, unless a setting says otherwise."""

DEPTH_LIMIT = 8

DATA_LIMIT = 1024 * 1024
"""Bytes of a pattern's or session's data, or of the state at a step, as JSON in UTF-8."""

DATA_DEPTH_LIMIT = 64

_FEW, _SHORT = 40, 100
"""Keys and texts of 100 characters take 1,200 bytes at most, as each may become six."""

_SMALL = _FEW * 1210
"""Bytes that so many of them take at most."""

_MOST, _LEAST = 2**63 - 1, -(2**63)
_SCALARS = (bool, int, float, str, type(None))


def checked_metadata(
    value: Any, cleaner: TextCleaner, *, limit: int = METADATA_LIMIT
) -> dict[str, Any]:
    """Return a copy of a JSON object, its text cleaned, or say what in it is none.

    Nothing is dropped, turned into text or rounded.

    Raises:
        InvalidInputError: A value JSON cannot carry; the error names its path.
        LimitExceededError: It is larger than `limit` bytes or deeper than 8.
    """
    return checked_object("metadata", value, cleaner, limit=limit)


def checked_object(
    name: str, value: Any, cleaner: TextCleaner, *, limit: int, deepest: int = DEPTH_LIMIT
) -> dict[str, Any]:
    """Return a copy of a JSON object as `checked_metadata` does; `name` stands in its errors."""
    if type(value) is not dict:
        raise InvalidInputError(name, f"must be a dict, not {type(value).__name__}")
    copy: dict[str, Any] = checked_json(name, value, cleaner, limit=limit, deepest=deepest)
    return copy


def checked_json(
    name: str, value: Any, cleaner: TextCleaner, *, limit: int, deepest: int = DEPTH_LIMIT
) -> Any:
    """Return a copy of a JSON value as `checked_metadata` does; `name` stands in its errors."""
    if type(value) is dict and not value:
        return {}
    copy = _Checking(name, cleaner, deepest).checked(value, name, 1)
    is_small = limit >= _SMALL and type(copy) is dict and _is_small(copy)
    size = 0 if is_small else len(dump_json(copy).encode())
    if size > limit:
        raise LimitExceededError(name, limit=limit, actual=size)
    return copy


def _is_small(value: dict[str, Any]) -> bool:
    """Tell whether an object is surely within the limit, whatever its texts are escaped to."""
    return len(value) <= _FEW and all(
        len(key) <= _SHORT
        and type(item) in _SCALARS
        and (type(item) is not str or len(item) <= _SHORT)
        for key, item in value.items()
    )


@dataclass(frozen=True, slots=True)
class _Checking:
    """How one value is checked."""

    name: str
    cleaner: TextCleaner
    deepest: int

    def checked(self, value: Any, path: str, depth: int) -> Any:
        if type(value) in (dict, list) and depth > self.deepest:
            raise LimitExceededError(f"{self.name} depth", limit=self.deepest, actual=depth)
        if type(value) is dict:
            return {
                _key(key, path, self.cleaner): self.checked(item, f"{path}.{key}", depth + 1)
                for key, item in value.items()
            }
        if type(value) is list:
            return [
                self.checked(item, f"{path}[{place}]", depth + 1)
                for place, item in enumerate(value)
            ]
        return _scalar(value, path, self.cleaner)


def _key(key: Any, path: str, cleaner: TextCleaner) -> str:
    if type(key) is not str:
        raise InvalidInputError(path, f"has a key of type {type(key).__name__}; use text")
    return cleaner.text(key)


def _scalar(value: Any, path: str, cleaner: TextCleaner) -> Any:
    if type(value) not in _SCALARS:
        raise InvalidInputError(path, f"{type(value).__name__} is no JSON type; convert it")
    if type(value) is str:
        return cleaner.text(value)
    if type(value) is float and not math.isfinite(value):
        raise InvalidInputError(path, "is no finite number; leave it out")
    if type(value) is int and not _LEAST <= value <= _MOST:
        raise InvalidInputError(path, "does not fit 64 bits; store it as text")
    return value


def copied(value: Any) -> Any:
    """Return a JSON value that shares no list or object with the given one."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value
