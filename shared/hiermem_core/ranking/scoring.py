"""Ranking: one score from the keyword and vector legs and from what stands around a turn. Pure.

Weights and terms were chosen by evidence recall on long conversations of two people, where a
scorer fitted without the conversation it is judged on does as well within two points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Floats: TypeAlias = NDArray[np.float64]
Place: TypeAlias = tuple[int, int, int]

_TINY = 1e-12
_NO_TERMS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each term adds to a score; 0 switches it off.

    `keyword` and `vector` weigh the base of every candidate, the others are for turns only.

    Attributes:
        keyword: Times BM25 as a share of the best.
        vector: Times the cosine's place between the least and the greatest.
        previous: Times the base of the turn before, in the same part.
        following: Times the base of the turn after, in the same part.
        part_best: Times the greatest base in the part.
        part_words: Times the logarithm of 1 + all BM25 in the part, as a share of the greatest.
        named: For turns by the participant whom the question names.
        question: For turns that end by asking.
        length: Times the words of the turn, of `full_length` at most, as a share of that.
    """

    keyword: float = 0.4
    vector: float = 0.6
    previous: float = 0.1
    following: float = 0.15
    part_best: float = 0.2
    part_words: float = 0.2
    named: float = 0.2
    question: float = -0.1
    length: float = 0.1
    full_length: int = 30

    @property
    def base(self) -> float:
        """The greatest base."""
        return self.keyword + self.vector

    @property
    def greatest(self) -> float:
        """The greatest sum of a turn's terms."""
        of_bases = (self.previous, self.following, self.part_best)
        others = (self.part_words, self.named, self.question, self.length)
        times = 1.0 + sum(max(0.0, weight) for weight in of_bases)
        return self.base * times + sum(max(0.0, weight) for weight in others)


DEFAULT_WEIGHTS = Weights()


class TurnFacts(NamedTuple):
    """What ranking knows of a turn.

    Attributes:
        thread: Any number that tells threads apart.
        position: In the thread; the turns beside it have the positions beside it.
        part: Of the thread: a stretch without a long pause, or an imported session.
        words: By `word_count`.
        is_question: By `is_question`.
    """

    thread: int
    position: int
    part: int
    author: str | None
    words: int
    is_question: bool

    @property
    def place(self) -> Place:
        """Where the turn stands: thread, part, position."""
        return self.thread, self.part, self.position


class Candidate(NamedTuple):
    """A row that the keyword leg or the vector leg found, or one beside such a row.

    Attributes:
        number: The caller's name for it.
        bm25: Positive, greater is better; 0.0 when the keyword leg did not find it.
        cosine: To the question's vector, whichever leg found the row; None without a vector.
        turn: None for an entry.
    """

    number: int
    bm25: float
    cosine: float | None
    turn: TurnFacts | None = None


class Ranked(NamedTuple):
    """A candidate's score in [0, 1], greater is better.

    Attributes:
        terms: Each weighted term, raw `bm25` and, with a vector, raw `cosine`; empty unless
            explained. A turn's score is the sum of its weighted terms over `Weights.greatest`,
            an entry's over `Weights.base`, and 0 if that is negative.
    """

    number: int
    score: float
    terms: Mapping[str, float] = _NO_TERMS


def rank(
    candidates: Sequence[Candidate],
    *,
    named: str | None = None,
    weights: Weights = DEFAULT_WEIGHTS,
    explain: bool = False,
) -> list[Ranked]:
    """Return the candidates with their scores, best first; equal scores keep their order.

    BM25 and cosine are compared among the candidates, so their whole union comes in one call. A
    candidate whose vector is not made yet is judged by its words alone; where none has one,
    `vector` weighs nothing. Either way the best words alone can make an entry's score 1.

    Args:
        named: The one participant whom the question names.
    """
    if not candidates:
        return []
    if all(one.cosine is None for one in candidates):
        weights = replace(weights, vector=0.0)
    is_turn = np.array([one.turn is not None for one in candidates])
    terms = _terms(candidates, is_turn, named, weights)
    greatest = np.where(is_turn, weights.greatest, weights.base)
    scores = np.clip(
        sum(terms.values(), np.zeros(len(candidates))) / np.maximum(greatest, _TINY), 0.0, 1.0
    )
    order = np.argsort(-scores, kind="stable").tolist()
    told = [_explained(candidates[row], row, terms) if explain else _NO_TERMS for row in order]
    return [
        Ranked(candidates[row].number, score, why)
        for row, score, why in zip(order, scores[order].tolist(), told, strict=True)
    ]


