"""Numbers inside JSON text, compared exactly by a database that reads them almost exactly.

Python writes every float as the shortest text that reads back as the same float, so that equal
floats are equal texts ("tokens"). SQLite reads such a text correctly on some builds and up to one
unit in the last place beside it on others (measured: 3.40 and 3.54 none of 100,000, 3.43 and 3.46
one of 5,000). So a comparison trusts the database's number only where it is `MARGIN` units away
from the bound, and compares tokens in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Number = int | float
Order = Literal["$gt", "$gte", "$lt", "$lte"]

MARGIN = 16
"""Units in the last place by which a database may misread a float. Builds without a wide float
multiply up to 14 times to reach the largest exponents, half a unit each, twice as many assumed."""

UPWARD: frozenset[Order] = frozenset({"$gt", "$gte"})

_INTEGERS = 2**63
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class FloatBound:
    """When a float is on the right side: read as beyond `sure`, or written as one of `near`."""

    sure: float
    near: tuple[str, ...]


def number_tokens(number: Number) -> tuple[str, ...]:
    """Return every way in which JSON text of ours writes a number equal to `number`."""
    integer = integer_equal_to(number)
    tokens = [] if integer is None else [str(integer)]
    if float(number) == number:
        tokens.extend(_float_tokens(float(number)))
    return tuple(tokens)


def integer_equal_to(number: Number) -> int | None:
    """Return the integer of 64 bits that equals a number, or `None`."""
    if -_INTEGERS <= number < _INTEGERS and number == int(number):
        return int(number)
    return None


def is_read_exactly(number: Number) -> bool:
    """Tell whether no database misreads the number: an integer that every float can hold."""
    return abs(number) <= _EXACT and number == int(number)


def around(number: Number) -> tuple[float, float]:
    """Return between which floats, both included, a database reads what equals `number`."""
    return _stepped(number, -math.inf, MARGIN + 1), _stepped(number, math.inf, MARGIN + 1)


def neighbours(number: Number) -> list[Number]:
    """Return all numbers as which a database may read what equals `number`."""
    value, high = around(number)
    found = [number, value]
    while value < high:
        value = math.nextafter(value, math.inf)
        found.append(value)
    return found


def integer_bound(order: Order, number: Number) -> Number:
    """Return what integers compare with, under the same order, to compare with `number`."""
    if isinstance(number, float) and abs(number) >= _EXACT:
        return number
    return math.floor(number) if order in {"$gt", "$lte"} else math.ceil(number)


def float_bound(order: Order, number: Number) -> FloatBound:
    """Return how floats are told apart by `number`."""
    toward = math.inf if order in UPWARD else -math.inf
    value = _stepped(number, -toward, 1)
    near: list[str] = []
    for _ in range(2 * MARGIN + 4):
        if _holds(order, value, number):
            near.extend(_float_tokens(value))
        value = math.nextafter(value, toward)
    return FloatBound(_stepped(number, toward, MARGIN + 1), tuple(near))


def _holds(order: Order, value: float, number: Number) -> bool:
    if math.isinf(value):
        return False
    if order in UPWARD:
        return value > number or (order == "$gte" and value == number)
    return value < number or (order == "$lte" and value == number)


def _float_tokens(value: float) -> Iterator[str]:
    if value == 0:
        yield from ("0.0", "-0.0")
    else:
        yield repr(value)


def _stepped(number: Number, toward: float, steps: int) -> float:
    value = float(number)
    for _ in range(steps):
        value = math.nextafter(value, toward)
    return value
