"""A copy equals what was copied and shares nothing with it that can change."""

from __future__ import annotations

import copy
import pathlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from core.working.values import VALUES, Colour, Model, a_hit, same
from hypothesis import given
from pydantic import BaseModel

from hiermem_core import ContextWarning, Hit, SearchResult
from hiermem_core.working import copying
from hiermem_core.working.copying import UncopyableError, copier


@given(value=VALUES)
def test_a_copy_equals_what_was_copied_and_shares_nothing_that_can_change(value):
    make = copier(value)
    pristine = copy.deepcopy(value)

    one, other = make(), make()
    spoil(value)
    spoil(one)

    assert same(other, pristine)
    assert same(make(), pristine)


def spoil(value):
    """Change whatever can be changed in a value."""
    if isinstance(value, list):
        for item in value:
            spoil(item)
        value.append("spoilt")
    elif isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value["spoilt"] = True
    elif isinstance(value, tuple):
        for item in value:
            spoil(item)


@dataclass
class Loose:
    parts: list[int]
    more: dict[str, Any] = field(default_factory=dict)


class Plain:
    def __init__(self, parts):
        self.parts = parts

    def __eq__(self, other):
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None


class Slotted:
    __slots__ = ("empty", "parts")

    def __init__(self, parts):
        self.parts = parts

    def __eq__(self, other):
        return type(other) is type(self) and self.parts == other.parts

    __hash__ = None


class Listed(list):
    """A list with something of its own."""


class Reduced:
    """It says itself how it is copied."""

    def __init__(self, parts):
        self.parts = parts

    def __reduce__(self):
        return (Reduced, (list(self.parts),))

    def __eq__(self, other):
        return type(other) is type(self) and self.parts == other.parts

    __hash__ = None


def shared():
    part = [1]
    return {"a": part, "b": part}


def looped():
    outer = Plain([1])
    outer.parts.append(outer)
    return outer


@pytest.mark.parametrize(
    "make_value",
    [
        lambda: a_hit(metadata={"a": [1, {"b": 2}]}, tags=("x",), embedding=(1.0,)),
        lambda: SearchResult([a_hit(metadata={"a": 1})], warnings=[ContextWarning("w")]),
        lambda: Loose([1], {"a": [1]}),
        lambda: Plain([1, [2]]),
        lambda: Slotted([1]),
        lambda: Model(x=1, parts=[1, 2]),
        lambda: [Model(x=1), {"m": Model(x=2)}],
        lambda: Listed([1]),
        lambda: Reduced([1]),
        lambda: OrderedDict(a=[1]),
        lambda: {"s": {1, 2}, "f": frozenset({1}), "b": bytearray(b"a")},
        lambda: ([1], (2, [3])),
        lambda: {(1, 2): [3]},
        shared,
        lambda: np.array([1.0, 2.0]).tolist(),
        lambda: [Colour.RED, pathlib.Path("a"), int, len],
    ],
)
def test_d14_copies_equal_what_deepcopy_makes(make_value):
    value = make_value()

    fresh = copier(value)()

    assert fresh == value
    assert type(fresh) is type(value)
    assert repr(fresh).replace(hex(id(fresh)), "") == repr(value).replace(hex(id(value)), "")
    for one, other in mutable_parts(fresh, value):
        assert one is not other


def mutable_parts(left, right):
    """Yield the parts of two values that can change, in pairs."""
    if isinstance(left, list | dict | set | bytearray | Plain | Slotted | Loose | BaseModel):
        yield left, right
    if isinstance(left, dict):
        for key in left:
            yield from mutable_parts(left[key], right[key])
    elif isinstance(left, list | tuple | SearchResult):
        for one, other in zip(left, right, strict=True):
            yield from mutable_parts(one, other)
    elif isinstance(left, Hit):
        yield from mutable_parts(left.metadata, right.metadata)
    elif hasattr(left, "parts"):
        yield from mutable_parts(left.parts, right.parts)


def test_d14_private_parts_of_models_are_copied_too():
    value = Model(x=1)
    value._hidden["a"] = 1
    make = copier(value)

    value._hidden["a"] = 2
    make()._hidden["a"] = 3

    assert make()._hidden == {"a": 1}
    assert make().model_fields_set == {"x"}


def test_d14_what_stands_in_two_places_still_does_in_a_copy():
    made, looping = copier(shared())(), copier(looped())()

    assert made["a"] is made["b"]
    assert looping.parts[1] is looping


def test_what_cannot_be_copied_says_so():
    for value in ((n for n in range(2)), [threading.Lock()], {"a": (n for n in "a")}):
        with pytest.raises(UncopyableError):
            copier(value)


def test_immutable_answers_are_their_own_copies():
    for value in ("tea", 1, ("a", 1.5, None), frozenset({1}), datetime(2026, 1, 1, tzinfo=UTC)):
        assert copier(value)() is value


def test_the_hits_of_a_search_are_copied_without_deepcopy(monkeypatch):
    hits = SearchResult([a_hit(id=str(n), metadata={"n": [n]}) for n in range(10)])
    monkeypatch.delattr(copying, "deepcopy")

    assert copier(hits)() == hits
