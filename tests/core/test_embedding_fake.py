"""The embedder of the test kit."""

from __future__ import annotations

import json
import math
import threading

import pytest
from core.children import run
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.protocols import Embedder
from hiermem_core.testing import FakeEmbedder

PRINT_A_VECTOR = """
import json
from hiermem_core.testing import FakeEmbedder
print(json.dumps(FakeEmbedder(8).embed(["morning meetings"])[0]))
"""


def cosine(one, other):
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


@given(text=st.text(st.characters(exclude_categories=())), dimensions=st.integers(1, 40))
def test_every_text_has_a_unit_vector_of_the_length(text, dimensions):
    (vector,) = FakeEmbedder(dimensions).embed([text])

    assert len(vector) == dimensions
    assert math.hypot(*vector) == pytest.approx(1)


def test_texts_that_share_words_are_near():
    text, near, far = FakeEmbedder(64).embed(
        ["She prefers morning meetings", "morning meetings, please", "The parcel left Hamburg"]
    )

    assert cosine(text, near) > 0.4 > abs(cosine(text, far))


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_vectors_are_the_same_in_every_process(hash_seed):
    printed = run(PRINT_A_VECTOR, env={"PYTHONHASHSEED": hash_seed})

    assert json.loads(printed) == FakeEmbedder(8).embed(["morning meetings"])[0]


def test_another_seed_is_another_model_under_the_same_name():
    one, other = FakeEmbedder(32, "fake"), FakeEmbedder(32, "fake", seed=1)

    assert one.model_id == other.model_id
    assert abs(cosine(*one.embed(["word"]), *other.embed(["word"]))) < 0.9


def test_it_is_an_embedder_and_remembers_its_calls():
    embedder = FakeEmbedder()

    embedder.embed(["a", "b"])
    embedder.embed(["c"])

    assert isinstance(embedder, Embedder)
    assert embedder.calls == [("a", "b"), ("c",)]


@pytest.mark.parametrize("failing", [["bad"], lambda text: text == "bad"], ids=["texts", "rule"])
def test_it_rejects_a_call_with_a_failing_text(failing):
    embedder = FakeEmbedder(failing=failing)

    with pytest.raises(ValueError, match="bad"):
        embedder.embed(["good", "bad"])
    assert len(embedder.embed(["good"])) == 1


def test_a_call_waits_at_the_gate():
    gate, vectors = threading.Event(), []
    embedder = FakeEmbedder(gate=gate)
    thread = threading.Thread(target=lambda: vectors.extend(embedder.embed(["a"])))

    thread.start()
    arrived = embedder.waiting.wait(20)
    found_before = list(vectors)
    gate.set()
    thread.join(20)

    assert arrived
    assert found_before == []
    assert len(vectors) == 1
