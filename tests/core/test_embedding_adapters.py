"""Embedders of other libraries."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from chromadb import EmbeddingFunction
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings import MockEmbedding

from hiermem_core.embedding.adapters import AdaptedEmbedder, as_embedder
from hiermem_core.embedding.calling import embed_query, try_each
from hiermem_core.embedding.minilm import MiniLM
from hiermem_core.errors import BackendError, InvalidInputError
from hiermem_core.testing import FakeEmbedder

TEXTS = ["one", "two", "three"]


class NamedLangChain(Embeddings):
    """Embeds questions another way than texts, as some models want it."""

    def __init__(self):
        self.model = "text-embedding-x"
        self.calls = []

    def embed_documents(self, texts):
        self.calls.append(texts)
        return [[float(len(text)), 1.0, 0.0] for text in texts]

    def embed_query(self, text):
        return [0.0, 1.0, float(len(text))]


class NamedLlamaIndex(BaseEmbedding):
    def _get_text_embedding(self, text):
        return [float(len(text)), 1.0]

    def _get_query_embedding(self, query):
        return [1.0, float(len(query))]

    async def _aget_query_embedding(self, query):
        raise NotImplementedError


class NamedChroma(EmbeddingFunction):
    def __init__(self):
        self.model_name = "chroma-x"

    def __call__(self, input):  # noqa: A002 - Chroma's name
        assert isinstance(input, list)
        return [np.array([float(len(text)), 2.0], dtype=np.float32) for text in input]

    def embed_query(self, input):  # noqa: A002 - Chroma's name
        return [np.array([7.0, 7.0], dtype=np.float32) for _ in input]


class OldChroma:
    """An embedding function as it was before questions had a way of their own."""

    def __call__(self, input):  # noqa: A002 - Chroma's name
        return [[float(len(text)), 2.0] for text in input]


def lengths(texts):
    return [[float(len(text)), 3.0] for text in texts]


def lazily(texts):
    return (vector for vector in lengths(texts))


def as_array(texts):
    return np.array(lengths(texts))


@pytest.mark.parametrize(
    ("value", "model_id", "dimensions", "first", "question"),
    [
        (NamedLangChain(), "text-embedding-x", 3, [3, 1, 0], [0, 1, 5]),
        (NamedLlamaIndex(model_name="llama-x"), "llama-x", 2, [3, 1], [1, 5]),
        (NamedChroma(), "chroma-x", 2, [3, 2], [7, 7]),
        (OldChroma(), f"{__name__}.OldChroma", 2, [3, 2], [5, 2]),
        (lengths, f"{__name__}.lengths", 2, [3, 3], [5, 3]),
        (lazily, f"{__name__}.lazily", 2, [3, 3], [5, 3]),
        (as_array, f"{__name__}.as_array", 2, [3, 3], [5, 3]),
        (functools.partial(lengths), "functools.partial", 2, [3, 3], [5, 3]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_librarys_embedder_serves_as_ours(value, model_id, dimensions, first, question):
    embedder = as_embedder(value)

    vectors = try_each(embedder, TEXTS)

    assert embedder.model_id == model_id
    assert embedder.dimensions == dimensions
    assert [len(vector) for vector in vectors] == [dimensions] * 3
    assert vectors[0].tolist() == first
    assert embed_query(embedder, "where").tolist() == question


def test_the_libraries_own_fakes_serve():
    langchain = as_embedder(DeterministicFakeEmbedding(size=16))
    llamaindex = as_embedder(MockEmbedding(embed_dim=8))

    assert (langchain.dimensions, llamaindex.dimensions) == (16, 8)
    assert langchain.model_id == "langchain_core.embeddings.fake.DeterministicFakeEmbedding"
    assert llamaindex.model_id == "llama_index.core.embeddings.mock_embed_model.MockEmbedding"
    assert np.array_equal(try_each(langchain, ["a"])[0], embed_query(langchain, "a"))


@pytest.mark.parametrize("value", [FakeEmbedder(), MiniLM(), as_embedder(lengths)])
def test_an_embedder_is_taken_as_it_is(value):
    assert as_embedder(value) is value


def test_adapting_calls_nothing_and_the_length_is_learnt_from_the_first_vector():
    library = NamedLangChain()

    embedder = as_embedder(library)
    calls_by_adapting = len(library.calls)
    try_each(embedder, TEXTS)
    found = embedder.dimensions

    assert calls_by_adapting == 0
    assert found == 3
    assert library.calls == [TEXTS]


def test_a_length_asked_for_early_costs_one_call():
    library = NamedLangChain()
    embedder = as_embedder(library)

    assert [embedder.dimensions, embedder.dimensions] == [3, 3]
    assert len(library.calls) == 1


def test_what_is_declared_goes_before_what_is_found():
    embedder = as_embedder(NamedLangChain(), model_id="mine", dimensions=3, max_characters=2)

    try_each(embedder, ["long"])

    assert (embedder.model_id, embedder.dimensions) == ("mine", 3)
    assert embedder._embed.__self__.calls == [["lo"]]


def test_a_renamed_embedder_keeps_its_way_and_its_length():
    inner = FakeEmbedder(8)

    embedder = as_embedder(inner, model_id="mine")

    assert (embedder.model_id, embedder.dimensions) == ("mine", 8)
    assert embedder.embed(["a"]) == inner.embed(["a"])


async def awaited(texts):
    return lengths(texts)


class AwaitedEmbedder:
    model_id, dimensions = "awaited", 2

    async def embed(self, texts):
        return lengths(texts)


class AwaitedCall:
    async def __call__(self, texts):
        return lengths(texts)


@pytest.mark.parametrize(
    "value", [None, "openai", 7, object(), FakeEmbedder, awaited, AwaitedEmbedder(), AwaitedCall()]
)
def test_what_embeds_nothing_is_refused_with_a_remedy(value):
    with pytest.raises(InvalidInputError, match="give") as refused:
        as_embedder(value)

    assert refused.value.name == "embedder"


@pytest.mark.parametrize(
    "options",
    [
        *({"model_id": ""}, {"model_id": " "}, {"model_id": 7}),
        *({"dimensions": 0}, {"dimensions": -1}, {"dimensions": True}, {"dimensions": 2.0}),
        {"max_characters": 0},
    ],
    ids=str,
)
def test_unfit_declarations_are_refused(options):
    with pytest.raises(InvalidInputError) as refused:
        as_embedder(lengths, **options)

    assert refused.value.name == next(iter(options))


def test_an_embedder_that_fails_when_asked_for_its_length_is_named_by_its_error_only():
    def failing(texts):
        raise RuntimeError("xyzzy-4711")

    with pytest.raises(BackendError, match="RuntimeError") as raised:
        as_embedder(failing).dimensions  # noqa: B018 - asking is the act

    assert "xyzzy" not in str(raised.value)
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_a_function_that_returns_no_vectors_is_refused():
    with pytest.raises(InvalidInputError, match="no list of vectors"):
        AdaptedEmbedder(lambda texts: [1.0], model_id="x").dimensions  # noqa: B018 - the act
