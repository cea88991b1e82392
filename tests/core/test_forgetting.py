"""Forgetting, on each backend, and its pure rules."""

from __future__ import annotations

from core.memory_backends import EVERY, on
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.forgetting.selectors import selector_of
from hiermem_core.service.derivation import descendants, fallout
from hiermem_core.testing.contracts.forgetting import ForgettingContract
from hiermem_core.testing.contracts.forgetting_in_flight import ForgettingInFlightContract


class TestForgetting(ForgettingContract):
    opened = on(*EVERY)


class TestForgettingInFlight(ForgettingInFlightContract):
    opened = on(*EVERY)


NAMES = st.sampled_from("abcdefgh")
SOURCES = st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=3).map(tuple), max_size=8)


@given(forgotten=st.sets(NAMES), sources=SOURCES, missing=st.sets(NAMES))
def test_whatever_stays_stands_on_a_source_that_is_left(forgotten, sources, missing):
    existing = set("abcdefgh") - missing

    fallen = fallout(forgotten, sources, existing)

    lost = forgotten | fallen.gone
    touched = descendants(forgotten, sources)
    assert fallen.gone <= touched
    for name in touched - fallen.gone:
        assert stands(name, sources, existing - lost, touched)
        assert fallen.kept.get(name, sources[name]) == tuple(
            source for source in sources[name] if source not in lost
        )
    for name in fallen.gone:
        assert not stands(name, sources, existing - forgotten, touched)
    assert set(fallen.kept) <= touched - fallen.gone


def stands(name, sources, left, touched, *, seen=frozenset()):
    """Tell whether an entry rests on one that was not derived from what is forgotten."""
    if name not in touched:
        return name in left
    return name not in seen and any(
        stands(source, sources, left, touched, seen=seen | {name}) for source in sources[name]
    )


@given(forgotten=st.sets(NAMES), sources=SOURCES)
def test_what_falls_does_not_depend_on_the_order(forgotten, sources):
    backwards = dict(reversed(list(sources.items())))

    assert fallout(forgotten, sources, "abcdefgh") == fallout(forgotten, backwards, "abcdefgh")


def test_entries_derived_from_each_other_do_not_hold_each_other_up():
    sources = {"a": ("b", "x"), "b": ("a",), "c": ("c", "x")}

    assert fallout({"x"}, sources, {"a", "b", "c", "x"}).gone == {"a", "b", "c"}


def test_a_source_that_is_not_there_holds_nothing_up():
    sources = {"a": ("x", "gone before"), "b": ("gone before",)}

    assert fallout({"x"}, sources, {"a", "b", "x"}).gone == {"a"}


def selected(**given_one):
    none = {"ids": None, "namespace": None, "thread_id": None, "user_id": None}
    return selector_of(**{**none, "everything": False, **given_one})


def test_a_digest_stands_for_one_selector_of_one_tenant():
    selectors = [
        ("a", selected(ids=["x", "y"])),
        ("b", selected(ids=["x", "y"])),
        ("a", selected(ids=["x"])),
        ("a", selected(namespace="x")),
        ("a", selected(user_id="x")),
        ("a", selected(thread_id="x")),
        ("a", selected(everything=True)),
    ]

    digests = {selector.digest(tenant) for tenant, selector in selectors}

    assert len(digests) == len(selectors)
    assert selected(ids=["y", "x", "y"]).digest("a") == selected(ids=["x", "y"]).digest("a")
