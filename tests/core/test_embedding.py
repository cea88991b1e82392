"""The default embedder, with its real model."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.embedding.calling import shortened, try_each
from hiermem_core.embedding.local_model import BATCH_TOKENS, MAX_ROWS, batches
from hiermem_core.embedding.minilm import (
    READ_CHARACTERS,
    SEEN_CHARACTERS,
    SURELY_WHOLE_CHARACTERS,
    MiniLM,
    default_embedder,
    readable,
)

QUESTION = "When should we meet?"
NEAR = "She prefers meetings in the morning."
FAR = "The database was migrated to a new server."

MIXED = [
    "Hello.",
    "",
    "Invoice 4711 is unpaid. " * 12,
    "漢字とかな",
    "She is allergic to nuts.",
    "a somewhat longer line about the weather in Hamburg, where it rains on most days of May " * 3,
    "\N{GRINNING FACE}",
]


@pytest.fixture(scope="module")
def minilm():
    return MiniLM()


def cosine(one, other):
    return float(np.dot(one, other))


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        (QUESTION, NEAR, FAR),
        ("My dog died last week.", "Her pet passed away recently.", "The stock market rose."),
        ("How do I reset my password?", "I cannot log in to my account.", "I like Italian food."),
        ("He is a vegetarian.", "He never eats meat.", "He plays the piano."),
    ],
)
def test_a_paraphrase_is_nearer_than_another_subject(minilm, text, near, far):
    one, paraphrase, other = minilm.embed([text, near, far])

    assert cosine(one, paraphrase) > cosine(one, other) + 0.1


def test_cosines_are_those_of_the_original_weights(minilm):
    happy, *others = minilm.embed(
        [
            "That is a happy person",
            "That is a happy dog",
            "That is a very happy person",
            "Today is a sunny day",
        ]
    )

    assert np.vstack(others) @ happy == pytest.approx([0.6946, 0.9429, 0.2569], abs=0.01)


def test_vectors_come_in_the_order_of_the_texts_and_do_not_depend_on_the_batch(minilm):
    texts = MIXED * 8

    together = minilm.embed(texts)

    alone = np.vstack([minilm.embed([text]) for text in MIXED] * 8)
    assert together.shape == (len(texts), minilm.dimensions)
    assert together.dtype == np.float32
    assert np.einsum("ij,ij->i", together, alone).min() > 0.999


def test_no_text_gives_no_vector(minilm):
    assert minilm.embed([]).shape == (0, 384)


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n\t", "\x00", "\ud800", "a\udfffb", "\ufeff", "\u200b"),
        *("漢字", "안녕하세요", "ภาษาไทย", "\N{GRINNING FACE}" * 3, "e" + "\u0301" * 500),
        *("[CLS] [SEP] [PAD]", "<|endoftext|>"),
    ],
    ids=ascii,
)
def test_every_text_has_a_finite_unit_vector(minilm, text):
    (vector,) = minilm.embed([text])

    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@given(text=st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_text_has_a_finite_unit_vector(text):
    (vector,) = MiniLM().embed([text])

    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


HUGE = {
    "no space": "abcdefghij" * 100_000,
    "words": "ten times a day " * 62_500,
    "space": " " * 1_000_000,
    "hangul": "안녕하세요" * 200_000,
    "surrogates": "\ud800" * 1_000_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_a60_a_million_characters_are_embedded_by_a_bounded_beginning(minilm, name):
    text = HUGE[name]

    (vector,) = minilm.embed([text])

    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert len(readable(text)) < READ_CHARACTERS * 1.1
    assert minilm.is_shortened(text)


@pytest.mark.parametrize(
    ("one", "other"), [("abcdefghij", "qrstuvwxyz"), ("안녕하세요", "대한민국")], ids=ascii
)
def test_a60_long_texts_without_spaces_are_told_apart(minilm, one, other):
    vector, different, same = minilm.embed([one * 5_000, other * 5_000, one * 300])

    assert cosine(vector, different) < 0.9
    assert cosine(vector, same) > 0.99


def test_what_follows_a_run_of_white_space_is_read(minilm):
    one, other = minilm.embed(["\n" * 20_000 + NEAR, NEAR])

    assert cosine(one, other) == pytest.approx(1, abs=1e-5)
    assert not minilm.is_shortened("\n" * 20_000 + NEAR)


def test_a60_a_text_is_shortened_where_its_end_has_no_part_in_the_vector(minilm):
    whole, long = "word " * 254, "word " * 255

    ends = minilm.embed([whole + "music", long + "music", long + "death"])

    assert shortened(minilm, [NEAR, whole, long]) == [False, False, True]
    assert cosine(ends[1], ends[2]) == pytest.approx(1, abs=1e-5)


@given(
    text=st.text(st.characters(exclude_categories=()), max_size=SURELY_WHOLE_CHARACTERS)
    | st.text("각힣값\u0390İ ﬃ", max_size=SURELY_WHOLE_CHARACTERS)
)
def test_a_short_text_is_never_shortened(text):
    from hiermem_core.embedding.local_model import shared_model

    assert not shared_model().overflows(readable(text))


@given(text=st.text(max_size=300))
def test_words_of_ordinary_length_are_left_as_they_are(text):
    is_ordinary = all(len(word) <= 33 for word in text.split())

    assert not is_ordinary or readable(text) == text.replace("\x00", "\ufffd")


@given(lengths=st.lists(st.integers(2, 256), max_size=100))
def test_batches_hold_each_text_once_within_their_bounds(lengths):
    found = batches(lengths)

    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    assert all(len(batch) <= MAX_ROWS for batch in found)
    assert all(
        len(batch) * max(lengths[index] for index in batch) <= BATCH_TOKENS for batch in found
    )


def test_threads_get_the_vectors_that_one_alone_gets(minilm):
    expected = minilm.embed(MIXED)
    start = threading.Barrier(4)

    def embed(_):
        start.wait()
        return [MiniLM().embed(MIXED) for _ in range(3)]

    with ThreadPoolExecutor(4) as pool:
        found = [vectors for many in pool.map(embed, range(4)) for vectors in many]

    assert all(np.array_equal(vectors, expected) for vectors in found)


def test_the_default_embedder_is_an_embedder_for_all_that_calls_one(minilm):
    found = try_each(default_embedder(), MIXED)

    assert np.array_equal(np.vstack(found), minilm.embed(MIXED))


def test_its_reach_is_what_it_says(minilm):
    assert minilm.max_characters == SEEN_CHARACTERS
    assert (minilm.model_id, minilm.dimensions) == ("all-MiniLM-L6-v2", 384)
