"""Values of foreign records as text: verbatim where they are text, else as compact JSON. Pure.

Compact JSON is JavaScript's: checksums and ids of other systems were made from it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hiermem_core.models.plain import load_json

_TEXT = json.JSONEncoder(ensure_ascii=False)
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_DECIMAL_BELOW = 1e21
_DECIMAL_FROM = 1e-6

_KINDS: dict[type, str] = {
    dict: "object",
    list: "array",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Value:
    """What a record holds, as text.

    Attributes:
        kind: What it was where it was no text: `object`, `array`, `number`, `boolean`, `null`.
    """

    content: str
    kind: str | None = None


def value_of(raw: Any) -> Value:
    """Return a JSON value: a text as it is, any other as compact JSON."""
    if isinstance(raw, str):
        return Value(raw)
    return Value(compact_json(raw), _KINDS[type(raw)])


def decoded(text: str) -> Value:
    """Return the value of a column of JSON text; text that is no JSON is taken as it is."""
    try:
        value = load_json(text)
    except ValueError:
        return Value(text)
    return Value(value) if isinstance(value, str) else Value(text, _KINDS[type(value)])


def structured(text: str) -> Value:
    """Return the value of a text that may be the JSON of an object or a list; else it is text."""
    if text.lstrip()[:1] not in {"{", "["}:
        return Value(text)
    found = decoded(text)
    return found if found.kind in {"object", "array"} else Value(text)


def compact_json(value: Any) -> str:
    """Return a JSON value as JavaScript writes it: no spaces, floats in its form."""
    text = _encoded(value) if _has_float(value) else _COMPACT.encode(value)
    return _without_surrogates(text)


def depth_of(value: Any) -> int:
    """Return how many objects and lists of a JSON value stand in each other."""
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def _has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_float, value))
    return isinstance(value, float)


def _encoded(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_TEXT.encode(key)}:{_encoded(item)}" for key, item in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_encoded, value)) + "]"
    return _number(value) if isinstance(value, float) else _COMPACT.encode(value)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "null"
    if value.is_integer() and abs(value) < _DECIMAL_BELOW:
        return str(int(value))
    text = repr(value)
    if _DECIMAL_FROM <= abs(value) < _DECIMAL_BELOW:
        return format(Decimal(text), "f")
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{'-' if exponent[0] == '-' else '+'}{exponent.lstrip('+-0')}"


def _without_surrogates(text: str) -> str:
    if text.isascii():
        return text
    return "".join(f"\\u{ord(one):04x}" if "\ud800" <= one <= "\udfff" else one for one in text)
