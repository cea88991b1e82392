"""Searches of a LangGraph store: by meaning, by words, what is indexed, and by whom."""

from __future__ import annotations

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp, SearchOp

from hiermem_core import (
    BackendError,
    ConfigurationError,
    EmbedderMismatchError,
    HierMem,
    InvalidInputError,
    UnsupportedSearchError,
)
from hiermem_core.testing import FakeEmbedder
from langchain_hiermem import HierMemStore

DIMENSIONS = 32


class Words(Embeddings):
    """LangChain's interface around the fake embedder; counts its calls."""

    def __init__(self, model="words", seed=0):
        self.model = model
        self.fake = FakeEmbedder(DIMENSIONS, seed=seed)

    def embed_documents(self, texts):
        return self.fake.embed(texts)

    def embed_query(self, text):
        return self.fake.embed([text])[0]


@pytest.fixture
def opened(location, clock):
    handles = []

    def open_one(**options):
        given = {"embedder": FakeEmbedder(DIMENSIONS), "clock": clock}
        handle = HierMem.open(location, **given | options)
        handles.append(handle)
        return handle

    yield open_one
    for handle in handles:
        handle.close()


@pytest.fixture(params=["chroma", "hybrid"])
def store(request, opened):
    return HierMemStore(opened(backend=request.param).tenant("acme"))


def keys_of(items):
    return [item.key for item in items]


def fill(store, **texts):
    store.batch([PutOp(("notes",), key, {"text": text}, ["text"]) for key, text in texts.items()])


def test_a_query_ranks_by_meaning_with_the_cosine_as_score(store):
    fill(store, tea="green tea", coffee="black coffee", milk="green milk")

    found = store.search(("notes",), query="green tea")

    assert keys_of(found) == ["tea", "milk", "coffee"]
    assert found[0].score == pytest.approx(1.0, abs=1e-5)
    assert found[0].score > found[1].score > found[2].score >= 0


def test_items_without_a_vector_follow_unscored_newest_first(store, clock):
    fill(store, tea="green tea")
    for key in ("one", "two", "three"):
        clock.advance(1)
        store.put(("notes",), key, {"text": "green tea"}, index=False)

    found = store.search(("notes",), query="green tea")
    pages = [store.search(("notes",), query="green tea", limit=2, offset=at) for at in (0, 2, 4)]

    assert [(item.key, item.score) for item in found[1:]] == [
        ("three", None),
        ("two", None),
        ("one", None),
    ]
    assert keys_of(found[:1]) == ["tea"]
    assert [keys_of(page) for page in pages] == [["tea", "three"], ["two", "one"], []]


def test_without_a_query_the_newest_change_comes_first(store, clock):
    for key in ("one", "two", "three"):
        clock.advance(1)
        fill(store, **{key: key})
    clock.advance(1)
    fill(store, one="again")

    for query in (None, "", "  "):
        found = store.search(("notes",), query=query, limit=2)
        assert [(item.key, item.score) for item in found] == [("one", None), ("three", None)]
    assert keys_of(store.search(("notes",), limit=2, offset=2)) == ["two"]


def test_the_best_of_several_texts_is_the_score(opened):
    tenant = opened().tenant("acme")
    store = HierMemStore(tenant, index={"fields": ["title", "parts[*].text", "none"]})
    parts = [{"text": "sour cherries"}, {"text": "ripe pears"}, {"text": " "}]
    store.put(("notes",), "fruit", {"title": "a basket", "parts": parts, "hidden": "plums"})
    store.put(("notes",), "cars", {"title": "ripe cars"})

    for query in ("a basket", "sour cherries", "ripe pears"):
        first, second = store.search(("notes",), query=query)
        assert first.key == "fruit"
        assert first.score == pytest.approx(1.0, abs=1e-5)
        assert second.score < 0.9
    assert store.search(("notes",), query="plums")[0].score < 0.9


def test_an_operation_names_its_own_paths(opened):
    store = HierMemStore(opened().tenant("acme"), index={"fields": ["text"]})
    store.put(("notes",), "k", {"text": "green tea", "more": "black coffee"}, index=["more"])

    assert store.search(("notes",), query="black coffee")[0].score == pytest.approx(1.0, abs=1e-5)
    store.put(("notes",), "k", {"text": "green tea", "more": "black coffee"})
    assert store.search(("notes",), query="green tea")[0].score == pytest.approx(1.0, abs=1e-5)
    store.put(("notes",), "k", {"text": "green tea"}, index=False)
    assert store.search(("notes",), query="green tea")[0].score is None


def test_the_whole_value_is_indexed_unless_something_else_is_said(opened):
    hiermem = opened()
    HierMemStore(hiermem.tenant("acme")).put(("notes",), "k", {"b": 1, "a": "größe"})

    (entry,) = hiermem.tenant("acme").memory.search()

    assert entry.content == '{"a": "größe", "b": 1}'
    assert entry.passages is None


def test_what_is_not_indexed_is_never_found_by_meaning_even_after_a_reindex(opened):
    hiermem = opened()
    store = HierMemStore(hiermem.tenant("acme"))
    store.put(("notes",), "k", {"text": "green tea"}, index=False)
    store.put(("notes",), "l", {"text": "green tea"}, index=["nowhere"])

    hiermem.reindex(FakeEmbedder(DIMENSIONS, "other", seed=5))
    hiermem.doctor(repair=True)

    assert [item.score for item in store.search(("notes",), query="green tea")] == [None, None]


def test_prefix_and_filter_apply_before_the_limit(store):
    for number in range(30):
        store.put(("notes", str(number % 3)), f"{number}", {"text": "green tea", "n": number})

    found = store.search(("notes", "1"), query="tea", filter={"n": {"$gte": 10}}, limit=3)

    assert len(found) == 3
    assert all(item.namespace == ("notes", "1") and item.value["n"] >= 10 for item in found)


