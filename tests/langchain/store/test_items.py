"""Items of a LangGraph store: puts, gets, batches."""

from __future__ import annotations

import copy

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp
from store_items import names_of

from hiermem_core import InvalidInputError
from hiermem_core.testing import FaultPlan, InjectedFault
from langchain_hiermem import HierMemStore


def test_lc42_an_update_keeps_the_time_of_creation(store, clock):
    store.put(("notes",), "tea", {"text": "green"})
    created = store.get(("notes",), "tea").created_at
    clock.advance(60)

    store.put(("notes",), "tea", {"text": "black"})

    item = store.get(("notes",), "tea")
    assert item.value == {"text": "black"}
    assert item.created_at == created
    assert (item.updated_at - created).total_seconds() == 60
    assert item.updated_at.utcoffset().total_seconds() == 0


def test_lc42_neither_what_was_put_nor_what_is_read_is_shared(store):
    value = {"tags": ["a"], "deep": {"n": [1]}}
    store.put(("notes",), "k", value)

    value["tags"].append("b")
    for item in (store.get(("notes",), "k"), *store.search(("notes",))):
        item.value["deep"]["n"].append(2)

    assert store.get(("notes",), "k").value == {"tags": ["a"], "deep": {"n": [1]}}
    assert store.search(("notes",))[0].value == {"tags": ["a"], "deep": {"n": [1]}}


@pytest.mark.parametrize(
    "value",
    [
        {"a": None, "b": {}, "c": [], "d": [1, "x", None, 1.5, True], "e": {"f": {"g": [[]]}}},
        {},
        {"": "empty", "dots.in-keys": 1, "größe": "👍🏽", "$and": 1},
        {"int": 2**63 - 1, "float": 1e300, "one": 1, "also one": 1.0},
    ],
)
def test_lc43_a_value_comes_back_equal_and_type_equal(store, value):
    store.put(("notes",), "k", value)

    for item in (store.get(("notes",), "k"), *store.search(("notes",), filter={})):
        assert item.value == value
        assert list(item.value) == list(value)
        assert repr(item.value) == repr(value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": float("nan")}, "value.a"),
        ({"a": [1, {"b": {1}}]}, "value.a[1].b"),
        ({"a": (1, 2)}, "value.a"),
        ({1: "a"}, "value"),
        ({"a": 2**64}, "value.a"),
    ],
)
def test_lc43_a_value_that_is_no_json_is_refused_by_its_path(store, value, path):
    with pytest.raises(InvalidInputError) as refused:
        store.put(("notes",), "k", value)

    assert refused.value.name == path
    assert store.search(()) == []


def test_lc43_a_batch_of_nothing_and_of_the_same_item_twice(store):
    assert store.batch([]) == []

    store.batch([PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "k", {"n": 2})])

    assert [item.value for item in store.search(("a",))] == [{"n": 2}]


def test_a_batch_answers_in_order_and_reads_what_was_there_before_it(store):
    store.put(("a",), "old", {"n": 1})

    results = store.batch(
        [
            PutOp(("a",), "new", {"n": 2}),
            GetOp(("a",), "new"),
            GetOp(("a",), "old"),
            PutOp(("a",), "old", None),
            SearchOp(("a",)),
            ListNamespacesOp(),
        ]
    )

    assert results[:2] == [None, None]
    assert results[2].value == {"n": 1}
    assert names_of(results[4]) == [(("a",), "old")]
    assert results[5] == [("a",)]
    assert names_of(store.search(("a",))) == [(("a",), "new")]


def test_the_last_put_of_an_item_counts_be_it_a_deletion(store):
    store.put(("a",), "gone", {"n": 0})

    store.batch(
        [
            PutOp(("a",), "gone", {"n": 1}),
            PutOp(("a",), "gone", None),
            PutOp(("a",), "there", None),
            PutOp(("a",), "there", {"n": 2}),
        ]
    )

    assert names_of(store.search(())) == [(("a",), "there")]


@pytest.mark.parametrize(
    "bad",
    [
        PutOp(("a",), "x", {"n": float("inf")}),
        PutOp(("a", ""), "x", {"n": 1}),
        PutOp((), "x", {"n": 1}),
        PutOp(("a",), "", {"n": 1}),
        PutOp(("a",), "x", {"n": 1}, ttl=-1),
        PutOp(("a",), "x", {"n": 1}, index="n"),
        PutOp(("a",), "x", [1]),
        SearchOp(("a",), filter={"n": {"$like": 1}}),
        SearchOp(("a",), limit=-1),
        GetOp(("a.b",), "x"),
        "no operation",
    ],
)
def test_a_batch_with_a_bad_operation_changes_nothing(store, bad):
    store.put(("a",), "old", {"n": 0})

    with pytest.raises(ValueError):  # noqa: PT011 - whatever its message
        store.batch([PutOp(("a",), "good", {"n": 1}), bad, PutOp(("a",), "old", None)])

    assert names_of(store.search(())) == [(("a",), "old")]


def test_a_batch_cut_off_before_its_commit_changes_nothing(store):
    store.put(("a",), "old", {"n": 0})

    with FaultPlan("rows.before_commit"), pytest.raises(InjectedFault):
        store.batch([PutOp(("a",), "new", {"n": 1}), PutOp(("a",), "old", None)])

    assert names_of(store.search(())) == [(("a",), "old")]


def test_an_item_is_an_entry_of_the_tenant(hiermem, store):
    store.put(("notes", "a/b"), "tea", {"text": "likes tea"}, index=["text"])

    (entry,) = hiermem.tenant("acme").memory.search(namespace="notes")

    assert (entry.namespace, entry.key, entry.content) == ("notes/a%2Fb", "tea", "likes tea")
    assert entry.metadata == {"text": "likes tea"}
    assert entry.type == "semantic"


def test_an_entry_without_a_key_is_no_item_and_takes_no_items_place(hiermem, store, clock):
    memory = hiermem.tenant("acme").memory
    for number in range(5):
        memory.store(f"tea {number}", namespace="notes")
    store.put(("notes",), "k", {"text": "tea"})
    clock.advance(1)
    memory.store("keyed tea", namespace="notes", key="l", metadata={"by": "hand"})
    for number in range(5):
        memory.store(f"more tea {number}", namespace="notes")

    listed = store.search(("notes",), limit=2)

    assert names_of(listed) == [(("notes",), "l"), (("notes",), "k")]
    assert store.get(("notes",), "l").value == {"by": "hand"}
    found = store.search(("notes",), query="tea", limit=2)
    assert {item.key for item in found} == {"k", "l"}


def test_configurations_are_copied(hiermem):
    index, ttl = {"fields": ["text"]}, {"default_ttl": 5}

    store = HierMemStore(hiermem.tenant("acme"), index=index, ttl=ttl)
    index["fields"], ttl["default_ttl"] = ["other"], 7

    assert store.index_config == {"fields": ["text"]}
    assert store.ttl_config == {"default_ttl": 5}
    assert store.supports_ttl


def test_a_store_is_shallow_and_copies_like_any_object(store):
    assert copy.copy(store).get(("a",), "k") is None
    with pytest.raises(AttributeError):
        store.anything = 1
