"""What the names and operands of a filter may be."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any

from hiermem_core.errors import InvalidFilterError, LimitExceededError
from hiermem_core.models.text import is_clean

OPERAND_DEPTH_LIMIT = 8
"""Levels of lists and objects in one operand."""

_INTEGERS = range(-(2**63), 2**63)

_FOREIGN_WORDS = frozenset({"and", "or", "not", "between", "like", "ilike", "regex"})
_LONG_WORD = 5
_LEAST_LIKENESS = 0.85


def is_operator(name: object) -> bool:
    """Tell whether a name is read as an operator, known or not: `$`, then a letter."""
    return isinstance(name, str) and name[:1] == "$" and name[1:2].isalpha()


def checked_field(name: object) -> str:
    """Return a field's name.

    Raises:
        InvalidFilterError: It is not text, or holds a lone surrogate or NUL.
    """
    if not isinstance(name, str):
        reason = f"a field must be text, not {type(name).__name__}; name it"
        raise InvalidFilterError("", "field", reason)
    if not is_clean(name):
        reason = "a field's name holds a lone surrogate or NUL; remove it"
        raise InvalidFilterError("", "field", reason)
    return name


def checked_operator(field: str, name: object) -> str:
    """Return the name of an operator on a field.

    Raises:
        InvalidFilterError: There is no such operator.
    """
    if name in _KNOWN:
        return str(name)
    reason = "stands beside operators and is none; use $eq to compare a whole object"
    if is_operator(name):
        reason = f"is no operator; use one of {', '.join(_KNOWN)}"
    raise InvalidFilterError(field, str(name), reason)


def checked_operand(field: str, operator: str, operand: Any) -> Any:
    """Return a copy of an operand as plain JSON.

    Raises:
        InvalidFilterError: The operator cannot take it.
        LimitExceededError: It has more than 8 levels.
    """
    needed, is_taken = _TAKES[operator]
    plain = _OperandCopy(field, operator).of(operand)
    if not is_taken(plain):
        raise InvalidFilterError(field, operator, f"takes {needed}; change the operand")
    if operator == "subset":
        _refuse_operators(field, plain)
    return plain


def count_values(operand: Any) -> int:
    """Return how many JSON values an operand is made of, itself included."""
    if isinstance(operand, dict):
        return 1 + sum(map(count_values, operand.values()))
    if isinstance(operand, list):
        return 1 + sum(map(count_values, operand))
    return 1


def _has_order(operand: Any) -> bool:
    return isinstance(operand, int | float | str) and not isinstance(operand, bool)


def _is_list(operand: Any) -> bool:
    return isinstance(operand, list)


def _is_boolean(operand: Any) -> bool:
    return isinstance(operand, bool)


def _is_any(_operand: Any) -> bool:
    return True


_TAKES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("$eq", "$ne", "$contains", "subset"), ("any value", _is_any)),
    **dict.fromkeys(("$gt", "$gte", "$lt", "$lte"), ("a number or a text", _has_order)),
    **dict.fromkeys(("$in", "$nin"), ("a list", _is_list)),
    "$exists": ("true or false", _is_boolean),
}

_KNOWN = sorted(filter(is_operator, _TAKES))
_WORDS = {name[1:] for name in _KNOWN} | _FOREIGN_WORDS
_LONG_WORDS = sorted(word for word in _WORDS if len(word) >= _LONG_WORD)


class _OperandCopy:
    """Copy an operand, refusing what no stored metadata can equal."""

    def __init__(self, field: str, operator: str) -> None:
        self._field = field
        self._operator = operator

    def of(self, value: Any, path: str = "$", depth: int = 0) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, int):
            return self._integer(value, path)
        if isinstance(value, float):
            return self._real(value, path)
        if depth >= OPERAND_DEPTH_LIMIT:
            raise LimitExceededError("filter operand depth", limit=depth, actual=depth + 1)
        if isinstance(value, Mapping):
            return {
                self._key(key, path): self.of(item, f"{path}.{key}", depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.of(item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value)]
        raise self._refusal(path, f"{type(value).__name__} is no JSON type; convert it")

    def _text(self, value: str, path: str) -> str:
        if not is_clean(value):
            raise self._refusal(path, "holds a lone surrogate or NUL; remove it")
        return str.__str__(value)

    def _integer(self, value: int, path: str) -> int:
        if int(value) not in _INTEGERS:
            raise self._refusal(path, "is beyond 64 bits; use a float or a text")
        return int(value)

    def _real(self, value: float, path: str) -> float:
        if not math.isfinite(value):
            raise self._refusal(path, "is no finite number; pass one")
        return float(value)

    def _key(self, key: object, path: str) -> str:
        if not isinstance(key, str):
            raise self._refusal(path, f"has a key that is {type(key).__name__}; use text")
        return self._text(key, path)

    def _refusal(self, path: str, reason: str) -> InvalidFilterError:
        return InvalidFilterError(self._field, self._operator, f"operand {path} {reason}")


def _refuse_operators(field: str, wanted: dict[str, Any]) -> None:
    """Refuse a subset whose keys were meant as operators."""
    if wanted and all(map(_reads_as_operator, wanted)):
        reason = "looks like an operator without its $; add it, or use $eq for a whole object"
        raise InvalidFilterError(field, next(iter(wanted)), reason)
    for inner in wanted.values():
        _refuse_nested_operators(field, inner)


def _refuse_nested_operators(field: str, wanted: Any) -> None:
    if not isinstance(wanted, dict):
        return
    for key, inner in wanted.items():
        if is_operator(key):
            reason = "stands inside a nested object; operators apply to top-level fields only"
            raise InvalidFilterError(field, key, reason)
        _refuse_nested_operators(field, inner)


def _reads_as_operator(key: str) -> bool:
    """Tell whether a key is a word of filter languages, or a slip of one of their longer words."""
    return key in _WORDS or bool(difflib.get_close_matches(key, _LONG_WORDS, 1, _LEAST_LIKENESS))