def places_beside(
    candidates: Sequence[Candidate], *, first: int = 30, weights: Weights = DEFAULT_WEIGHTS
) -> list[Place]:
    """Return the places beside the `first` best turns that no candidate holds.

    An answer often shares no word with the question that stands before it: the turns at these
    places, where there are any, are worth ranking as candidates too.
    """
    turns = [(row, one.turn.place) for row, one in enumerate(candidates) if one.turn is not None]
    if not turns:
        return []
    base = sum(_base_terms(candidates, weights).values(), np.zeros(len(candidates)))
    held = {place for _, place in turns}
    best = sorted(turns, key=lambda found: -base[found[0]])[:first]
    beside = [(thread, part, at + step) for _, (thread, part, at) in best for step in (-1, 1)]
    return [place for place in dict.fromkeys(beside) if place not in held]


def fuse_by_rank(legs: Sequence[Sequence[int]], *, k: int = 10) -> list[tuple[int, float]]:
    """Return each number in `legs` with its score in [0, 1], best first.

    Reciprocal rank fusion (Cormack, Clarke, Buettcher, SIGIR 2009), divided by what a number
    gets that leads every leg. Equal scores keep the order of the legs.

    Args:
        legs: Each best first, without repetition.
        k: What a lower rank costs less, the greater it is.
    """
    scores: dict[int, float] = {}
    for leg in legs:
        for place, number in enumerate(leg, start=1):
            scores[number] = scores.get(number, 0.0) + (k + 1) / ((k + place) * len(legs))
    return sorted(scores.items(), key=lambda scored: -scored[1])


def _terms(
    candidates: Sequence[Candidate],
    is_turn: NDArray[np.bool_],
    named: str | None,
    weights: Weights,
) -> dict[str, Floats]:
    """Return each weighted term of all candidates; those for turns are 0 for entries."""
    terms = _base_terms(candidates, weights)
    turns = [one.turn for one in candidates if one.turn is not None]
    if not turns:
        return terms
    base = (terms["keyword"] + terms["vector"])[is_turn]
    words = np.array([one.bm25 for one in candidates])[is_turn]
    for name, values in _turn_terms(turns, base, words, named, weights).items():
        terms[name] = np.zeros(len(candidates))
        terms[name][is_turn] = values
    return terms


def _base_terms(candidates: Sequence[Candidate], weights: Weights) -> dict[str, Floats]:
    """Return what the two legs say, weighted; without a vector words stand for both."""
    words = np.array([one.bm25 for one in candidates])
    has_vector = np.array([one.cosine is not None for one in candidates])
    vectors = _share(words)
    vectors[has_vector] = _between([one.cosine for one in candidates if one.cosine is not None])
    return {"keyword": weights.keyword * _share(words), "vector": weights.vector * vectors}


def _turn_terms(
    turns: Sequence[TurnFacts], base: Floats, bm25: Floats, named: str | None, weights: Weights
) -> dict[str, Floats]:
    """Return the weighted terms that only turns have."""
    places = [turn.place for turn in turns]
    numbers: dict[tuple[int, int], int] = {}
    parts = np.array([numbers.setdefault(place[:2], len(numbers)) for place in places])
    best = np.zeros(len(numbers))
    np.maximum.at(best, parts, base)
    told = _share(np.log1p(np.bincount(parts, weights=bm25)))
    by_named = np.array([named is not None and turn.author == named for turn in turns])
    lengths = np.array([turn.words for turn in turns]) / weights.full_length
    return {
        "previous": weights.previous * _beside(places, base, -1),
        "following": weights.following * _beside(places, base, 1),
        "part_best": weights.part_best * best[parts],
        "part_words": weights.part_words * told[parts],
        "named": weights.named * by_named,
        "question": weights.question * np.array([turn.is_question for turn in turns]),
        "length": weights.length * np.minimum(1.0, lengths),
    }


def _beside(places: Sequence[Place], base: Floats, step: int) -> Floats:
    """Return for each place the base of the one `step` further in its part, 0 without one."""
    rows = {place: row for row, place in enumerate(places)}
    nobody = len(places)
    found = [rows.get((thread, part, at + step), nobody) for thread, part, at in places]
    return np.append(base, 0.0)[found]


def _share(values: Floats) -> Floats:
    """Return `values`, none negative, as shares of the greatest."""
    shares: Floats = values / max(_TINY, values.max())
    return shares


def _between(values: Iterable[float]) -> Floats:
    """Return where each value lies between the least, 0, and the greatest, 1; all equal are 1."""
    given = np.fromiter(values, float)
    if not given.size or np.ptp(given) < _TINY:
        return np.ones_like(given)
    places: Floats = (given - given.min()) / np.ptp(given)
    return places


def _explained(one: Candidate, row: int, terms: Mapping[str, Floats]) -> Mapping[str, float]:
    """Return what made the score of a candidate."""
    raw = {"bm25": one.bm25} | ({} if one.cosine is None else {"cosine": one.cosine})
    weighted = {name: float(values[row]) for name, values in terms.items()}
    return MappingProxyType(weighted | raw)
