"""One field of a JSON text column and what a filter asks of it, for PostgreSQL.

A column of type `json` keeps every value as it is written, its token. Text, booleans, null and
numbers are equal if their tokens are, of which a number has several (`1`, `1.0`); lists and
objects are compared place by place. An index on a field holds the beginning of the token.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import sqlalchemy as sql
from sqlalchemy.dialects.postgresql import JSON

from hiermem_core.backends.json_numbers import UPWARD, number_tokens
from hiermem_core.errors import ConfigurationError
from hiermem_core.models.plain import dump_json
from hiermem_core.models.text import is_clean
from hiermem_core.storage.tables import TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement

    from hiermem_core.backends.json_numbers import Number, Order

    Condition = ColumnElement[bool]

_INDEXED_LETTERS = 200
"""Of a token: an index takes no more than 2,700 bytes."""

_COMPARE: Mapping[Order, Callable[[Any, Any], Condition]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def index_expression(field: str) -> str:
    """Return what an index on a field holds, as it stands in statements too.

    Raises:
        ConfigurationError: The field's name holds a lone surrogate or NUL.
    """
    if not is_clean(field):
        raise ConfigurationError("indexed", f"{field!r} holds a lone surrogate or NUL; rename it")
    quoted = field.replace("'", "''")
    return f"left(((metadata::json -> '{quoted}')::text) COLLATE \"C\", {_INDEXED_LETTERS})"


class PostgresField:
    """One top-level key of the objects in a column, to be compared with an operand.

    Conditions are true, or else false or NULL.

    Raises:
        ConfigurationError: It is indexed and no index can be on its name.
    """

    def __init__(
        self, column: ColumnElement[str], field: str, operand: Any, *, is_indexed: bool
    ) -> None:
        document = sql.cast(column, JSON)
        self._place = _Place(document.op("->", return_type=JSON())(sql.literal(field, sql.Text())))
        self._operand = operand
        self._index: ColumnElement[str] | None = (
            sql.literal_column(index_expression(field)) if is_indexed else None
        )

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
        listed = sql.case((self._place.kind == "array", self._place.value), else_=_EMPTY)
        each = sql.func.json_array_elements(listed).table_valued(sql.column("value", JSON)).alias()
        item = _Place(each.c.value)
        found = sql.select(sql.literal(1)).select_from(each)
        return sql.exists(found.where(item.is_any(self._operand)))

    def compares(self, order: Order) -> Condition:
        """Return whether the value stands to the operand, a number or text, in an order."""
        place, bound = self._place, self._operand
        if isinstance(bound, str):
            return sql.case((place.kind == "string", _COMPARE[order](place.text, bound)))
        return sql.case((place.kind == "number", _compares(place.token, order, bound)))

    def _is_among(self, values: Sequence[Any]) -> Condition:
        exact = sql.or_(sql.false(), *map(self._place.is_any, values))
        scalars = [value for value in values if not isinstance(value, list | dict)]
        if self._index is None or len(scalars) < len(values):
            return exact
        tokens = {token[:_INDEXED_LETTERS] for value in scalars for token in _tokens(value)}
        named: sql.BindParameter[Any] = sql.bindparam(
            "tokens", sorted(tokens), expanding=True, unique=True
        )
        return sql.and_(self._index.in_(named), exact)


@dataclass(frozen=True, slots=True)
class _Place:
    """A JSON value, NULL where nothing stands. Conditions are true, or else false or NULL."""

    value: ColumnElement[Any]

    @property
    def kind(self) -> ColumnElement[str]:
        """The type's name."""
        return sql.func.json_typeof(self.value, type_=sql.Text())

    @property
    def token(self) -> ColumnElement[str]:
        """The value as it is written."""
        return sql.cast(self.value, TEXT)

    @property
    def text(self) -> ColumnElement[str]:
        """The text that a string is."""
        return self.value.op("#>>", return_type=TEXT)(sql.literal_column("'{}'")).collate("C")

    def is_any(self, wanted: Any) -> Condition:
        """Return whether the wanted value stands here."""
        if isinstance(wanted, list | dict):
            return self.holds(wanted)
        return self.token.in_(_tokens(wanted))

    def holds(self, wanted: Any, *, is_subset: bool = False) -> Condition:
        """Return whether this list or object stands here, or with `is_subset` one that has it."""
        nodes = list(_walk(wanted, (), is_subset=is_subset))
        kinds = [[node.path, node.kind, node.size] for node in nodes if node.kind]
        leaves = [[node.path, _tokens(node.scalar)] for node in nodes if not node.kind]
        return sql.and_(
            self.kind == _kind_of(wanted),
            *_none_fails(kinds, self._lacks_kind),
            *_none_fails(leaves, self._lacks_token),
        )

    def _at(self, node: ColumnElement[Any]) -> _Place:
        path = sql.func.array(_texts(node, 0).scalar_subquery())
        return _Place(self.value.op("#>", return_type=JSON())(path))

    def _lacks_kind(self, node: ColumnElement[Any]) -> Condition:
        place, kind, size = self._at(node), _text_of(node, 1), _text_of(node, 2)
        count = sql.case(
            (place.kind == "array", sql.func.json_array_length(place.value)),
            (place.kind == "object", _count_keys(place.value)),
        )
        return sql.or_(
            place.kind.is_distinct_from(kind),
            sql.and_(size.is_not(None), sql.cast(count, sql.Text()).is_distinct_from(size)),
        )

    def _lacks_token(self, node: ColumnElement[Any]) -> Condition:
        token = sql.func.coalesce(self._at(node).token, "")
        return token.not_in(_texts(node, 1))


