"""Namespaces: read, written, and matched by whole segments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import errors
from hiermem_core.models.namespaces import (
    close_names,
    format_namespace,
    is_within,
    parse_namespace,
    subtree_bounds,
)

segments = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/"), min_size=1, max_size=6
) | st.sampled_from(["a", "ab", "a0", "a.", "...", "a b", "A", "\uffff", "😀", "%", "_"])
paths = st.lists(segments, min_size=1, max_size=4).map(tuple)


def is_in_bounds(namespace, bounds):
    exact, low, high = (text.encode() for text in bounds)
    return namespace.encode() == exact or low <= namespace.encode() < high


@pytest.mark.parametrize("value", ["", "/", "/a", "a/", "a//b", (), [], ("a", ""), ("",)])
def test_a_namespace_without_a_segment_or_with_an_empty_one_is_refused(value):
    with pytest.raises(errors.InvalidNamespaceError):
        parse_namespace(value)


@pytest.mark.parametrize("text", ["a\n", "\x00", "a\x1fb", "\x7f", "\x85", "hi \ud83d"])
def test_a_control_character_or_lone_surrogate_is_refused(text):
    for value in (text, ("a", text)):
        with pytest.raises(errors.InvalidNamespaceError):
            parse_namespace(value)


@pytest.mark.parametrize("value", [None, 1, b"a", {"a"}, ("a", 1), ("a", None), {"a": 1}])
def test_what_is_neither_text_nor_texts_is_refused(value):
    with pytest.raises(errors.InvalidNamespaceError):
        parse_namespace(value)


def test_text_and_segments_mean_the_same():
    assert parse_namespace("team/größe/日本") == ("team", "größe", "日本")
    assert parse_namespace(["team", "größe", "日本"]) == ("team", "größe", "日本")
    assert format_namespace(("team", "größe", "日本")) == "team/größe/日本"
    assert format_namespace("team/größe/日本") == "team/größe/日本"


def test_1024_characters_and_16_segments_are_the_most():
    assert parse_namespace("n" * 1024) == ("n" * 1024,)
    assert len(parse_namespace("/".join("a" * 16))) == 16

    with pytest.raises(errors.LimitExceededError) as characters:
        parse_namespace("n" * 1025)
    with pytest.raises(errors.LimitExceededError) as count:
        parse_namespace(["a"] * 17)

    assert (characters.value.limit, characters.value.actual) == (1024, 1025)
    assert (count.value.limit, count.value.actual) == (16, 17)


def test_a14_a_namespace_does_not_hold_one_whose_name_only_begins_alike():
    assert is_within("t/a", "t/a")
    assert is_within("t/a/b", "t/a")
    assert not is_within("t/ab", "t/a")
    assert not is_within("t", "t/a")
    assert not is_within("T/a", "t/a")


def test_a15_an_underscore_joins_nothing_and_a_slash_in_a_segment_is_refused():
    assert not is_within(("team_a",), ("team", "a"))
    assert not is_within(("team", "a"), ("team_a",))
    with pytest.raises(errors.InvalidNamespaceError):
        parse_namespace(("team/a",))


def test_composed_and_decomposed_letters_are_two_names():
    assert not is_within("gro\u0308\u00dfe", "gr\u00f6\u00dfe")


@given(paths)
def test_p14_encoding_and_decoding_are_inverse(path):
    assert parse_namespace(format_namespace(path)) == path


@given(paths, paths)
def test_p14_matching_equals_matching_of_tuple_prefixes(path, other):
    inner, outer = path + other[:2], other[:2]

    for namespace in (path, inner, outer + path):
        expected = namespace[: len(outer)] == outer

        assert is_within(namespace, outer) is expected
        assert is_within(format_namespace(namespace), format_namespace(outer)) is expected
        assert is_in_bounds(format_namespace(namespace), subtree_bounds(outer)) is expected


def test_the_bounds_of_a_subtree_begin_at_the_slash_and_end_before_the_next_character():
    assert subtree_bounds(("a", "b")) == ("a/b", "a/b/", "a/b0")


def test_a19_a_mistyped_namespace_has_close_names_the_closest_first():
    known = ["projects/alpha", "projects/beta", "people", "projects/alphas", "projects/alph"]

    assert close_names("projects/alhpa", known)[0] == "projects/alpha"
    assert len(close_names("projects/alpha", known)) == 3
    assert close_names("projects/alpha", known, limit=1) == ["projects/alpha"]
    assert close_names("projects/alpha", known, limit=0) == []
    assert close_names("zzz", known) == []