def test_a_limit_above_a_page_of_the_core_is_served_whole(opened):
    store = HierMemStore(opened().tenant("acme"))
    store.batch([PutOp(("n",), f"{number}", {"n": number}, index=False) for number in range(1200)])
    store.batch([PutOp(("n",), f"i{number}", {"n": number}) for number in range(300)])

    assert len({item.key for item in store.search(("n",), limit=5000)}) == 1500
    found = store.search(("n",), query="n", limit=1400)
    assert [item.score is None for item in found] == [False] * 300 + [True] * 1100
    assert len({item.key for item in found}) == 1400
    assert keys_of(store.search(("n",), query="n", limit=3, offset=1398)) == keys_of(
        found[1398:]
    ) + (keys_of(store.search(("n",), query="n", limit=1, offset=1400)))


def test_without_any_embedder_a_query_ranks_by_its_words(opened):
    store = HierMemStore(opened(embedder=None, backend="sqlite").tenant("acme"))
    fill(store, coffee="black coffee", tea="green tea")

    found = store.search(("notes",), query="tea")

    assert [(item.key, item.score is None) for item in found] == [("tea", False), ("coffee", True)]
    assert 0 < found[0].score <= 1


def test_without_any_embedder_and_words_a_query_is_refused(opened):
    store = HierMemStore(opened(embedder=None, backend="chroma").tenant("acme"))
    fill(store, tea="green tea")

    with pytest.raises(UnsupportedSearchError):
        store.search(("notes",), query="tea")
    assert keys_of(store.search(("notes",))) == ["tea"]


@pytest.mark.parametrize("embed", [Words(), lambda texts: Words().embed_documents(texts)])
def test_an_index_brings_the_embeddings_where_the_hiermem_has_none(opened, embed):
    tenant = opened(embedder=None).tenant("acme")
    store = HierMemStore(
        tenant, index={"dims": DIMENSIONS, "embed": embed, "fields": ["text", "more"]}
    )
    store.batch(
        [
            PutOp(("notes",), "tea", {"text": "green tea", "more": "hot water"}),
            PutOp(("notes",), "coffee", {"text": "black coffee"}),
            PutOp(("notes",), "none", {"text": "green tea"}, index=False),
        ]
    )

    found = store.search(("notes",), query="hot water")

    assert keys_of(found) == ["tea", "coffee", "none"]
    assert found[0].score == pytest.approx(1.0, abs=1e-5)
    assert found[2].score is None


def test_a_batch_embeds_each_text_once_and_before_it_writes(opened):
    embed = Words()
    store = HierMemStore(
        opened(embedder=None).tenant("acme"), index={"embed": embed, "fields": ["text"]}
    )

    store.batch(
        [PutOp(("n",), f"{number}", {"text": f"tea {number % 2}"}) for number in range(6)]
        + [SearchOp(("n",), query="tea"), SearchOp(("n",), query="tea", offset=1)]
    )

    assert embed.fake.calls == [("tea 0", "tea 1"), ("tea",)]


def test_embeddings_that_fail_leave_everything_as_it_was(opened):
    def fail(texts):
        raise RuntimeError("no network")

    store = HierMemStore(opened(embedder=None).tenant("acme"), index={"embed": fail})

    with pytest.raises(RuntimeError):
        store.put(("n",), "k", {"text": "tea"})
    assert store.search(("n",)) == []


def test_embeddings_that_return_too_few_vectors_are_refused(opened):
    store = HierMemStore(
        opened(embedder=None).tenant("acme"), index={"embed": lambda texts: [[1.0, 0.0]]}
    )

    with pytest.raises(InvalidInputError, match="1 vectors for 2 texts"):
        store.batch([PutOp(("n",), key, {"text": key}) for key in ("a", "b")])
    assert store.search(("n",)) == []


def test_an_embedder_that_fails_leaves_the_item_unscored_until_it_works(opened):
    failing = {"green tea"}
    store = HierMemStore(opened(embedder=FakeEmbedder(DIMENSIONS, failing=failing)).tenant("acme"))
    fill(store, tea="green tea", coffee="black coffee")

    assert store.search(("notes",), query="black")[1].score is None
    failing.clear()
    store._places.tenant.memory.wait_for_index(30)
    assert store.search(("notes",), query="black")[1].score is not None


def test_an_embedder_that_fails_at_a_query_is_told(opened):
    store = HierMemStore(opened(embedder=FakeEmbedder(DIMENSIONS, failing={"tea"})).tenant("acme"))
    fill(store, coffee="black coffee")

    with pytest.raises(BackendError):
        store.search(("notes",), query="tea")


def test_an_index_of_the_hiermems_model_is_taken_and_of_another_refused(opened):
    words = Words()
    hiermem = opened(embedder=words)

    store = HierMemStore(hiermem.tenant("acme"), index={"embed": words})
    fill(store, tea="green tea")
    assert store.search(("notes",), query="tea")[0].score is not None
    assert store.embeddings is words
    for build in (
        lambda index: HierMemStore(hiermem.tenant("acme"), index=index),
        lambda index: HierMemStore.per_tenant(hiermem, index=index),
    ):
        with pytest.raises(EmbedderMismatchError) as refused:
            build({"embed": Words("other")})
        assert (refused.value.stored, refused.value.given) == ("words", "other")


@pytest.mark.parametrize("fields", ["text", [1]])
def test_fields_that_are_no_paths_are_refused(opened, fields):
    with pytest.raises(ConfigurationError):
        HierMemStore(opened().tenant("acme"), index={"fields": fields})
