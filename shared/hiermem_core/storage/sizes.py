"""How many bytes rows take, as quotas count them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, cast, func

from hiermem_core.models.quotas import octets
from hiermem_core.storage.portable import ByteLength
from hiermem_core.storage.tables import memory_entries, turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement

_ENTRY_TEXTS = ("value", "metadata", "tags", "passages")
_TURN_TEXTS = ("content", "body", "dump")


def sum_of(figures: ColumnElement[int]) -> ColumnElement[int]:
    """Return the sum of a column over rows, 0 of none."""
    return cast(func.coalesce(func.sum(figures), 0), BigInteger)


def _bytes_of(columns: Any, names: tuple[str, ...]) -> ColumnElement[int]:
    first, *others = (func.coalesce(ByteLength(columns[name]), 0) for name in names)
    total: ColumnElement[int] = first
    for other in others:
        total += other
    return total


entry_bytes = _bytes_of(memory_entries.c, _ENTRY_TEXTS)
"""The bytes of a row of `memory_entries`."""

turn_bytes = _bytes_of(turns.c, _TURN_TEXTS)
"""The bytes of a row of `turns`."""


def turn_row_bytes(row: Mapping[str, Any]) -> int:
    """Return the bytes of a row of `turns` that is to be written."""
    return sum(octets(row[name]) for name in _TURN_TEXTS)


_PLACES = tuple(list(memory_entries.c.keys()).index(name) for name in _ENTRY_TEXTS)


def entry_row_bytes(row: tuple[Any, ...]) -> int:
    """Return the bytes of a row of `memory_entries` that is to be written, in its order."""
    return sum(octets(row[place]) for place in _PLACES)
