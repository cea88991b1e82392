"""The pure rules of working memory: keys, copies, names."""

from __future__ import annotations

import copy
import decimal
import functools
import pathlib
import threading
import timeit
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, Flag, IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, PrivateAttr

from hiermem_core import ContextWarning, Hit, MemoryQuery, SearchResult
from hiermem_core.working.answers import (
    first_expiry,
    hits_in,
    is_current,
    is_weak,
    tells_of_failure,
)
from hiermem_core.working.copying import UncopyableError, copier
from hiermem_core.working.fields import fields_of
from hiermem_core.working.keys import NOT_GIVEN, UnkeyableError, form_of, freeze
from hiermem_core.working.shapes import configurable_of, owner_of
from hiermem_core.working.writes import (
    adds,
    content_of,
    searches,
    words_of,
    writes,
    writing_methods,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, -0.0, 1.0, 1.5, float("inf")])
    | st.text("ab", max_size=2)
    | st.binary(max_size=2)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(left, right):
    """Tell whether two values are equal and of one type, all the way down, dicts in order."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return [*left] == [*right] and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return repr(left) == repr(right)


@given(left=VALUES, right=VALUES)
def test_values_share_a_key_exactly_if_they_are_equal_and_of_one_type(left, right):
    assert (freeze(left) == freeze(right)) == same(left, right)


@given(value=VALUES)
def test_a_key_is_stable_and_can_be_hashed(value):
    assert hash(freeze(value)) == hash(freeze(copy.deepcopy(value)))
    assert freeze(value) == freeze(copy.deepcopy(value))


class Colour(Enum):
    RED = 1


class Number(IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


@dataclass
class Point:
    x: int
    y: Any = None


class Model(BaseModel):
    x: int
    parts: list[int] = []
    _hidden: dict[str, int] = PrivateAttr(default_factory=dict)


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


def a_hit(**fields):
    given = dict.fromkeys(Hit.__dataclass_fields__)
    told = {"id": "1", "content": "tea", "score": 0.5, "explanation": {}}
    return Hit(**{**given, **told, **fields})


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


def test_copies_are_made_much_faster_than_by_deepcopy():
    hits = SearchResult([a_hit(id=str(n), metadata={"n": n}) for n in range(10)])
    measure = functools.partial(timeit.repeat, number=20, repeat=5)

    ours, plain = min(measure(copier(hits))), min(measure(lambda: copy.deepcopy(hits)))

    assert ours < plain / 3


def test_a_result_expires_with_its_first_entry():
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)

    assert first_expiry(SearchResult([a_hit(expires_at=late), a_hit(expires_at=early)])) == early
    assert first_expiry(SearchResult([a_hit()])) is None
    assert first_expiry([{"expires_at": early}]) is None


class Document:
    def __init__(self, expires_at=None):
        self.metadata = {} if expires_at is None else {"hiermem_expires_at": expires_at}


def test_documents_expire_with_the_entries_behind_them():
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)

    assert first_expiry([Document(), Document(late), Document(early)]) == early
    assert first_expiry([Document(late.isoformat()), Document(early.isoformat())]) == early
    assert first_expiry([Document("soon"), Document(7), Document(datetime(2026, 1, 1))]) is None  # noqa: DTZ001 - of no zone
    assert first_expiry([Document(), None, {}]) is None


@pytest.mark.parametrize(
    ("kept", "now", "holds"),
    [(1, 1, True), (2, 1, True), (1, 2, False), ("b", "a", False), (None, None, True)],
)
def test_an_answer_of_a_later_generation_is_as_good(kept, now, holds):
    assert is_current(kept, now) is holds


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ({"success": False}, True),
        ({"error": "no"}, True),
        ('{"success": false, "results": []}', True),
        ({"success": True, "error": None}, False),
        ({"success": 0}, False),
        ('{"error": null}', False),
        ("{not json", False),
        ('{"a":' + "[" * 5000, False),
        ("error", False),
        ([], False),
        (None, False),
    ],
)
def test_d8_only_what_says_so_is_a_failure(result, failed):
    assert tells_of_failure(result) is failed


def test_the_hits_of_an_answer_are_counted_where_it_says_what_they_are():
    assert hits_in([1, 2]) == hits_in({"results": [1, 2], "count": 9}) == 2
    assert hits_in("text") is hits_in({"a": 1}) is hits_in(None) is None
    assert is_weak(SearchResult([], warnings=[ContextWarning("w")]))
    assert not is_weak(SearchResult())


def test_names_tell_what_a_tool_does():
    assert words_of("searchMemories2HTTPTool") == ["search", "memories", "2", "http", "tool"]
    for name in ("search", "searchMemories", "recall_memory", "find-notes", "knowledge_retriever"):
        assert searches(name), name
        assert not writes(name), name
    for name in (
        "addMemory",
        "store",
        "bulk_delete",
        "clear_namespace",
        "remember",
        "update_entry",
    ):
        assert writes(name), name
        assert not searches(name), name
    for name in ("get_memory", "list_stored", "weather", "get_update"):
        assert not writes(name), name
        assert not searches(name), name
    assert adds("add_memory")
    assert not adds("delete_memory")


def test_methods_that_write_are_found_in_both_colours():
    class Store:
        def add(self): ...
        def aadd(self): ...
        def bulk_delete(self): ...
        def get_stored(self): ...
        def search(self): ...
        def address(self): ...
        def _store(self): ...

    assert writing_methods(Store()) == {"aadd": True, "add": True, "bulk_delete": False}


@pytest.mark.parametrize(
    ("args", "kwargs", "content"),
    [
        (("tea",), {}, "tea"),
        ((), {"content": "tea"}, "tea"),
        (({"content": "tea"},), {}, "tea"),
        ((Point(1),), {}, None),
        ((), {"other": "tea"}, None),
        ((["tea"],), {}, None),
    ],
)
def test_what_a_write_adds_is_read_where_it_is_plain(args, kwargs, content):
    assert content_of(args, kwargs) == content
