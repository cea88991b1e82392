"""Counting joined texts: by pieces where an encoding allows it, and never otherwise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.utils import get_tokenizer

from hiermem_core.tokens.tiktoken_counter import TiktokenCounter, default_counter, load_encoding
from llamaindex_hiermem.counting import Count, count_by, default_tokenizer, pieces_of

CHUNKS = [
    *("it", "'s", " ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u0301", "1234", "٣", "ß"),
    *(
        "...",
        "(",
        "/",
        "://",
        "<|endoftext|>",
        "<|",
        "|>",
        "東京",
        "👩‍👩‍👧",
        "Don'",
        "T",
        "é",
        "\x1c",
    ),
]
TEXTS = st.lists(st.lists(st.sampled_from(CHUNKS), max_size=6).map("".join) | st.text(max_size=6))


@given(TEXTS)
def test_the_pieces_are_the_joined_text(texts):
    pieces = list(pieces_of(texts))

    assert "".join(pieces) == " ".join(texts)
    assert all(piece[0] == " " for piece in pieces[1:])
    assert not any(piece[-1].isspace() for piece in pieces[:-1])


@given(TEXTS)
def test_a_sum_of_pieces_is_the_count_of_the_joined_text_by_the_default_tokenizer(texts):
    count = Count(get_tokenizer())

    assert count.joined(texts) == len(get_tokenizer()(" ".join(texts)))


@given(TEXTS)
def test_a_sum_of_pieces_is_the_count_of_the_joined_text_by_o200k(texts):
    counter = default_counter("o200k_base")
    assert isinstance(counter, TiktokenCounter)
    encode = load_encoding(counter._encoding, counter._ranks).encode_ordinary

    assert Count(encode).joined(texts) == len(encode(" ".join(texts)))


def test_another_tokenizer_gets_the_joined_text():
    asked = []

    def tokens(text):
        asked.append(text)
        return list(text)

    assert Count(tokens).joined(["one", "two"]) == len("one two")
    assert asked == ["one two"]


def test_memories_of_one_tokenizer_share_what_was_counted():
    asked = []

    def tokens(text):
        asked.append(text)
        return text.split()

    first, second = count_by(tokens), count_by(tokens)

    assert (first("one two"), second("one two")) == (2, 2)
    assert asked == ["one two"]
    assert count_by(str.split) is not first
    assert count_by(default_tokenizer) is count_by(get_tokenizer())
