"""Items of a LangGraph store: puts, gets, batches, namespaces, tenants."""

from __future__ import annotations

import copy
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

from hiermem_core import HierMem, InvalidInputError, MissingIdentityError
from hiermem_core.testing import FakeEmbedder, FaultPlan, InjectedFault
from langchain_hiermem import HierMemStore

BACKENDS = ("sqlite", "chroma", "hybrid")


@pytest.fixture(params=BACKENDS)
def hiermem(request, tmp_path, clock):
    options = {"backend": request.param, "embedder": FakeEmbedder(), "clock": clock}
    with HierMem.open(tmp_path / "memory", **options) as hiermem:
        yield hiermem


@pytest.fixture
def store(hiermem):
    return HierMemStore(hiermem.tenant("acme"))


@pytest.fixture
def shared(hiermem):
    return HierMemStore.per_tenant(hiermem)


def names_of(items):
    return [(item.namespace, item.key) for item in items]


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
