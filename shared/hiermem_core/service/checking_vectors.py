"""Vectors that callers give, checked. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from hiermem_core.errors import DimensionMismatchError, InvalidInputError

if TYPE_CHECKING:
    from hiermem_core.backends.records import Text, Vector
    from hiermem_core.models.text import TextCleaner


def checked_embedding(value: Any, _: TextCleaner | None = None) -> Vector | None:
    """Return the vector a caller gave, or the vectors, a row each.

    Raises:
        InvalidInputError: They are no lists of finite numbers, or one is all zero.
        DimensionMismatchError: They have not one length.
    """
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        return checked_vector(value)
    rows = list(value)
    is_one = not any(isinstance(row, Iterable) and not isinstance(row, str) for row in rows)
    if not rows or is_one:
        return checked_vector(rows)
    return np.stack([checked_vector(row, len(checked_vector(rows[0]))) for row in rows])


def check_embedding(text: Text, vector: Vector | None) -> None:
    """Raise `InvalidInputError` where given vectors are not one for each text."""
    if vector is None:
        return
    if isinstance(text, str) and vector.ndim > 1:
        raise InvalidInputError("embedding", "is several vectors; one fits a content")
    if not isinstance(text, str) and (vector.ndim == 1 or len(vector) != len(text)):
        raise InvalidInputError("embedding", "must be a vector for each passage")


def checked_vector(value: Any, dimensions: int | None = None) -> Vector:
    """Return a vector a caller gave, as float32.

    Raises:
        InvalidInputError: It is no list of finite numbers, or all zero.
        DimensionMismatchError: It has not `dimensions` numbers.
    """
    try:
        with np.errstate(over="ignore"):
            vector = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError("embedding", "must be a list of numbers") from None
    if vector.ndim != 1 or not len(vector) or not _has_length(vector):
        raise InvalidInputError("embedding", "must be finite numbers, not all zero")
    if dimensions is not None and len(vector) != dimensions:
        raise DimensionMismatchError(expected=dimensions, actual=len(vector))
    return vector


def _has_length(vector: Vector) -> bool:
    """Tell whether a vector is finite and not all zero."""
    double = vector.astype(np.float64)
    return 0 < float(double @ double) < math.inf
