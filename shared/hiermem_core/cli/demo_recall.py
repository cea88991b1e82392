"""The demo's recall: what a context holds of answers that the window has lost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hiermem_core.cli.plain import context_json
from hiermem_core.displays.context_wording import context_lines
from hiermem_core.displays.printing import table
from hiermem_core.displays.wording import KEYWORDS_ONLY, moment_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import hiermem_core as core

BUDGET = 1000


@dataclass(frozen=True, slots=True)
class Question:
    """A question that a conversation answers.

    Attributes:
        evidence: The turns that hold the answer, by the ids of the file they come from.
    """

    text: str
    answer: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Found:
    """How much of the evidence contexts hold.

    Attributes:
        whole: Questions with all of their evidence.
        some: Questions with some of it.
    """

    turns: int
    whole: int
    some: int


def questions_of(path: Path) -> list[Question]:
    """Return the questions of a file beside a conversation."""
    return [
        Question(one["question"], one["answer"], frozenset(one["evidence"]))
        for one in json.loads(path.read_text(encoding="utf-8"))
    ]


def recall_steps(
    thread: core.Thread, questions: Sequence[Question], model_id: str | None
) -> Iterator[tuple[dict[str, Any], str]]:
    """Ask every question without and with recall, then show one of them whole."""
    turns = {_source_id(turn): turn for turn in thread.turns()}
    yield (
        {},
        f"\n5. Find what the window has lost: {len(questions)} questions, {BUDGET:,} tokens each",
    )
    ways = {"window only": False, "with recall": True}
    found = {way: _found(thread, questions, turns, recall=recall) for way, recall in ways.items()}
    facts: dict[str, Any] = {
        "budget": BUDGET,
        "by": "keywords and meaning" if model_id else "keywords",
    }
    counts = {way.replace(" ", "_"): _found_json(one) for way, one in found.items()}
    total = sum(len(question.evidence) for question in questions)
    facts |= {"questions": len(questions), "evidence": total, "found": counts}
    yield {"recall": facts}, _found_table(found, len(questions), total) + "\n" + _by(model_id)
    yield from _one_in_full(thread, questions, turns)


def furthest_back(questions: Sequence[Question], places: Mapping[str, int]) -> Question:
    """Return the question whose evidence, the newest of it, is the oldest."""
    return min(questions, key=lambda question: max(places[one] for one in question.evidence))


def _one_in_full(
    thread: core.Thread, questions: Sequence[Question], turns: Mapping[str, core.Turn]
) -> Iterator[tuple[dict[str, Any], str]]:
    asked = furthest_back(questions, {name: turn.seq for name, turn in turns.items()})
    places = {turns[name].seq: turns[name] for name in sorted(asked.evidence)}
    built = thread.context(current=asked.text, budget_tokens=BUDGET)
    shown = sorted(turns[name].seq for name in asked.evidence if turns[name].id in _ids(built))
    said = ", ".join(f"#{seq} of {moment_text(turn.created_at)}" for seq, turn in places.items())
    held = ", ".join(f"#{seq}" for seq in shown) or "nothing of it"
    lines = [
        "\n6. One of them in full: the one whose answer was given the longest ago",
        f"   question: {asked.text}",
        f"   answered: {asked.answer} (turn {said})",
        f"   held by the context: {held}\n",
        *context_lines(built),
    ]
    facts = {"question": asked.text, "evidence": list(places), "held": shown}
    yield {"example": facts | {"context": context_json(built)}}, "\n".join(lines)


def _found(
    thread: core.Thread,
    questions: Sequence[Question],
    turns: Mapping[str, core.Turn],
    *,
    recall: bool,
) -> Found:
    shares = []
    for question in questions:
        built = thread.context(current=question.text, budget_tokens=BUDGET, recall=recall)
        ids = _ids(built)
        held = sum(turns[name].id in ids for name in question.evidence)
        shares.append((held, len(question.evidence)))
    return Found(
        turns=sum(held for held, _ in shares),
        whole=sum(held == wanted for held, wanted in shares),
        some=sum(held > 0 for held, _ in shares),
    )


def _ids(context: core.Context) -> frozenset[str]:
    return frozenset(one for section in context.receipt.sections for one in section.ids)


def _source_id(turn: core.Turn) -> str:
    """Return the id an imported turn has in its file."""
    return str(json.loads(turn.origin.dump)["id"]) if turn.origin else ""


def _found_json(found: Found) -> dict[str, int]:
    return {"evidence": found.turns, "whole": found.whole, "some": found.some}


def _found_table(found: Mapping[str, Found], questions: int, total: int) -> str:
    head = ("context", "turns with the answer", "questions with all of it", "with some of it")
    rows = [
        (
            name,
            f"{one.turns} of {total}",
            f"{one.whole} of {questions}",
            f"{one.some} of {questions}",
        )
        for name, one in found.items()
    ]
    return table(head, rows)


def _by(model_id: str | None) -> str:
    if model_id is None:
        return KEYWORDS_ONLY
    return f"found by keywords, and by meaning: vectors of {model_id}, made on this machine"
