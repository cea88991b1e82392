"""The filter language of a LangGraph store, equal on every backend."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import PutOp

from hiermem_core import HierMem, InvalidFilterError
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemStore
from langchain_hiermem.operands import core_filter, is_odd

BACKENDS = ("sqlite", "chroma", "hybrid")
ITEMS = {
    "none": {},
    "null": {"n": None},
    "one": {"n": 1, "dot.ted": "x", "hy-phen": 1, "1st": True},
    "one point": {"n": 1.0, "dot": {"ted": "x"}},
    "true": {"n": True},
    "text": {"n": "10", "t": "a' OR '1'='1"},
    "nine": {"n": 9, "deep": {"a": 1, "b": {"c": [1]}}},
    "ten": {"n": 10, "deep": {"a": 1}},
    "big": {"n": 2**63 - 1},
    "huge": {"n": 1e300},
    "low": {"n": -1e300},
    "list": {"n": [1, "x"]},
    "tagged": {"t": "a\x00b", "tags": ["x", "y"]},
}


@pytest.fixture(scope="module", params=BACKENDS)
def store(request, tmp_path_factory):
    location = tmp_path_factory.mktemp(request.param) / "memory"
    with HierMem.open(location, backend=request.param, embedder=FakeEmbedder()) as hiermem:
        store = HierMemStore(hiermem.tenant("acme"))
        store.batch([PutOp(("n",), key, value) for key, value in ITEMS.items()])
        yield store


def found(store, given_filter, **options):
    return {item.key for item in store.search(("n",), filter=given_filter, limit=100, **options)}


NUMBERS = {"one", "one point", "nine", "ten", "big", "huge", "low"}
PRESENT = set(ITEMS) - {"none", "tagged"}


@pytest.mark.parametrize(
    ("given_filter", "keys"),
    [
        ({"n": 1}, {"one", "one point"}),
        ({"n": True}, {"true"}),
        ({"n": None}, {"null"}),
        ({"n": "10"}, {"text"}),
        ({"n": [1, "x"]}, {"list"}),
        ({"n": {"$ne": 1}}, PRESENT - {"one", "one point"}),
        ({"n": {"$ne": None}}, PRESENT - {"null"}),
        ({"n": {"$gt": 9}}, {"ten", "big", "huge"}),
        ({"n": {"$gte": 9, "$lt": 10}}, {"nine"}),
        ({"n": {"$lt": "2"}}, {"text"}),
        ({"dot.ted": "x"}, {"one"}),
        ({"dot": {"ted": "x"}}, {"one point"}),
        ({"hy-phen": 1, "1st": True}, {"one"}),
        ({"deep": {"a": 1}}, {"nine", "ten"}),
        ({"deep": {"b": {"c": [1]}}}, {"nine"}),
        ({"t": "a' OR '1'='1"}, {"text"}),
        ({"t": "a\x00b"}, {"tagged"}),
        ({"tags": ["x", "y"]}, {"tagged"}),
        ({"tags": {"$contains": "x"}}, {"tagged"}),
        ({"n": {"$in": [9, "10", math.nan, 2**70]}}, {"nine", "text"}),
        ({"n": {"$nin": [9, math.inf]}}, PRESENT - {"nine"}),
        ({"$or": [{"n": 9}, {"n": {"$gt": math.inf}}]}, {"nine"}),
        ({"$not": {"n": {"$lte": math.inf}}}, set(ITEMS) - NUMBERS),
        ({}, set(ITEMS)),
        (None, set(ITEMS)),
    ],
)
def test_lc41_filters_say_what_the_language_says(store, given_filter, keys):
    assert found(store, given_filter) == keys
    assert found(store, given_filter, query="x") == keys


@pytest.mark.parametrize(
    ("operator", "operand", "keys"),
    [
        ("$gt", math.inf, set()),
        ("$gt", -math.inf, NUMBERS),
        ("$gte", -math.inf, NUMBERS),
        ("$lt", math.inf, NUMBERS),
        ("$lte", -math.inf, set()),
        ("$eq", math.inf, set()),
        ("$ne", math.nan, PRESENT),
        ("$gt", math.nan, set()),
        ("$gt", 2**64, {"huge"}),
        ("$lte", 2**64, NUMBERS - {"huge"}),
        ("$lt", -(2**64), {"low"}),
        ("$gte", 10**400, set()),
        ("$lt", 10**400, NUMBERS),
        ("$gt", -(10**400), NUMBERS),
        ("$eq", 2**64, set()),
        ("$ne", [math.inf], PRESENT),
        ("$contains", 2**70, set()),
    ],
)
def test_lc41_numbers_that_json_does_not_have_are_compared_and_none_raises(
    store, operator, operand, keys
):
    assert found(store, {"n": {operator: operand}}) == keys


@pytest.mark.parametrize(
    "bad",
    [
        {"n": {"$like": 1}},
        {"n": {"$like": math.inf}},
        {"n": {"$gt": [math.inf]}},
        {"n": {"$in": math.inf}},
        {"$nor": [{"n": math.inf}]},
        {"$and": []},
        {"n": {"$gt": 1, "plain": math.inf}},
    ],
)
def test_an_operator_that_there_is_not_is_refused(store, bad):
    with pytest.raises(InvalidFilterError) as refused:
        store.search(("n",), filter=bad)

    assert isinstance(refused.value, ValueError)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "a", "10", "$gt", "é", "a.b"]),
)
odd_numbers = st.one_of(
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**63, 2**64 + 1, -(2**65) - 1, 10**400]),
)


@given(
    value=st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(-1e30, 1e30)),
    operator=st.sampled_from(["$gt", "$gte", "$lt", "$lte"]),
    operand=odd_numbers,
)
def test_lc41_a_translated_comparison_says_what_the_given_one_does(value, operator, operand):
    compare = {
        "$gt": lambda: value > operand,
        "$gte": lambda: value >= operand,
        "$lt": lambda: value < operand,
        "$lte": lambda: value <= operand,
    }[operator]

    translated = core_filter({"n": {operator: operand}})

    assert not is_odd(translated)
    assert holds(translated, value) == compare()


def holds(condition, value):
    """Tell whether a number satisfies a translated condition on `n`."""
    if "$and" in condition:
        return all(holds(part, value) for part in condition["$and"])
    ((name, operand),) = condition["n"].items()
    return {
        "$gt": lambda: value > operand,
        "$gte": lambda: value >= operand,
        "$lt": lambda: value < operand,
        "$lte": lambda: value <= operand,
        "$in": lambda: value in operand,
        "$exists": lambda: operand,
    }[name]()


values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)
conditions = st.one_of(
    values,
    odd_numbers,
    st.dictionaries(
        st.sampled_from(["$eq", "$ne"]), st.one_of(values, odd_numbers), min_size=1, max_size=2
    ),
    st.dictionaries(
        st.sampled_from(["$gt", "$gte", "$lt", "$lte"]),
        st.one_of(odd_numbers, st.sampled_from(["a", "10"])),
        min_size=1,
        max_size=2,
    ),
)


@given(
    stored=st.lists(st.dictionaries(st.sampled_from("nm"), values, max_size=2), max_size=6),
    asked=st.dictionaries(st.sampled_from("nm"), conditions, max_size=2),
)
def test_lc41_every_backend_answers_alike_and_none_raises(stored, asked):
    answers = []
    for backend in ("in_memory", *BACKENDS):
        with HierMem.open(":memory:", backend=backend, embedder=FakeEmbedder()) as hiermem:
            store = HierMemStore(hiermem.tenant("acme"))
            store.batch(
                [PutOp(("n",), str(at), value, index=False) for at, value in enumerate(stored)]
            )
            try:
                answers.append(found(store, asked))
            except InvalidFilterError as refused:
                answers.append(str(refused))

    assert answers == [answers[0]] * len(answers)
