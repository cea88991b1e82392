"""Contexts of turns and hits that the caller gives, and which ids a thread knows."""

from __future__ import annotations

import pytest

from hiermem_core import HierMem, InvalidInputError, TurnDraft


@pytest.fixture
def hiermem():
    with HierMem.open(":memory:") as hiermem:
        yield hiermem


@pytest.fixture
def thread(hiermem):
    thread = hiermem.tenant("acme").thread("t1")
    thread.append(exchange("stored", 0) + exchange("stored", 1))
    return thread


def exchange(text, number):
    return [
        TurnDraft(role="user", content=f"{text} question {number}", id=f"q{number}"),
        TurnDraft(role="assistant", content=f"{text} answer {number}", id=f"a{number}"),
    ]


def contents(context):
    return [turn.content for turn in context.messages]


def test_given_turns_stand_in_for_the_stored_ones_and_are_not_stored(thread):
    context = thread.context(
        window=exchange("given", 8), current="and now?", budget_tokens=1000, recall=False
    )

    assert contents(context) == ["given question 8", "given answer 8", "and now?"]
    assert context.warnings == ()
    assert len(thread.turns()) == 4


def test_an_empty_window_is_a_window(thread):
    assert contents(
        thread.context(window=[], current="and now?", budget_tokens=1000, recall=False)
    ) == ["and now?"]


def test_of_a_given_window_the_oldest_goes_first_and_is_told_of(thread):
    window = [turn for number in range(20) for turn in exchange("given", number)]

    context = thread.context(window=window, current="now?", budget_tokens=120, recall=False)

    kept = contents(context)
    assert kept == [*[turn.content for turn in window][41 - len(kept) :], "now?"]
    assert 1 < len(kept) < 20
    (warning,) = context.warnings
    assert (warning.code, warning.count) == ("turns_trimmed", 41 - len(kept))
    assert context.receipt.total <= 120


def test_hits_of_an_earlier_context_are_shown_without_looking_again(hiermem, thread):
    acme = hiermem.tenant("acme")
    acme.remember("the tea is green")
    first = thread.context(current="tea?", budget_tokens=1000)
    acme.remember("the tea is black")

    again = thread.context(current="tea?", budget_tokens=1000, recalled=first.hits)

    assert [hit.content for hit in first.hits] == ["the tea is green"]
    assert again == first
    assert thread.context(current="tea?", budget_tokens=1000, recalled=()).hits == ()


def test_entries_can_be_recalled_of_one_namespace_only(hiermem, thread):
    acme = hiermem.tenant("acme")
    acme.remember("the tea is green", namespace="public/drinks")
    acme.remember("the tea is secret", namespace="publicity")

    context = thread.context(current="tea?", budget_tokens=1000, recall_namespace="public")

    assert [hit.content for hit in context.hits] == ["the tea is green"]


def test_a_blank_question_is_refused_and_a_blank_turn_before_it_is_left_out(thread):
    blank, asked = TurnDraft(role="user", content=" "), TurnDraft(role="user", content="tea?")

    context = thread.context(current=[blank, asked], budget_tokens=1000, recall=False)

    assert contents(context)[-1] == "tea?"
    assert " " not in contents(context)
    assert [warning.code for warning in context.warnings] == ["blank_turns_dropped"]
    with pytest.raises(InvalidInputError, match="is blank"):
        thread.context(current=[asked, blank], budget_tokens=1000)


def test_a_thread_knows_the_ids_of_active_and_archived_turns(hiermem, thread):
    thread.replace(exchange("new", 5))

    assert thread.known(["q0", "a1", "q5", "q9", "\ud800", ""]) == {"q0", "a1", "q5"}
    assert thread.known([]) == set()
    assert thread.known(f"q{n}" for n in range(5000)) == {"q0", "q1", "q5"}
    assert hiermem.tenant("acme").thread("new").known(["q0"]) == set()
    assert hiermem.tenant("other").thread("t1").known(["q0"]) == set()
