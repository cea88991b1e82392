"""Namespaces of a LangGraph store: nothing under another label or of another tenant is met."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
    ensure_embeddings,
)
from store_items import names_of

from hiermem_core import InvalidInputError, MissingIdentityError
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemStore


def test_a_root_is_before_every_namespace_and_not_shown(hiermem, store):
    inner = HierMemStore(hiermem.tenant("acme"), root=("apps", "one"))
    inner.put(("notes",), "k", {"n": 1})
    store.put(("apps", "two"), "k", {"n": 2})

    assert names_of(inner.search(())) == [(("notes",), "k")]
    assert inner.list_namespaces() == [("notes",)]
    assert inner.list_namespaces(prefix=("apps",)) == []
    assert store.list_namespaces() == [("apps", "one", "notes"), ("apps", "two")]
    assert store.get(("apps", "one", "notes"), "k").value == {"n": 1}
    assert inner.get(("two",), "k") is None


TWINS = [
    ("acme", "acme-corp"),
    ("john_doe", "john-doe"),
    ("a%", "ab"),
    ("a/b", "a"),
    ("A", "a"),
    ("a", "a\n"),
    ("%2F", "/"),
    ("%252F", "%2F"),
]


@pytest.mark.parametrize(("one", "other"), [*TWINS, *(pair[::-1] for pair in TWINS)])
def test_lc18_no_label_reaches_what_is_under_another(store, one, other):
    store.put((one,), "k", {"of": one})
    store.put((other,), "k", {"of": other})
    store.put((other, one), "k", {"of": "both"})

    assert store.get((one,), "k").value == {"of": one}
    assert names_of(store.search((one,))) == [((one,), "k")]
    assert [item.namespace for item in store.search((one,), query=one)] == [(one,)]
    assert store.list_namespaces(prefix=(one,)) == [(one,)]
    assert store.list_namespaces(suffix=(one,), max_depth=1) == sorted([(one,), (other,)])
    store.delete((one,), "k")
    assert {item.namespace for item in store.search(())} == {(other,), (other, one)}


@pytest.mark.parametrize(("one", "other"), [("acme", "acme-corp"), ("a/b", "a"), ("CON", "a%")])
def test_lc19_tenants_with_equal_keys_do_not_meet(shared, one, other):
    for tenant in (one, other):
        shared.put((tenant, "memories"), "k", {"of": tenant})

    for tenant in (one, other):
        assert shared.get((tenant, "memories"), "k").value == {"of": tenant}
        for found in (shared.search((tenant,)), shared.search((tenant,), query="of")):
            assert names_of(found) == [((tenant, "memories"), "k")]
        assert shared.list_namespaces(prefix=(tenant,)) == [(tenant, "memories")]
    shared.delete((one, "memories"), "k")
    assert shared.get((other, "memories"), "k") is not None


def test_lc21_a_search_or_listing_without_a_tenant_is_refused(shared):
    shared.put(("acme", "memories"), "k", {"n": 1})

    for call in (
        lambda: shared.search(()),
        lambda: shared.search((), query="n"),
        shared.list_namespaces,
        lambda: shared.list_namespaces(suffix=("memories",)),
        lambda: shared.list_namespaces(prefix=("*", "memories")),
        shared.sweep_ttl,
        lambda: shared.batch([PutOp(("acme",), "l", {"n": 2}), SearchOp(())]),
    ):
        with pytest.raises(MissingIdentityError):
            call()
    assert shared.get(("acme",), "l") is None


def test_an_item_may_lie_right_below_its_tenant(hiermem, shared):
    shared.put(("acme",), "k", {"n": 1})
    shared.put(("acme", "notes"), "k", {"n": 2})

    assert shared.get(("acme",), "k").value == {"n": 1}
    assert {item.namespace for item in shared.search(("acme",))} == {("acme",), ("acme", "notes")}
    assert shared.list_namespaces(prefix=("acme",)) == [("acme",), ("acme", "notes")]
    assert shared.list_namespaces(prefix=("acme", "notes")) == [("acme", "notes")]


def test_a_store_per_tenant_and_one_of_the_tenant_are_of_the_same_items(store, shared):
    shared.put(("acme", "notes"), "k", {"n": 1})

    assert store.get(("notes",), "k").value == {"n": 1}
    assert store.list_namespaces() == [("notes",)]


def test_one_batch_may_concern_several_tenants(shared):
    shared.batch([PutOp((tenant, "a"), "k", {"of": tenant}) for tenant in ("one", "two")])

    got = shared.batch([GetOp(("two", "a"), "k"), GetOp(("one", "a"), "k")])

    assert [item.value["of"] for item in got] == ["two", "one"]


def test_lc47_no_item_of_another_tenant_is_in_any_result(shared):
    random.seed(7)
    tenants, labels = ("a", "a%", "a-b", "b"), ("x", "x/y", "%2F")
    mine = {tenant: {} for tenant in tenants}
    for number in range(120):
        tenant = random.choice(tenants)
        path = (tenant, *random.choices(labels, k=random.randint(0, 2)))
        value = {"of": tenant, "n": number}
        shared.put(path, str(number % 9), value)
        mine[tenant][path, str(number % 9)] = value

    for tenant, items in mine.items():
        for found in (
            shared.search((tenant,), limit=1000),
            shared.search((tenant,), query="of a", limit=1000),
        ):
            assert {(one.namespace, one.key): one.value for one in found} == items
        listed = shared.list_namespaces(prefix=(tenant,), limit=1000)
        assert listed == sorted({path for path, _ in items})


@pytest.mark.parametrize("labels", [("a.b",), ("",), ("a", ""), ("a\x00",), ("a", 1)])
def test_labels_that_are_none_are_refused_in_every_operation(store, labels):
    for op in (
        GetOp(labels, "k"),
        PutOp(labels, "k", {"n": 1}),
        PutOp(labels, "k", None),
        SearchOp(labels),
        ListNamespacesOp(match_conditions=(MatchCondition("prefix", labels),)),
    ):
        with pytest.raises(InvalidNamespaceError):
            store.batch([op])


def test_namespaces_are_matched_cut_and_paged(store):
    paths = [("a", "x", "end"), ("a", "y", "end"), ("a", "y", "z", "end"), ("a-b",), ("b", "x")]
    for path in paths:
        store.put(path, "k", {"n": 1})

    assert store.list_namespaces() == sorted(paths)
    assert store.list_namespaces(prefix=("a", "*", "end")) == paths[:2]
    assert store.list_namespaces(suffix=("*", "end")) == paths[:3]
    assert store.list_namespaces(prefix=("a",), suffix=("end",), max_depth=2) == [
        ("a", "x"),
        ("a", "y"),
    ]
    assert store.list_namespaces(limit=2, offset=2) == sorted(paths)[2:4]
    assert store.list_namespaces(max_depth=1) == [("a",), ("a-b",), ("b",)]
    with pytest.raises(InvalidInputError):
        store.batch([ListNamespacesOp(match_conditions=(MatchCondition("middle", ("a",)),))])


def test_a_listing_of_more_namespaces_than_a_page_is_whole(store):
    store.batch([PutOp(("n", f"{number:04}"), "k", {"n": 1}) for number in range(1100)])

    listed = store.list_namespaces(limit=2000)

    assert listed == [("n", f"{number:04}") for number in range(1100)]


def test_lc20_what_names_no_tenant_is_refused_before_anything_is_embedded(hiermem):
    calls = []

    def embed(texts):
        calls.append(texts)
        return FakeEmbedder().embed(texts)

    shared = HierMemStore.per_tenant(hiermem, index={"fields": ["text"]})
    shared._index = replace(shared._index, own=ensure_embeddings(embed))

    for op in (SearchOp((), query="tea"), ListNamespacesOp(), GetOp((), "k")):
        with pytest.raises(MissingIdentityError):
            shared.batch([PutOp(("acme", "notes"), "k", {"text": "tea"}), op])

    assert calls == []
    assert shared.search(("acme",)) == []
