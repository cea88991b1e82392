"""The estimate stays close above the count of o200k_base, for each script and for any string."""

from __future__ import annotations

import importlib.util
import json
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.tokens.estimate import estimate_tokens

SAMPLES = json.loads(
    (Path(__file__).parent.parent / "data" / "token_samples.json").read_text(encoding="utf-8")
)
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
SAMPLE_TEXT = st.sampled_from([sample["text"] for sample in SAMPLES])

each_sample = pytest.mark.parametrize(
    "sample", [pytest.param(sample, id=sample["name"]) for sample in SAMPLES]
)


@pytest.fixture(scope="module")
def reference():
    """Return the tokenizer o200k_base, from the rank files that llama-index-core brings."""
    import tiktoken

    origin = Path(importlib.util.find_spec("llama_index.core").origin)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(origin.parent / "_static" / "tiktoken_cache"))
        return tiktoken.get_encoding("o200k_base")


def count(reference, text):
    return len(reference.encode_ordinary(text))


def byte_count(text):
    return len(text.encode("utf-8", "replace"))


@each_sample
def test_each_kept_sample_is_within_25_percent_and_never_more_than_10_percent_below(
    sample, reference
):
    expected = count(reference, sample["text"])
    assert 0.9 * expected <= estimate_tokens(sample["text"]) <= 1.25 * expected


def test_c17_japanese_is_counted_within_the_promised_bounds(reference):
    (text,) = [s["text"] for s in SAMPLES if s["name"] == "japanese-clockmaker-440"]
    assert len(text) == 440
    expected = count(reference, text)
    assert 0.9 * expected <= estimate_tokens(text) <= 1.25 * expected


def test_over_all_samples_the_estimate_is_a_little_too_high(reference):
    ratios = [estimate_tokens(s["text"]) / count(reference, s["text"]) for s in SAMPLES]
    assert 1.03 <= sum(ratios) / len(ratios) <= 1.15


@given(st.lists(SAMPLE_TEXT, min_size=2, max_size=5))
def test_mixed_samples_are_within_the_bounds_too(reference, texts):
    expected = count(reference, "\n".join(texts))
    assert 0.9 * expected <= estimate_tokens("\n".join(texts)) <= 1.25 * expected


def test_samples_are_of_the_promised_length_and_at_least_three_of_a_kind():
    assert all(200 <= len(sample["text"]) <= 1500 for sample in SAMPLES)
    kinds = Counter(sample["script"] for sample in SAMPLES)
    assert len(kinds) >= 16
    for kind in ("chinese", "japanese", "korean", "russian", "arabic", "hindi", "thai"):
        assert kinds[kind] >= 3


def test_the_empty_string_has_no_token():
    assert estimate_tokens("") == 0


@given(ANY_TEXT.filter(bool))
def test_any_other_string_has_one_token_or_more_and_at_most_one_per_byte(text):
    assert 1 <= estimate_tokens(text) <= byte_count(text)


@given(st.text(alphabet=st.characters(categories=["Cs"]), min_size=1))
def test_lone_surrogates_are_counted_without_an_error(text):
    assert 1 <= estimate_tokens(text) <= len(text)


@given(ANY_TEXT | SAMPLE_TEXT)
def test_the_same_text_has_always_the_same_estimate(text):
    assert estimate_tokens(text) == estimate_tokens(text[:1] + text[1:])


@given(SAMPLE_TEXT, st.integers(2, 4))
def test_a_text_repeated_is_priced_in_proportion(text, times):
    once = estimate_tokens(text + "\n")
    assert estimate_tokens((text + "\n") * times) == pytest.approx(times * once, rel=0.05)


@pytest.mark.parametrize(
    ("unit", "times"),
    [
        (" ", 1_000_000),
        ("\n", 1_000_000),
        (" \t", 300_000),
        ("a", 1_000_000),
        ("A", 1_000_000),
        ("aB", 200_000),
        ("1", 1_000_000),
        ("1-", 200_000),
        ("a1", 200_000),
        ("-", 1_000_000),
        ("\u0301", 300_000),
        ("\u7684", 300_000),
        ("\ud800", 300_000),
        ("\x00", 300_000),
        ("\U0001f600", 200_000),
        ("aGVsbG8gd29ybGQ0", 25_000),
    ],
)
def test_long_and_monotonous_text_is_counted_in_linear_time(unit, times):
    started = time.process_time()
    assert 1 <= estimate_tokens(unit * times) <= byte_count(unit) * times
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("cheap", "dear"),
    [
        (" " * 40, "qx" * 20),
        ("=" * 40, "!?" * 20),
        ("the house is by the sea", "b41d-9f2c-77aa-0e13-c5d8"),
        ("a word", "слово"),
    ],
)
def test_what_merges_in_a_tokenizer_is_cheaper(cheap, dear):
    assert estimate_tokens(cheap) < estimate_tokens(dear)
