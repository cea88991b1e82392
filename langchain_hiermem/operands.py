"""Filters of LangGraph as filters of HierMem. Pure.

LangGraph's callers may compare with numbers that JSON does not have, and with texts that no store
holds. HierMem refuses these; here they become a filter that says the same of what is stored, where
every number is finite, every integer fits 64 bits and no text holds NUL or a lone surrogate.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from typing import Any

NOTHING: Mapping[str, Any] = {"$in": []}
PRESENT: Mapping[str, Any] = {"$exists": True}

_GREATEST = sys.float_info.max
_INTEGERS = range(-(2**63), 2**63)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ABOVE = frozenset({"$gt", "$gte"})
_BELOW = frozenset({"$lt", "$lte"})
_STRICT = frozenset({"$gt", "$lt"})


def core_filter(given: Any) -> Any:
    """Return a filter as HierMem takes it; what is wrong with it otherwise stays for HierMem."""
    if not isinstance(given, Mapping) or not is_odd(given):
        return given
    return {"$and": [_clause(name, value) for name, value in given.items()]}


def is_odd(value: Any) -> bool:
    """Tell whether a value holds a number or text that cannot be stored."""
    if isinstance(value, str):
        return _UNSTORABLE.search(value) is not None
    if isinstance(value, Mapping):
        return any(is_odd(key) or is_odd(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(map(is_odd, value))
    return _is_odd_number(value)


def _is_odd_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and value not in _INTEGERS


def _holds_odd_number(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_odd_number, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_odd_number, value))
    return _is_odd_number(value)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value


def _clause(name: Any, value: Any) -> dict[Any, Any]:
    if name in {"$and", "$or"} and isinstance(value, list | tuple):
        return {name: [core_filter(part) for part in value]}
    if name == "$not":
        return {name: core_filter(value)}
    field = _cleaned(name)
    if not isinstance(value, Mapping) or not any(map(_is_operator, value)):
        return {field: NOTHING if _holds_odd_number(value) else _cleaned(value)}
    parts = [{field: _condition(operator, operand)} for operator, operand in value.items()]
    return {"$and": parts}


def _is_operator(name: Any) -> bool:
    return isinstance(name, str) and name[:1] == "$" and name[1:2].isalpha()


def _condition(operator: str, operand: Any) -> Mapping[str, Any]:
    """Return what an operator and its operand say of a stored value."""
    if operator in {"$in", "$nin"} and isinstance(operand, list | tuple):
        return {operator: [_cleaned(one) for one in operand if not _holds_odd_number(one)]}
    if not _holds_odd_number(operand):
        return {operator: _cleaned(operand)}
    if operator in _ABOVE | _BELOW and _is_odd_number(operand):
        return _order(operator, operand)
    return {"$eq": NOTHING, "$contains": NOTHING, "$ne": PRESENT}.get(operator, {operator: operand})


def _order(operator: str, operand: float) -> Mapping[str, Any]:
    """Return what a comparison with a number beyond all integers says of a stored number."""
    nearest = _as_float(operand)
    if math.isnan(nearest):
        return NOTHING
    if math.isinf(nearest):
        is_every = (nearest > 0) == (operator in _BELOW)
        return {"$lte": _GREATEST} if is_every else NOTHING
    if nearest == operand:
        is_strict = operator in _STRICT
    else:
        is_strict = (nearest < operand) == (operator in _ABOVE)
    name = "$gt" if operator in _ABOVE else "$lt"
    return {name if is_strict else f"{name}e": nearest}


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, 1 if number > 0 else -1)
