"""What a retriever is set to, which decides its answers as arguments do. Pure."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any

from hiermem_core.working.keys import Frozen, UnkeyableError, freeze

_BY_VALUE = (str, bytes, int, float, complex, type(None), tuple, frozenset, dict, Enum)
_MOST_ITEMS = 100


class _This:
    """An object that counts by which one it is."""

    __slots__ = ("_thing",)

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _This) and self._thing is other._thing

    def __hash__(self) -> int:
        return id(self._thing)


def fields_of(retriever: Any) -> Frozen:
    """Return what the public fields of a retriever are set to.

    Those declared where it is a pydantic model, else its public attributes, and the properties that
    can be set. Plain values and dicts count by value. All else counts by which object it is: a
    list that each search extends decides nothing, and another list or store in its place does.
    """
    return tuple([(name, _frozen(value)) for name, value in _public(retriever)])


def _public(retriever: Any) -> list[tuple[str, Any]]:
    state = vars(retriever)
    declared = getattr(type(retriever), "model_fields", None)
    if declared is not None:
        return [(name, state[name]) for name in declared if name in state]
    own = [(name, value) for name, value in state.items() if not name.startswith("_")]
    settable = _settable(type(retriever))  # type: ignore[arg-type]  # classes can be hashed
    return own + [(name, getattr(retriever, name, None)) for name in settable]


@lru_cache(512)
def _settable(kind: type) -> tuple[str, ...]:
    members = ((name, getattr(kind, name, None)) for name in dir(kind) if name[:1] != "_")
    return tuple(name for name, it in members if isinstance(it, property) and it.fset is not None)


def _frozen(value: Any) -> Frozen:
    if not isinstance(value, _BY_VALUE) or (isinstance(value, dict) and len(value) > _MOST_ITEMS):
        return _This(value)
    try:
        return freeze(value)
    except (UnkeyableError, RecursionError):
        return _This(value)
