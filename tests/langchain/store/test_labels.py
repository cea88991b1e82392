"""Namespaces of LangGraph as namespaces of HierMem, and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import MatchCondition
from langgraph.store.memory import _does_match

from hiermem_core.models.namespaces import parse_namespace
from langchain_hiermem.labels import ROOT, common_prefix, encoded, labels_of, meets

letters = st.characters(exclude_characters="\x00.", exclude_categories=["Cs"])
labels = st.one_of(
    st.text(letters, min_size=1, max_size=6),
    st.text(st.sampled_from("%25F0/a\x1f\x7f\x80*"), min_size=1, max_size=6),
)
paths = st.lists(labels, max_size=4).map(tuple)


@given(path=paths)
def test_labels_come_back_from_their_namespace_which_the_core_takes(path):
    namespace = encoded(path)

    assert labels_of(namespace) == path
    assert len(parse_namespace(namespace)) == max(1, len(path))
    assert (namespace == ROOT) == (not path)


@given(one=paths, other=paths)
def test_a_namespace_is_below_another_exactly_where_its_labels_are(one, other):
    is_below = encoded(one) == encoded(other) or encoded(one).startswith(encoded(other) + "/")

    assert is_below == (one[: len(other)] == other and (bool(other) or not one))


@given(name=st.text(st.sampled_from("ab%2 5F-_é"), min_size=1, max_size=8))
def test_a_name_that_is_not_encoded_is_itself(name):
    if encoded((name,)) == name:
        assert labels_of(name) == (name,)


few = st.lists(st.sampled_from(["a", "b", "*"]), max_size=3).map(tuple)
conditions = st.lists(
    st.builds(MatchCondition, match_type=st.sampled_from(["prefix", "suffix"]), path=few),
    max_size=3,
)


@given(
    path=st.lists(st.sampled_from("abc"), max_size=4).map(tuple),
    asked=conditions,
)
def test_conditions_match_as_in_the_store_in_memory(path, asked):
    assert meets(path, asked) == all(_does_match(condition, path) for condition in asked)
    if meets(path, asked):
        prefix = common_prefix(asked)
        assert path[: len(prefix)] == prefix
