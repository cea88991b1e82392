"""Calling an embedder that may reject, lie or be down."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.embedding.adapters import as_embedder
from hiermem_core.embedding.calling import (
    HARMLESS_TEXT,
    EmbedFailure,
    embed_all,
    embed_query,
    shortened,
    try_each,
)
from hiermem_core.errors import BackendError, ConfigurationError, DimensionMismatchError
from hiermem_core.testing import FakeEmbedder

SENTINEL = "xyzzy-4711"
TEXTS = ["one", SENTINEL, "three"]
REJECTED = EmbedFailure("ValueError")


def returning(*answers, dimensions=2):
    """Return an embedder that gives these answers in turn, whatever it is asked."""
    left = list(answers)
    return as_embedder(lambda texts: left.pop(0), dimensions=dimensions)


def is_vector(found):
    return isinstance(found, np.ndarray)


def test_all_texts_go_in_one_call():
    embedder = FakeEmbedder()

    vectors = try_each(embedder, TEXTS)

    assert embedder.calls == [tuple(TEXTS)]
    assert [vector.dtype for vector in vectors] == [np.float32] * 3
    assert np.allclose(np.vstack(vectors), embedder.embed(TEXTS))


def test_no_text_is_no_call():
    embedder = FakeEmbedder()

    assert try_each(embedder, []) == []
    assert embedder.calls == []


def test_a45_one_rejected_text_fails_alone_and_is_not_in_its_failure():
    first, failure, third = try_each(FakeEmbedder(failing=[SENTINEL]), TEXTS)

    assert is_vector(first)
    assert failure == REJECTED
    assert is_vector(third)
    assert SENTINEL not in repr(failure)


@given(rejected=st.sets(st.integers(0, 9)), count=st.integers(1, 10))
def test_exactly_the_rejected_texts_fail(rejected, count):
    texts = [f"text {number}" for number in range(count)]

    found = try_each(FakeEmbedder(failing=[f"text {number}" for number in rejected]), texts)

    failed = [number for number, one in enumerate(found) if not is_vector(one)]
    assert failed == sorted(number for number in rejected if number < count)
    assert all(found[number] == REJECTED for number in failed)


def test_a_single_rejected_text_is_not_tried_twice():
    embedder = FakeEmbedder(failing=[SENTINEL])

    assert try_each(embedder, [SENTINEL]) == [REJECTED]
    assert embedder.calls == [(SENTINEL,), (HARMLESS_TEXT,)]


def test_an_embedder_that_is_down_is_asked_three_times_whatever_the_number_of_texts():
    embedder = FakeEmbedder(failing=lambda text: True)

    found = try_each(embedder, ["text"] * 100)

    assert found == [EmbedFailure("ValueError", is_down=True)] * 100
    assert len(embedder.calls) == 3


def test_an_embedder_that_goes_down_midway_keeps_what_it_gave():
    texts = ["one", "two", "three", "four"]
    good = [[1.0, 2.0]]

    def failing(left):
        def embed(asked):
            answer = left.pop(0) if left else None
            if answer is None:
                raise ConnectionError(SENTINEL)
            return answer

        return as_embedder(embed, dimensions=2)

    found = try_each(failing([None, good, None, None]), texts)

    assert is_vector(found[0])
    assert found[1:] == [EmbedFailure("ConnectionError", is_down=True)] * 3


@pytest.mark.parametrize("rows", [[], [[1.0, 2.0]], [[1.0, 2.0]] * 3, None, 7])
def test_a_wrong_number_of_vectors_makes_each_text_be_tried_alone(rows):
    one, other = try_each(returning(rows, [[1.0, 0.0]], [[0.0, 1.0]]), ["a", "b"])

    assert (one.tolist(), other.tolist()) == ([1, 0], [0, 1])


@pytest.mark.parametrize(
    "row",
    [
        *([float("nan"), 1.0], [float("inf"), 1.0], [1e300, 1.0], [0.0, 0.0], [1e-300, 0.0]),
        *(None, "ab", ["a", "b"], [[1.0, 2.0]], [None, 1.0], []),
    ],
    ids=str,
)
def test_what_points_nowhere_is_no_vector(row):
    good, failure = try_each(returning([[1.0, 2.0], row]), ["a", "b"])

    assert is_vector(good)
    assert isinstance(failure, EmbedFailure)
    assert not failure.is_down


def test_a_vector_of_another_length_is_a_clear_failure():
    good, failure = try_each(returning([[1.0, 2.0], [1.0, 2.0, 3.0]]), ["a", "b"])

    assert is_vector(good)
    assert isinstance(failure.mismatch, DimensionMismatchError)
    assert (failure.mismatch.expected, failure.mismatch.actual) == (2, 3)


def test_vectors_are_copies():
    rows = np.ones((2, 2), dtype=np.float32)

    one, _ = try_each(returning(rows), ["a", "b"])
    rows[:] = 5

    assert one.tolist() == [1, 1]
    assert one.base is None


def test_a60_an_embedder_gets_a_bounded_beginning():
    embedder = FakeEmbedder(max_characters=10)
    unlimited = as_embedder(lambda texts: [[float(len(text))] for text in texts])

    try_each(embedder, ["x" * 1_000_000])
    (found,) = try_each(unlimited, ["x" * 1_000_000])

    assert embedder.calls == [("x" * 10,)]
    assert found.tolist() == [8_000]
    assert shortened(embedder, ["x" * 10, "x" * 11]) == [False, True]
    assert shortened(unlimited, ["x" * 8_000, "x" * 8_001]) == [False, True]


def test_a_question_goes_the_embedders_own_way():
    class Asked(FakeEmbedder):
        def embed_query(self, text):
            return [1.0, *([0.0] * 31)]

    assert embed_query(Asked(), "where")[0] == 1
    assert np.allclose(embed_query(FakeEmbedder(), "where"), FakeEmbedder().embed(["where"])[0])


def test_a_question_that_is_rejected_raises_without_its_text():
    with pytest.raises(BackendError, match="ValueError") as raised:
        embed_query(FakeEmbedder(failing=[SENTINEL]), SENTINEL)

    assert SENTINEL not in str(raised.value)
    assert SENTINEL in str(raised.value.__cause__)


@pytest.mark.parametrize("rows", [[], [[1.0, 2.0]] * 2, [[0.0, 0.0]], [None], [["a", "b"]]])
def test_all_or_none_raises_for_what_is_no_vector(rows):
    with pytest.raises(BackendError, match="embedding failed"):
        embed_all(returning(rows), ["a"])


def test_an_error_of_ours_stays_what_it_is():
    def damaged(texts):
        raise ConfigurationError("embedder", "model.onnx is damaged; reinstall")

    with pytest.raises(ConfigurationError):
        embed_query(as_embedder(damaged, dimensions=2), "a")
