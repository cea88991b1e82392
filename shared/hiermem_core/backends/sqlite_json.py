"""One field of a JSON text column and what a filter asks of it, for SQLite.

An index on a field holds `json_extract(column, path)`. It orders numbers before texts, takes
booleans for numbers and null for nothing, and its floats are as good as SQLite reads them. So a
condition on an indexed field is two: a weaker one that the index serves, and the exact one. Among
several values it serves neither null nor more than 100 numbers with a fraction.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import sqlalchemy as sql

from hiermem_core.backends.json_numbers import (
    UPWARD,
    around,
    float_bound,
    integer_bound,
    is_read_exactly,
    neighbours,
)
from hiermem_core.backends.sqlite_places import listed, path_to, place_of
from hiermem_core.errors import ConfigurationError
from hiermem_core.models.text import is_clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import ColumnElement

    from hiermem_core.backends.json_numbers import Number, Order

    Condition = ColumnElement[bool]

_INDEXED_FLOATS = 100

_COMPARE: Mapping[Order, Callable[[Any, Any], Condition]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def literal_path(field: str) -> str:
    """Return the path of a field as a literal of SQL, as it stands in the field's index.

    Raises:
        ConfigurationError: No path can carry the field's name.
    """
    if '"' in field or not is_clean(field):
        reason = f"{field!r} holds a quotation mark, lone surrogate or NUL; rename the field"
        raise ConfigurationError("indexed", reason)
    quoted = path_to(field).replace("'", "''")
    return f"'{quoted}'"


class SqliteField:
    """One top-level key of the objects in a column, to be compared with an operand.

    Conditions are true, or else false or NULL.

    Raises:
        ConfigurationError: It is indexed and no path can carry its name.
    """

    def __init__(
        self, column: ColumnElement[str], field: str, operand: Any, *, is_indexed: bool
    ) -> None:
        self._place = place_of(column, field, operand)
        self._operand = operand
        self._indexed: ColumnElement[Any] | None = None
        if is_indexed:
            path: ColumnElement[Any] = sql.literal_column(literal_path(field))
            self._indexed = sql.func.json_extract(column, path)

    def exists(self) -> Condition:
        """Return whether the field is there, null included."""
        return self._place.kind.is_not(None)

    def equals(self) -> Condition:
        """Return whether the value is the operand, at every level of one type."""
        return self._is_among([self._operand])

    def is_one_of(self) -> Condition:
        """Return whether the value is one of the operand's items."""
        return self._is_among(self._operand)

    def includes(self) -> Condition:
        """Return whether the value is an object that recursively has all the operand has."""
        return self._place.holds(self._operand, is_subset=True)

    def contains(self) -> Condition:
        """Return whether the value is a list with an item that is the operand."""
        return self._place.contains(self._operand)

    def compares(self, order: Order) -> Condition:
        """Return whether the value stands to the operand, a number or text, in an order."""
        place, bound = self._place, self._operand
        if isinstance(bound, str):
            exact = sql.and_(place.kind == "text", _COMPARE[order](place.value, bound))
        else:
            exact = self._compares_numbers(order, bound)
        if self._indexed is None:
            return exact
        return sql.and_(_order_in_index(self._indexed, order, bound), exact)

    def _compares_numbers(self, order: Order, number: Number) -> Condition:
        place, bound = self._place, float_bound(order, number)
        integer = _COMPARE[order](place.value, integer_bound(order, number))
        beyond = place.value > bound.sure if order in UPWARD else place.value < bound.sure
        real = sql.or_(beyond, place.is_written(bound.near))
        return sql.case({"integer": integer, "real": real}, value=place.kind)

    def _is_among(self, values: Sequence[Any]) -> Condition:
        scalars = [value for value in values if not isinstance(value, list | dict)]
        containers = [value for value in values if isinstance(value, list | dict)]
        held = [self._place.holds(value) for value in containers]
        exact = sql.or_(self._place.is_one_of(scalars), *held)
        if self._indexed is None or containers:
            return exact
        return sql.and_(_among_in_index(self._indexed, scalars), exact)


def _among_in_index(indexed: ColumnElement[Any], scalars: Sequence[Any]) -> Condition:
    """Return a weaker condition, in one term: SQLite serves a list from an index, and no `or`."""
    if list(scalars) == [None]:
        return indexed.is_(None)
    keys = [value if isinstance(value, str) else int(value) for value in scalars if _is_key(value)]
    floats = [value for value in scalars if value is not None and not _is_key(value)]
    if None in scalars or len(floats) > _INDEXED_FLOATS:
        return sql.true()
    if len(scalars) == 1:
        return indexed == keys[0] if keys else indexed.between(*around(floats[0]))
    if not floats:
        return indexed.in_(listed(keys))
    near = [number for value in floats for number in neighbours(value)]
    # The first value's type would make all of them floats.
    return indexed.in_(sql.bindparam(None, [*keys, *near], sql.types.NullType(), expanding=True))


def _is_key(scalar: Any) -> bool:
    """Tell whether an index holds a scalar as what it is, and not as something near."""
    return isinstance(scalar, str) or (scalar is not None and is_read_exactly(scalar))


def _order_in_index(indexed: ColumnElement[Any], order: Order, bound: Number | str) -> Condition:
    if isinstance(bound, str):
        beyond = _COMPARE[order](indexed, bound)
        return beyond if order in UPWARD else sql.and_(indexed >= "", beyond)
    low, high = around(bound)
    return sql.and_(indexed >= low, indexed < "") if order in UPWARD else indexed <= high
