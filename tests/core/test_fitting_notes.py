"""Fitted notes are in their budget and say what is left out."""

from __future__ import annotations

import pytest
from core.merging import states
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.threads.notes_text import fit_notes, notes_text, without_last_sentence
from hiermem_core.tokens.counters import FunctionCounter

CHARACTERS = FunctionCounter(len, id="characters")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("One. Two. Three.", "One. Two."),
        ("One. Two", "One."),
        ("Costs 3.50 euro. More.", "Costs 3.50 euro."),
        ("一つ。二つ。", "一つ。"),
        ("a\nb", "a"),
        ("One.", ""),
        ("", ""),
        ("no end", ""),
        ("واحد؟ اثنان؟", "واحد؟"),
        ("एक। दो।", "एक।"),
    ],
)
def test_a_text_less_its_last_sentence(text, left):
    assert without_last_sentence(text) == left


@given(states(), st.integers(0, 600))
def test_fitted_notes_are_in_their_budget_and_say_what_is_left_out(state, budget):
    whole = notes_text(state.summary, state.facts)

    text, warned = fit_notes(state, budget, CHARACTERS)

    assert len(text) <= budget
    assert (text == whole) is not bool(warned)
    assert all(warning.tokens == len(whole) - len(text) for warning in warned)


def test_what_is_left_out_is_told_even_where_it_costs_nothing():
    state = ThreadState("", (Fact("a", 1), Fact("b", 2)), 2)
    lines = FunctionCounter(lambda text: 3 if text.count("-") > 1 else 2, id="odd")

    text, warned = fit_notes(state, 2, lines)

    assert (text, len(warned)) == ("- b", 1)


def test_nothing_is_left_out_that_costs_nothing():
    state = ThreadState("", (Fact("a", 1), Fact("b", 2)), 2)
    flat = FunctionCounter(lambda text: 2 if text else 0, id="flat")

    assert fit_notes(state, 3, flat) == ("- a\n- b", ())
    assert fit_notes(state, 1, flat)[0] == ""


def test_a_long_summary_is_counted_few_times():
    counted = []
    counter = FunctionCounter(lambda text: counted.append(len(text)) or len(text) // 4, id="q")
    state = ThreadState("They spoke about a trip. " * 4000, (), 2)

    text, _ = fit_notes(state, 100, counter)

    assert 300 < len(text) <= 400
    assert sum(counted) < 16 * len(state.summary)
