"""Merging: what a reply makes of the notes, and that it never makes more of them than it says."""

from __future__ import annotations

import pytest
from core.merging import QUARTERS, REPLIES, learned, merge, state_of, states, texts_of
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.learning.merging import (
    FACT_CHARACTERS,
    MOST_FACTS,
    MOST_SOURCES,
    SUMMARY_TOKENS,
    Merged,
)
from hiermem_core.learning.replies import Reply, Statement
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.threads.notes import without_turns


def test_b28_a_new_fact_joins_nine():
    nine = [f"Fact number {number}" for number in range(9)]

    assert learned("The tenth", state=state_of(*nine)) == [*nine, "The tenth"]


def test_b28_figures_that_differ_are_two_facts_unless_one_is_retracted():
    state = state_of("The port is 8090", "The host is kiku")

    joined = learned("The port is 8091", state=state)
    replaced = learned("The port is 8091", retract=[1], state=state)

    assert joined == ["The port is 8090", "The host is kiku", "The port is 8091"]
    assert replaced == ["The host is kiku", "The port is 8091"]


@pytest.mark.parametrize("numbers", [(0,), (-1,), (3,), (99, 10**30), ()])
def test_b28_a_number_that_lists_nothing_retracts_nothing(numbers):
    state = state_of("one", "two")

    assert merge(state, Reply("New.", (), numbers)).state.facts == state.facts


def test_a_number_is_of_the_listed_facts_and_not_of_all():
    state = state_of("one", "two", "three")

    new = merge(state, Reply("New.", (), (1,)), listed=state.facts[1:]).state

    assert texts_of(new) == ["one", "three"]


def test_a_fact_that_is_retracted_and_stated_at_once_is_confirmed():
    state = state_of("one", "two")

    new = merge(state, Reply("", (Statement("one."),), (1, 2))).state

    assert new.facts == (Fact("one", 9, ((3,), (7, 8, 9))),)


@pytest.mark.parametrize(
    "same",
    [
        "Ada lives in Kyoto.",
        "  Ada  lives\nin\tKyoto ",
        "Ada lives in Kyoto!",
        "- Ada lives in Kyoto",
        "\u2022 Ada lives in Kyoto",
        "12. Ada lives in Kyoto.",
        "(3) Ada lives in Kyoto",
    ],
)
def test_an_equal_fact_is_confirmed_and_keeps_its_words(same):
    new = merge(state_of("Ada lives in Kyoto"), Reply("", (Statement(same, (8,)),))).state

    assert new.facts == (Fact("Ada lives in Kyoto", 8, ((3,), (8,))),)


@pytest.mark.parametrize(
    "other", ["ada lives in Kyoto", "Ada lives in Kyoto?", "Ada lives in Kyo-to"]
)
def test_letter_case_and_signs_make_another_fact(other):
    assert learned(other, state=state_of("Ada lives in Kyoto")) == ["Ada lives in Kyoto", other]


def test_the_same_letters_composed_otherwise_are_equal():
    assert learned("cafe\u0301", state=state_of("caf\u00e9")) == ["caf\u00e9"]


@pytest.mark.parametrize("nothing", ["", " ", "...", "-", "- ", "1. ...", "\u3002", "\U0001f44d"])
def test_a_statement_without_a_letter_or_digit_is_no_fact(nothing):
    assert learned(nothing) == []


def test_a_fact_records_the_turns_it_names_of_those_that_were_learned():
    statements = (
        Statement("named", (9, 7, 7)),
        Statement("half", (2, 8, 99, -1)),
        Statement("wrong", (1, 2)),
        Statement("unnamed"),
    )

    new = merge(ThreadState(), Reply("", statements)).state

    assert new.facts == (
        Fact("named", 9, ((7, 9),)),
        Fact("half", 8, ((8,),)),
        Fact("wrong", 9, ((7, 8, 9),)),
        Fact("unnamed", 9, ((7, 8, 9),)),
    )
    assert new.turn_count == 9


def test_a_fact_stated_twice_in_a_reply_stands_once_with_both_sources():
    new = merge(ThreadState(), Reply("", (Statement("a", (8,)), Statement("a.", (7,))))).state

    assert new.facts == (Fact("a", 8, ((8,), (7,))),)


def test_the_newest_sources_of_a_fact_are_kept():
    state = ThreadState()
    for seq in range(1, 13):
        state = merge(state, Reply("", (Statement("a", (seq,)),)), seqs=(seq,)).state

    assert state.facts == (Fact("a", 12, tuple((seq,) for seq in range(5, 13))),)
    assert len(state.facts[0].sources) == MOST_SOURCES


