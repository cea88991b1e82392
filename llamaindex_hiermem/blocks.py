"""Content blocks: found in the installed core, written as plain JSON, and rebuilt exactly.

No block class is imported by name: a kind that the installed core lacks is then merely absent.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from enum import Enum
from functools import cache
from io import BytesIO, IOBase
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, get_args

from llama_index.core.bridge.pydantic import AnyUrl, BaseModel
from llama_index.core.llms import ChatMessage

from hiermem_core import PlainEncoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Fields = dict[str, Any]

_PLACES = frozenset({"path", "url"})
_TAGGED: Mapping[str, Callable[[str], Any]] = {
    "path": Path,
    "url": AnyUrl,
    "ascii": lambda text: text.encode("ascii"),
}
"""Field values travel as a tuple `(tag, text)` where JSON has no type, or base64 would double."""


@cache
def block_classes() -> Mapping[str, type[BaseModel]]:
    """Return the block classes of the installed core by their `block_type`."""
    models = _models_in(ChatMessage.model_fields["blocks"].annotation)
    return {model.model_fields["block_type"].default: model for model in models}


def build_block(fields: Mapping[str, Any]) -> BaseModel:
    """Return a new block with exactly these field values; fields its class lacks are left out.

    The class checks the shape only. Its validators would look for the file behind a path, guess a
    type from encoded bytes and encode raw ones, so the values themselves are set afterwards.

    Raises:
        ValueError: The installed core has no such block.
    """
    model = block_classes().get(fields["block_type"])
    if model is None:
        raise ValueError(f"this llama-index-core has no block kind {fields['block_type']!r}")
    block = model.model_validate(_shape(fields))
    _fill(block, fields)
    return block


def base64_text(payload: object) -> str:
    """Return a payload as base64 text; a block holds it encoded, raw, as a stream or not at all."""
    if isinstance(payload, BytesIO):
        return b64encode(payload.getvalue()).decode("ascii")
    if not isinstance(payload, bytes):
        return ""
    return (payload if _is_base64(payload) else b64encode(payload)).decode("ascii")


class MessageEncoder(PlainEncoder):
    """Encode messages and blocks, and note the values that will not come back as they were."""

    def fields(self, model: BaseModel, path: str = "$") -> Fields:
        """Return the fields of a message or block as plain JSON. Never reads a file."""
        return {name: self._field(value, f"{path}.{name}") for name, value in model}

    def encode(self, value: Any, path: str = "$") -> Any:
        """Return `value` as JSON; an object that becomes a dict or a bare value is noted too."""
        if hasattr(value, "model_dump") or (isinstance(value, Enum) and value != value.value):
            self.replaced.append(path)
        return super().encode(value, path)

    def _field(self, value: Any, path: str) -> Any:
        if isinstance(value, BaseModel):
            return self.fields(value, path)
        if isinstance(value, list):
            return [self._field(item, f"{path}[{index}]") for index, item in enumerate(value)]
        if isinstance(value, IOBase) or (isinstance(value, AnyUrl) and type(value) is not AnyUrl):
            self.replaced.append(path)
        return self.encode(_portable(value), path)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _shape(value: Any) -> Any:
    """Return fields without what a validator would look up, guess from or encode."""
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _shape(item)
        for name, item in value.items()
        if name not in _PLACES and not isinstance(item, bytes | tuple)
    }


def _fill(model: BaseModel, fields: Mapping[str, Any]) -> None:
    for name in fields.keys() & type(model).model_fields.keys():
        current, value = getattr(model, name), fields[name]
        if isinstance(current, BaseModel):
            _fill(current, value)
        elif _holds_models(current):
            for item, item_fields in zip(current, value, strict=True):
                _fill(item, item_fields)
        else:
            setattr(model, name, _untagged(value))


def _holds_models(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, BaseModel) for item in value)


def _portable(value: Any) -> Any:
    if isinstance(value, bytes) and value.isascii():
        return "ascii", value.decode("ascii")
    if isinstance(value, PurePath):
        return "path", str(value)
    if isinstance(value, AnyUrl):
        return "url", str(value)
    if isinstance(value, IOBase):
        return ("ascii", base64_text(value)) if isinstance(value, BytesIO) else None
    return value


def _untagged(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    tag, text = value
    return _TAGGED[tag](text)


def _is_base64(payload: bytes) -> bool:
    try:
        b64decode(payload, validate=True)
    except binascii.Error:
        return False
    return True
