"""Ranking by hand-made figures: what each term adds, and what holds for any candidates."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.ranking.scoring import (
    Candidate,
    TurnFacts,
    Weights,
    fuse_by_rank,
    places_beside,
    rank,
)

BASE_ONLY = Weights(
    previous=0, following=0, part_best=0, part_words=0, named=0, question=0, length=0
)


def turn(position, *, thread=1, part=0, author="Ann", words=0, is_question=False):
    return TurnFacts(thread, position, part, author, words, is_question)


def scores_of(ranked):
    return {one.number: one.score for one in ranked}


def test_a38_an_entry_that_leads_both_legs_is_first_with_score_one():
    newer = [Candidate(number, 0.0, 0.1) for number in range(1, 20)]

    ranked = rank([*newer, Candidate(99, 2.5, 0.8)])

    assert (ranked[0].number, ranked[0].score) == (99, 1.0)
    assert {one.score for one in ranked[1:]} == {0.0}


@pytest.mark.parametrize("cosine", [1.0, 0.2, 0.0, -1.0])
def test_a_union_of_one_row_scores_one(cosine):
    assert rank([Candidate(7, 0.3, cosine)])[0].score == 1.0


def test_an_entry_scores_its_base():
    ranked = rank([Candidate(1, 4.0, 0.2), Candidate(2, 1.0, 0.6), Candidate(3, 0.0, 0.4)])

    assert scores_of(ranked) == pytest.approx({1: 0.4, 2: 0.4 * 0.25 + 0.6, 3: 0.3})


def test_a_candidate_whose_vector_is_not_made_yet_is_judged_by_its_words():
    ranked = rank([Candidate(1, 2.0, None), Candidate(2, 4.0, 0.5), Candidate(3, 0.0, 0.1)])

    assert scores_of(ranked) == pytest.approx({2: 1.0, 1: 0.5, 3: 0.0})


def test_where_nothing_has_a_vector_the_best_words_alone_make_the_score():
    ranked = rank([Candidate(1, 1.0, None), Candidate(2, 4.0, None)])

    assert scores_of(ranked) == {2: 1.0, 1: 0.25}


def test_equal_scores_keep_their_order():
    ranked = rank([Candidate(number, 1.0, 0.5) for number in (5, 3, 9, 1)])

    assert [one.number for one in ranked] == [5, 3, 9, 1]


def test_nothing_to_rank_gives_nothing():
    assert rank([]) == []
    assert places_beside([]) == []
    assert fuse_by_rank([]) == fuse_by_rank([[], []]) == []


def test_every_term_of_a_turn_is_explained():
    candidates = [
        Candidate(1, 4.0, 0.9, turn(4, words=15)),
        Candidate(2, 0.0, 0.4, turn(5, author="Bob", words=90, is_question=True)),
        Candidate(3, 2.0, 0.5, turn(6)),
        Candidate(4, 0.0, 0.65, turn(7, part=1)),
    ]

    told = {one.number: one for one in rank(candidates, named="Bob", explain=True)}

    terms = dict(told[2].terms)
    assert terms.pop("cosine") == 0.4
    assert terms.pop("bm25") == 0.0
    assert terms == pytest.approx(
        {
            "keyword": 0.0,
            "vector": 0.0,
            "previous": 0.1 * 1.0,
            "following": 0.15 * (0.4 * 0.5 + 0.6 * 0.2),
            "part_best": 0.2 * 1.0,
            "part_words": 0.2,
            "named": 0.2,
            "question": -0.1,
            "length": 0.1,
        }
    )
    assert told[2].score == pytest.approx(sum(terms.values()) / Weights().greatest)
    assert told[4].terms["part_words"] == told[4].terms["previous"] == 0.0
    assert told[1].terms["length"] == pytest.approx(0.05)
    assert told[1].terms["named"] == 0.0


def test_terms_are_empty_unless_asked_for():
    assert rank([Candidate(1, 1.0, 0.5, turn(1))])[0].terms == {}


@pytest.mark.parametrize("elsewhere", [turn(3, thread=2), turn(3, part=1), turn(2), None], ids=str)
def test_only_the_turn_beside_in_the_same_part_counts(elsewhere):
    candidates = [Candidate(1, 1.0, 1.0, elsewhere), Candidate(2, 0.0, 0.0, turn(4))]

    terms = {one.number: one.terms for one in rank(candidates, explain=True)}

    assert terms[2]["previous"] == terms[2]["following"] == 0.0


def test_no_author_is_named_by_no_name():
    candidates = [Candidate(1, 1.0, 1.0, turn(1, author=None))]

    assert rank(candidates, named=None, explain=True)[0].terms["named"] == 0.0


@pytest.mark.parametrize(
    "weight", [field.name for field in fields(Weights) if field.name != "full_length"]
)
def test_each_weight_can_be_switched_off(weight):
    candidates = [
        Candidate(1, 4.0, 0.9, turn(4, words=15, is_question=True)),
        Candidate(2, 1.0, 0.4, turn(5, words=30)),
        Candidate(3, 0.0, 0.1, turn(6, words=30)),
    ]

    ranked = rank(
        candidates, named="Ann", weights=replace(Weights(), **{weight: 0.0}), explain=True
    )

    assert {one.terms[weight] for one in ranked} == {0.0}
    assert all(0 <= one.score <= 1 for one in ranked)


def test_without_terms_of_turns_a_turn_scores_as_an_entry():
    rows = [(1, 4.0, 0.2), (2, 1.0, 0.6), (3, 0.0, 0.4)]

    as_turns = rank([Candidate(*row, turn(row[0])) for row in rows], weights=BASE_ONLY)

    assert as_turns == rank([Candidate(*row) for row in rows])


def test_a_turn_that_has_everything_scores_one():
    candidates = [Candidate(number, 1.0, 0.5, turn(number, words=30)) for number in (1, 2, 3)]

    assert scores_of(rank(candidates, named="Ann"))[2] == pytest.approx(1.0)


PLACES = st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 3))


@st.composite
def candidates(draw):
    rows = []
    for number, (thread, position, part) in enumerate(
        draw(st.lists(PLACES, max_size=30, unique_by=lambda place: place[:2]))
    ):
        facts = TurnFacts(
            thread,
            position,
            part,
            draw(st.sampled_from(["Ann", "Bob", None])),
            draw(st.integers(0, 200)),
            draw(st.booleans()),
        )
        rows.append(
            Candidate(
                number,
                draw(st.floats(0, 50)),
                draw(st.none() | st.floats(-1, 1)),
                draw(st.sampled_from([facts, None])),
            )
        )
    return rows


@given(candidates(), st.sampled_from(["Ann", None]))
def test_any_candidates_are_ranked_within_zero_and_one_best_first(rows, named):
    ranked = rank(rows, named=named)

    scores = [one.score for one in ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert sorted(one.number for one in ranked) == [row.number for row in rows]


@given(candidates(), st.sampled_from(["Ann", None]))
def test_explaining_changes_no_score(rows, named):
    plain = [(one.number, one.score) for one in rank(rows, named=named)]
    explained = rank(rows, named=named, explain=True)

    assert [(one.number, one.score) for one in explained] == plain


@given(candidates(), st.floats(0.1, 10))
def test_the_scale_of_bm25_does_not_matter_to_entries(rows, factor):
    entries = [row._replace(turn=None) for row in rows]
    scaled = [row._replace(bm25=row.bm25 * factor) for row in entries]

    assert scores_of(rank(scaled)) == pytest.approx(scores_of(rank(entries)), abs=1e-9)


def test_places_beside_the_best_turns_are_worth_a_look():
    rows = [
        Candidate(1, 4.0, 0.9, turn(4)),
        Candidate(2, 1.0, 0.4, turn(5)),
        Candidate(3, 0.0, 0.1, turn(9, part=1)),
        Candidate(4, 9.0, 0.9),
    ]

    assert places_beside(rows) == [(1, 0, 3), (1, 0, 6), (1, 1, 8), (1, 1, 10)]
    assert places_beside(rows, first=1) == [(1, 0, 3)]


@given(candidates())
def test_places_beside_are_new_and_distinct(rows):
    places = places_beside(rows, first=5)

    held = {row.turn.place for row in rows if row.turn}
    assert len(places) == len(set(places)) <= 10
    assert not held & set(places)


def test_what_leads_every_leg_has_the_fused_score_one():
    fused = fuse_by_rank([[7, 3], [7, 5, 3]])

    assert fused[0] == (7, 1.0)
    assert dict(fused)[3] == pytest.approx((11 / 12 + 11 / 13) / 2)
    assert [number for number, _ in fused] == [7, 3, 5]


def test_fused_ties_keep_the_order_of_the_legs():
    assert [number for number, _ in fuse_by_rank([[4, 2], [2, 4]])] == [4, 2]
    assert [number for number, _ in fuse_by_rank([[8], [6]], k=60)] == [8, 6]