def test_what_was_only_learnt_from_some_turns_goes_with_them():
    twice = Fact("twice", 9, ((3,), (8, 9)))
    state = ThreadState("Summary.", (Fact("once", 3, ((3,),)), twice, Fact("kept", 4, ((4,),))), 9)

    assert without_turns(state, [3], reset_seq=2) == ThreadState(
        "", (Fact("twice", 9, ((8, 9),)), Fact("kept", 4, ((4,),))), 2
    )
    assert without_turns(state, [3, 8, 4], reset_seq=0).facts == ()


def test_b29_the_fifty_facts_confirmed_last_remain_and_the_others_are_counted():
    state, dropped = ThreadState(), 0
    for seq in range(1, 61):
        merge_one = merge(state, Reply("", (Statement(f"fact {seq}"),)), seqs=(seq,))
        state, dropped = merge_one.state, dropped + merge_one.dropped

    assert texts_of(state) == [f"fact {seq}" for seq in range(11, 61)]
    assert dropped == 10


def test_b29_a_fact_that_was_confirmed_outlives_newer_ones():
    state = ThreadState()
    for seq in range(1, 61):
        stated = (Statement(f"fact {seq}"), *([Statement("fact 1")] if seq == 49 else []))
        state = merge(state, Reply("", stated), seqs=(seq,)).state

    assert texts_of(state)[:2] == ["fact 1", "fact 12"]
    assert len(state.facts) == 50


def test_b29_of_sixty_facts_in_one_reply_the_last_fifty_remain():
    reply = Reply("", tuple(Statement(f"fact {number}") for number in range(60)))

    first = merge(ThreadState(), reply)
    again = merge(first.state, reply, listed=())

    assert texts_of(first.state) == [f"fact {number}" for number in range(10, 60)]
    assert (first.dropped, again) == (10, Merged(first.state, 10, is_empty=False))


@given(states(), REPLIES, st.integers(0, 60))
def test_p13_merging_is_idempotent(state, reply, from_fact):
    listed = state.facts[from_fact:]
    once = merge(state, reply, listed=listed).state

    assert merge(once, reply, listed=listed).state == once


@given(states(), REPLIES)
def test_p13_merging_never_exceeds_a_limit(state, reply):
    new = merge(state, reply).state

    assert len(new.facts) <= MOST_FACTS
    assert all(0 < len(fact.text) <= FACT_CHARACTERS for fact in new.facts)
    assert all(len(fact.sources) <= MOST_SOURCES for fact in new.facts)
    assert QUARTERS.count(new.summary) <= SUMMARY_TOKENS
    assert all(fact.sources and fact.confirmed_seq in fact.seqs for fact in new.facts)


@given(states(), REPLIES)
def test_p13_only_retracted_or_dropped_facts_are_removed(state, reply):
    numbers = [number for number in reply.retract if 0 < number <= len(state.facts)]
    retracted = {state.facts[number - 1].text for number in numbers}

    result = merge(state, reply)

    left = texts_of(result.state)
    gone = [fact for fact in state.facts if fact.text not in left]
    dropped = [fact for fact in gone if fact.text not in retracted]
    assert len(dropped) <= result.dropped
    oldest_kept = min((fact.confirmed_seq for fact in result.state.facts), default=0)
    assert all(fact.confirmed_seq <= oldest_kept for fact in dropped)
    assert not dropped or len(left) == MOST_FACTS


@given(states(), REPLIES)
def test_p13_an_empty_summary_never_replaces_another(state, reply):
    assert merge(state, reply).state.summary or not state.summary


def test_p13_sources_that_are_named_again_are_the_newest_ones():
    sources = tuple((seq,) for seq in range(1, MOST_SOURCES + 1))
    state = ThreadState("", (Fact("a", MOST_SOURCES, sources),), 8)
    reply = Reply("", (Statement("a", (1,)), Statement("a", (9,))))

    once = merge(state, reply, seqs=(1, 9)).state
    again = merge(once, reply, seqs=(1, 9)).state

    assert once.facts[0].sources == (*sources[2:], (1,), (9,))
    assert again == once


def test_p13_a_summary_reads_the_same_whether_its_facts_are_new_or_known():
    reply = Reply("They talk.\n- Ada is here", (Statement("Ada is here"),))

    once = merge(ThreadState(), reply, listed=()).state

    assert once.summary == "They talk."
    assert merge(once, reply, listed=()).state == once
