"""The filter language over an entry's metadata: reading it, and its reference evaluation.

A filter is an object. `{"field": value}` is equality, `{"field": {"$gt": 3}}` applies operators, an
object without operators matches by recursive subset, several fields mean and, and `$and`, `$or`,
`$not` combine filters. A field is one literal top-level key; dots have no meaning. A name that
begins with `$` and a letter is always an operator.

- A missing field satisfies nothing but `{"$exists": False}`. A null is present and equals null.
- Comparison stays inside one type: number, text, boolean, null, list, object. Booleans are no
  numbers, 1 equals 1.0, numbers compare by their exact value, text by code point.
- `$gt $gte $lt $lte` take a number or a text; no other type has an order.
- `$not` is the plain negation of what it encloses.
- A slip never becomes equality: an object whose keys are all words of filter languages without
  their `$`, such as `between`, is refused like an unknown operator.

`matches` defines what every store must answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from hiermem_core.errors import InvalidFilterError, LimitExceededError
from hiermem_core.models.filter_operands import (
    checked_field,
    checked_operand,
    checked_operator,
    count_values,
    is_operator,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH_LIMIT = 8
"""Levels of filters inside filters."""

CLAUSE_LIMIT = 64
"""Comparisons in a filter; each list or object among the items of `$in` and `$nin` is one more."""

VALUE_LIMIT = 10_000
"""JSON values in all operands of a filter together."""

Operator = Literal[
    "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$contains", "subset"
]
"""What a comparison applies; `subset` is what an object without operators means."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One operator applied to one top-level key. The operand is plain JSON, a copy."""

    field: str
    operator: Operator
    operand: Any


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; without parts, everything matches."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Filter


Filter: TypeAlias = Comparison | And | Or | Not


def parse_filter(value: Mapping[str, Any] | None) -> Filter | None:
    """Return the filter a caller wrote, or `None` where it restricts nothing.

    Raises:
        InvalidFilterError: An operator is unknown, misplaced or has an operand it cannot take, or
            `$and` or `$or` is empty.
        LimitExceededError: More than 64 clauses, 8 levels of filters, or operands of more than
            8 levels or 10,000 values.
    """
    if value is None:
        return None
    parsed = _parse(value, at="filter", depth=1)
    _check_size(parsed)
    return None if parsed == And(()) else parsed


def matches(filter: Filter, metadata: Mapping[str, Any]) -> bool:  # noqa: A002 - the glossary's word
    """Tell whether metadata satisfies a filter. Never raises because of what the metadata holds."""
    match filter:
        case And(parts):
            return all(matches(part, metadata) for part in parts)
        case Or(parts):
            return any(matches(part, metadata) for part in parts)
        case Not(part):
            return not matches(part, metadata)
        case Comparison(field, "$exists", operand):
            return (field in metadata) is operand
        case Comparison(field, name, operand):
            return field in metadata and _PREDICATES[name](metadata[field], operand)


def equals(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal and, at every level, of one type."""
    if _type_of(left) is not _type_of(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equals, left, right))
    if isinstance(left, Mapping):
        return left.keys() == right.keys() and all(equals(left[key], right[key]) for key in left)
    return bool(left == right)


def includes(value: Any, wanted: Any) -> bool:
    """Tell whether an object holds every key of `wanted`, recursively; other values are equal."""
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return all(key in value and includes(value[key], wanted[key]) for key in wanted)
    return equals(value, wanted)


_TYPES: tuple[type, ...] = (bool, str, list, Mapping)


def _type_of(value: Any) -> type:
    if value is None:
        return type(None)
    return next((kind for kind in _TYPES if isinstance(value, kind)), float)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, operand: Any) -> bool:
        return _type_of(value) is _type_of(operand) and compare(value, operand)

    return holds


def _is_one_of(value: Any, items: list[Any]) -> bool:
    return any(equals(value, item) for item in items)


_PREDICATES: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": equals,
    "$ne": lambda value, operand: not equals(value, operand),
    "$gt": _ordered(operator.gt),
    "$gte": _ordered(operator.ge),
    "$lt": _ordered(operator.lt),
    "$lte": _ordered(operator.le),
    "$in": _is_one_of,
    "$nin": lambda value, items: not _is_one_of(value, items),
    "$contains": lambda value, item: isinstance(value, list) and _is_one_of(item, value),
    "subset": includes,
}


def _parse(value: Any, *, at: str, depth: int) -> Filter:
    if depth > DEPTH_LIMIT:
        raise LimitExceededError("filter depth", limit=DEPTH_LIMIT, actual=depth)
    if not isinstance(value, Mapping):
        reason = f"must be an object, not {type(value).__name__}; pass field and value"
        raise InvalidFilterError("", at, reason)
    return _joined(tuple(_parse_item(name, item, depth) for name, item in value.items()))


def _joined(parts: tuple[Filter, ...]) -> Filter:
    return parts[0] if len(parts) == 1 else And(parts)


def _parse_item(name: Any, item: Any, depth: int) -> Filter:
    if not is_operator(name):
        return _parse_field(checked_field(name), item)
    if name == "$not":
        return Not(_parse(item, at=name, depth=depth + 1))
    if name not in {"$and", "$or"}:
        reason = "is no operator between filters; use $and, $or or $not, or name a field first"
        raise InvalidFilterError("", name, reason)
    if not isinstance(item, list | tuple) or not item:
        raise InvalidFilterError("", name, "must be a list of at least one filter; add one")
    parts = tuple(_parse(part, at=name, depth=depth + 1) for part in item)
    return And(parts) if name == "$and" else Or(parts)


def _parse_field(field: str, condition: Any) -> Filter:
    if not isinstance(condition, Mapping):
        return _comparison(field, "$eq", condition)
    if not any(map(is_operator, condition)):
        return _comparison(field, "subset", condition)
    names = [checked_operator(field, name) for name in condition]
    return _joined(tuple(map(_comparison, repeat(field), names, condition.values())))


def _comparison(field: str, name: str, operand: Any) -> Comparison:
    return Comparison(field, cast("Operator", name), checked_operand(field, name, operand))


def _comparisons(part: Filter) -> Iterator[Comparison | None]:
    """Yield the comparisons of a filter, and `None` for a filter that is empty."""
    match part:
        case Comparison():
            yield part
        case Not(inner):
            yield from _comparisons(inner)
        case And(()):
            yield None
        case And(parts) | Or(parts):
            for inner in parts:
                yield from _comparisons(inner)


def _check_size(parsed: Filter) -> None:
    comparisons = list(_comparisons(parsed))
    clauses = len(comparisons)
    values = 0
    for comparison in filter(None, comparisons):
        values += count_values(comparison.operand)
        if comparison.operator in {"$in", "$nin"}:
            clauses += sum(isinstance(item, list | dict) for item in comparison.operand)
    if clauses > CLAUSE_LIMIT:
        raise LimitExceededError("filter clauses", limit=CLAUSE_LIMIT, actual=clauses)
    if values > VALUE_LIMIT:
        raise LimitExceededError("filter values", limit=VALUE_LIMIT, actual=values)
