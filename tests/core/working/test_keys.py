"""What asks alike has one key, and what does not has another."""

from __future__ import annotations

import copy
import decimal
import functools
import pathlib
import threading
from collections import namedtuple
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, Flag, IntEnum
from typing import Any

import numpy as np
import pytest
from core.working.values import VALUES, Model, Point, same
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, PrivateAttr

from hiermem_core import MemoryQuery
from hiermem_core.working.fields import fields_of
from hiermem_core.working.keys import NOT_GIVEN, UnkeyableError, form_of, freeze
from hiermem_core.working.shapes import configurable_of, owner_of


@given(left=VALUES, right=VALUES)
def test_values_share_a_key_exactly_if_they_are_equal_and_of_one_type(left, right):
    assert (freeze(left) == freeze(right)) == same(left, right)


@given(value=VALUES)
def test_a_key_is_stable_and_can_be_hashed(value):
    assert hash(freeze(value)) == hash(freeze(copy.deepcopy(value)))
    assert freeze(value) == freeze(copy.deepcopy(value))


class Number(IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - it is one that is tested
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (1, Number.ONE),
        ("1", 1),
        ("a", b"a"),
        ([1], (1,)),
        ((1, 2), Pair(1, 2)),
        ({1}, frozenset({1})),
        (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
        (datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 14, tzinfo=EAST)),
        (Point(1), Point(2)),
        (Point(1), (1, None)),
        (Model(x=1), Model(x=2)),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
        (np.array([1.0], np.float32), np.array([1.0], np.float64)),
        (pathlib.PurePosixPath("a"), "a"),
        (None, ()),
        (int, str),
    ],
)
def test_d12_what_is_not_the_same_has_another_key(left, right):
    assert freeze(left) != freeze(right)
    assert freeze(left) == freeze(copy.deepcopy(left))
    assert freeze(right) == freeze(copy.deepcopy(right))


class Shy(Enum):
    """Its members look alike."""

    ONE = 1
    TWO = 2

    def __repr__(self):
        return "shy"


class Access(Flag):
    READ = 1
    WRITE = 2


def test_d12_members_of_an_enum_are_told_apart_by_their_names():
    assert freeze(Shy.ONE) != freeze(Shy.TWO)
    assert freeze(Shy.ONE) == freeze(Shy["ONE"])
    kinds = [Access.READ, Access.WRITE, Access.READ | Access.WRITE, Access(0)]
    assert len({freeze(kind) for kind in kinds}) == 4


def test_d12_to_ask_nothing_is_not_to_ask_none():
    needing, optional = form_of(lambda query: query), form_of(lambda query="all": query)

    assert needing.read((), {}).query is NOT_GIVEN
    assert freeze(NOT_GIVEN) != freeze(None)
    assert optional.read((), {}).query == "all"
    assert optional.read((None,), {}).query is None


def test_the_owner_of_a_function_is_found_through_what_is_bound_to_it():
    class Owner:
        def search(self, query, limit):
            return [query, limit]

        @classmethod
        def of(cls, query):
            return cls

    owner, plain = Owner(), len

    assert owner_of(owner.search) is owner_of(functools.partial(owner.search, limit=1)) is owner
    assert owner_of(plain) is plain
    assert owner_of(Owner.of).__func__ is Owner.of.__func__


class Retriever:
    def __init__(self, **fields):
        vars(self).update(fields)
        self._top_k = 2

    @property
    def top_k(self):
        return self._top_k

    @top_k.setter
    def top_k(self, value):
        self._top_k = value

    @property
    def fixed(self):
        raise AssertionError("nobody can set it")


class ModelRetriever(BaseModel):
    k: int = 2
    store: Any = None
    asked: list[str] = []
    _hidden: int = PrivateAttr(default=0)


@pytest.mark.parametrize("kind", [Retriever, ModelRetriever])
def test_what_a_retriever_is_set_to_counts_and_what_its_searches_extend_does_not(kind):
    retriever = kind(k=2, store=Stranger(), asked=[], where={"year": 2024})
    before = fields_of(retriever)

    retriever.asked.append("tea")
    retriever._hidden = 1
    alike = fields_of(retriever)
    retriever.k = 3
    other_k = fields_of(retriever)
    retriever.store = Stranger()
    other_store = fields_of(retriever)

    assert hash(before) == hash(alike)
    assert before == alike
    assert len({before, other_k, other_store}) == 3


def test_a_dict_changed_in_place_and_a_property_that_was_set_count():
    retriever = Retriever(where={"year": 2024}, many=dict.fromkeys(range(1000)), odd={"a": len})
    before = fields_of(retriever)

    retriever.where["year"] = 2025
    other_where = fields_of(retriever)
    retriever.top_k = 5

    assert len({before, other_where, fields_of(retriever)}) == 3


class Stranger:
    """Nobody knows what is the same about it."""


@pytest.mark.parametrize(
    "value",
    [object(), Stranger(), lambda: 1, threading.Lock(), np.array([object()]), Text("a"), {1: {}}],
)
def test_d27_what_has_no_stable_key_says_so(value):
    if type(value) is dict:
        value[1] = value
        with pytest.raises(RecursionError):
            freeze(value)
        return
    with pytest.raises(UnkeyableError):
        freeze([{"deep": value}])


def searching(query, limit=10, *, where=None, **more):
    raise AssertionError("it is only read")


@given(limit=st.sampled_from([5, 10]), where=st.sampled_from([None, "here"]), how=st.integers(0, 3))
def test_d10_however_a_call_is_written_it_is_read_alike(limit, where, how):
    form = form_of(searching)
    args = ("tea", limit)[: how + 1] if how < 2 else ()
    kwargs = {"where": where}
    if how != 1:
        kwargs["limit"] = limit
    if not args:
        kwargs["query"] = "tea"

    asked = form.read(args, kwargs)

    counted = {"limit": limit, "where": where}
    told = {name: freeze(v) for name, v in counted.items() if v not in (10, None)}
    assert asked.query == "tea"
    assert dict(form.arguments(asked.arguments)) == told


def test_a_query_with_fields_is_read_like_its_text_with_arguments():
    form = form_of(lambda query=None, /, **fields: None, opened={"MemoryQuery": "text"})

    as_value = form.read((MemoryQuery(text="tea", limit=5),), {"offset": 1})
    as_words = form.read(("tea",), {"limit": 5, "offset": 1})

    assert as_value.query == as_words.query == "tea"
    assert form.arguments(as_value.arguments) == form.arguments(as_words.arguments)


def test_a_keyword_named_like_a_positional_parameter_is_another_one():
    form = form_of(lambda query, /, **fields: None)

    asked = form.read(("tea",), {"query": "milk"})

    assert (asked.query, asked.arguments) == ("tea", {"query": "milk"})


def test_what_a_framework_notes_in_a_config_decides_no_answer():
    noted = {"thread_id": "t1", "__pregel_read": object(), "checkpoint_ns": "a"}

    assert configurable_of({"configurable": noted, "callbacks": [object()]}) == {"thread_id": "t1"}
    assert configurable_of({"configurable": {"__x": 1}}) is None
    assert configurable_of({"tags": ["a"]}) is configurable_of(None) is None
