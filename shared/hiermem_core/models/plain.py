"""Plain JSON, and the typed encoding that carries a few more Python values through it.

JSON has no bytes, dates, tuples, sets, non-text keys or infinities. `to_plain` writes such a value
as `{"$hiermem": <kind>, "value": ...}` and `from_plain` restores it. Nothing is ever revived as a
class beyond the closed list here, and a stored mapping that looks like a tag is escaped.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from hiermem_core.errors import InvalidInputError

_TAG = "$hiermem"
_REPLACED = "replaced"

_DECODERS: dict[str, Callable[[Any], Any]] = {
    "bytes": base64.b64decode,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "uuid": UUID,
    "decimal": Decimal,
    "float": float,
    "tuple": lambda items: tuple(from_plain(item) for item in items),
    "set": lambda items: {from_plain(item) for item in items},
    "frozenset": lambda items: frozenset(from_plain(item) for item in items),
    "mapping": lambda pairs: {from_plain(key): from_plain(value) for key, value in pairs},
    _REPLACED: lambda name: f"[a value of type {name} was not stored]",
}


_TEXT_ENCODERS: tuple[tuple[Any, str, Callable[[Any], str]], ...] = (
    ((bytes, bytearray), "bytes", lambda value: base64.b64encode(value).decode("ascii")),
    (datetime, "datetime", datetime.isoformat),
    (date, "date", date.isoformat),
    (UUID, "uuid", str),
    (Decimal, "decimal", str),
)


def dump_json(value: Any) -> str:
    """Return `value` as compact JSON text, non-ASCII characters kept.

    Raises:
        InvalidInputError: JSON cannot carry it: NaN, an infinity, bytes, too deep, not a JSON type.
    """
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"is not plain JSON ({type(error).__name__}); send JSON types only"
        raise InvalidInputError("value", reason) from error


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def load_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: It is not JSON; NaN and infinities are not.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def load_plain(text: str) -> Any:
    """Return the value whose plain form `dump_json` wrote.

    Raises:
        ValueError: It is not JSON.
    """
    value = load_json(text)
    return from_plain(value) if _TAG in text else value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


class PlainEncoder:
    """Turn Python values into plain JSON values.

    Attributes:
        replaced: Paths of the values that were replaced by a marker, such as `$.artifact`.
    """

    def __init__(self) -> None:
        self.replaced: list[str] = []

    def encode(self, value: Any, path: str = "$") -> Any:
        """Return `value` as JSON; what has no encoding becomes a marker with its type name."""
        if isinstance(value, Enum):
            return self.encode(value.value, path)
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else _tagged("float", repr(value))
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if isinstance(value, list):
            return self._items(value, path)
        return self._typed(value, path)

    def _items(self, items: Any, path: str) -> list[Any]:
        return [self.encode(item, f"{path}[{index}]") for index, item in enumerate(items)]

    def _mapping(self, value: Mapping[Any, Any], path: str) -> Any:
        if all(type(key) is str for key in value) and _TAG not in value:
            return {key: self.encode(item, f"{path}.{key}") for key, item in value.items()}
        pairs = [
            [self.encode(key, path), self.encode(item, f"{path}.{key}")]
            for key, item in value.items()
        ]
        return _tagged("mapping", pairs)

    def _typed(self, value: Any, path: str) -> Any:
        for kind, name, as_text in _TEXT_ENCODERS:
            if isinstance(value, kind):
                return _tagged(name, as_text(value))
        if isinstance(value, tuple):
            return _tagged("tuple", self._items(value, path))
        if isinstance(value, set | frozenset):
            kind = "set" if isinstance(value, set) else "frozenset"
            return _tagged(kind, sorted(self._items(value, path), key=dump_json))
        fields = _model_fields(value)
        if fields is not None:
            return self.encode(fields, path)
        self.replaced.append(path)
        return _tagged(_REPLACED, type(value).__name__)


def _model_fields(value: Any) -> Any:
    """Return what a pydantic-like value dumps to, or `None` where it has or gives no dump."""
    dump = getattr(value, "model_dump", None)
    if isinstance(value, type) or not callable(dump):
        return None
    try:
        return dump()
    except Exception:  # noqa: BLE001 - a stranger's dump may raise anything; the marker serves
        return None


def to_plain(value: Any) -> Any:
    """Return `value` as plain JSON; `from_plain` gives an equal value back."""
    return PlainEncoder().encode(value)


def from_plain(value: Any) -> Any:
    """Return the Python value that `to_plain` encoded."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {_TAG, "value"} and value[_TAG] in _DECODERS:
        return _DECODERS[value[_TAG]](value["value"])
    return {key: from_plain(item) for key, item in value.items()}


def _tagged(kind: str, value: Any) -> dict[str, Any]:
    return {_TAG: kind, "value": value}