@dataclass(frozen=True, slots=True)
class _Node:
    """A value inside an operand, by its path. Scalars have no kind.

    Attributes:
        size: How many items a list or object must have; `None`: any number.
    """

    path: tuple[str, ...]
    kind: str | None = None
    size: int | None = None
    scalar: Any = None


_EMPTY: ColumnElement[Any] = sql.literal_column("'[]'::json")


def _walk(value: Any, path: tuple[str, ...], *, is_subset: bool) -> Iterator[_Node]:
    if isinstance(value, dict):
        yield _Node(path, _kind_of(value), None if is_subset else len(value))
        for key, item in value.items():
            yield from _walk(item, (*path, key), is_subset=is_subset)
    elif isinstance(value, list):
        yield _Node(path, _kind_of(value), len(value))
        for place, item in enumerate(value):
            yield from _walk(item, (*path, str(place)), is_subset=False)
    else:
        yield _Node(path, scalar=value)


def _kind_of(container: Any) -> str:
    return "object" if isinstance(container, dict) else "array"


def _tokens(scalar: Any) -> tuple[str, ...]:
    if isinstance(scalar, int | float) and not isinstance(scalar, bool):
        return number_tokens(scalar)
    return (dump_json(scalar),)


def _none_fails(
    nodes: Iterable[Any], fails: Callable[[ColumnElement[Any]], Condition]
) -> Iterator[Condition]:
    """Yield the condition that no node fails, unless there is no node."""
    listed = list(nodes)
    if listed:
        items = sql.cast(sql.literal(dump_json(listed), sql.Text()), JSON)
        each = sql.func.json_array_elements(items).table_valued(sql.column("value", JSON)).alias()
        failing = sql.select(sql.literal(1)).select_from(each)
        yield ~sql.exists(failing.where(fails(each.c.value)))


def _texts(node: ColumnElement[Any], place: int) -> sql.Select[Any]:
    """Return the subquery of the texts in a list that is an item of a node."""
    listed = node.op("->", return_type=JSON())(sql.literal_column(str(place)))
    each = sql.func.json_array_elements_text(listed).table_valued("value").alias()
    return sql.select(each.c.value)


def _text_of(node: ColumnElement[Any], place: int) -> ColumnElement[str]:
    return node.op("->>", return_type=sql.Text())(sql.literal_column(str(place)))


def _count_keys(value: ColumnElement[Any]) -> ColumnElement[int]:
    keys = sql.func.json_object_keys(value).table_valued("key").alias()
    return sql.select(sql.func.count()).select_from(keys).scalar_subquery()


def _compares(token: ColumnElement[str], order: Order, number: Number) -> Condition:
    """Return whether a number, as written, stands to another in an order, exactly.

    An integer is written as it is. A float is written as the shortest text that reads back as it,
    which is ordered as floats are; so it is compared with the float next to the bound.
    """
    if isinstance(number, float) and math.isnan(number):
        return sql.false()
    is_upward = order in UPWARD
    if isinstance(number, float) and math.isinf(number):
        return sql.true() if (number < 0) == is_upward else sql.false()
    value = sql.cast(token, sql.Numeric())
    integer = _COMPARE[order](value, sql.literal(Decimal(number), sql.Numeric()))
    near = _nearest(order, number)
    beyond = operator.ge if is_upward else operator.le
    real = sql.false() if math.isinf(near) else beyond(value, sql.literal(Decimal(repr(near))))
    is_float = token.op("~", return_type=sql.Boolean())("[.eE]")
    return sql.case((is_float, real), else_=integer)


def _nearest(order: Order, number: Number) -> float:
    """Return the float nearest to a number that stands to it in an order; infinite if none does."""
    toward = math.inf if order in UPWARD else -math.inf
    try:
        near = math.nextafter(float(number), -toward)
    except OverflowError:
        return toward if (number > 0) == (order in UPWARD) else math.copysign(_MOST, number)
    while not _COMPARE[order](near, number):
        near = math.nextafter(near, toward)
        if math.isinf(near):
            return near
    return near


_MOST = 1.7976931348623157e308
"""The greatest float."""
