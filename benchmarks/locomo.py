"""LoCoMo: its conversations as turns, its questions with the turns that answer them.

The data set is CC BY-NC 4.0 and no part of this project; name its file. Each conversation is one
between two people over many days; the evidence of a question is the turns that hold the answer.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hiermem_core import TurnDraft

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ALL = "1 to 4"
CUTS = (5, 10, 20, 50)

_EVIDENCE = re.compile(r"D(\d+):0*(\d+)")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True)
class Said:
    """One turn of a conversation; `caption` is what a picture shows that was sent with it."""

    id: str
    speaker: str
    is_first_speaker: bool
    text: str
    caption: str | None
    moment: datetime

    @property
    def line(self) -> str:
        """The turn as text: speaker, words, caption."""
        return f"{self.speaker}: {self.text}" + (f" [{self.caption}]" if self.caption else "")

    def draft(self) -> TurnDraft:
        """Return the turn as it is appended."""
        parts: tuple[dict[str, Any], ...] = ()
        if self.caption:
            picture = {"type": "media", "kind": "image", "text": self.caption}
            parts = ({"type": "text", "text": self.text}, picture)
        return TurnDraft(
            role="user" if self.is_first_speaker else "assistant",
            name=self.speaker,
            id=self.id,
            content=self.text,
            parts=parts,
            created_at=self.moment,
        )


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the turns that answer it."""

    text: str
    category: str
    evidence: frozenset[str]

    @property
    def names(self) -> list[str]:
        """The groups its figures count in; adversarial ones stay apart."""
        return [self.category] if self.category == CATEGORIES[5] else [self.category, ALL]


@dataclass(frozen=True)
class Conversation:
    """A conversation and what is asked about it."""

    name: str
    turns: list[Said]
    questions: list[Question]


def read(path: Path) -> list[Conversation]:
    """Return the conversations of a LoCoMo file."""
    samples = json.loads(path.read_text(encoding="utf-8"))
    return [_conversation(sample, f"conversation {n}") for n, sample in enumerate(samples, 1)]


def _conversation(sample: dict[str, Any], name: str) -> Conversation:
    turns = list(_turns(sample["conversation"]))
    known = {turn.id for turn in turns}
    questions = []
    for asked in sample["qa"]:
        named = _EVIDENCE.findall(" ".join(map(str, asked.get("evidence", []))))
        evidence = frozenset(f"D{session}:{place}" for session, place in named) & known
        if evidence:
            category = CATEGORIES[asked["category"]]
            questions.append(Question(str(asked["question"]), category, evidence))
    return Conversation(name, turns, questions)


def _turns(talk: dict[str, Any]) -> Iterator[Said]:
    """Yield the turns of all sessions, one minute apart within each."""
    sessions = (int(found[1]) for key in talk if (found := _SESSION.fullmatch(key)))
    for session in sorted(sessions):
        said_at = f"{talk[f'session_{session}_date_time']} +0000"
        begin = datetime.strptime(said_at, "%I:%M %p on %d %B, %Y %z")
        for minute, said in enumerate(talk[f"session_{session}"]):
            yield Said(
                id=said["dia_id"],
                speaker=said["speaker"],
                is_first_speaker=said["speaker"] == talk["speaker_a"],
                text=said["text"],
                caption=said.get("blip_caption"),
                moment=begin + timedelta(minutes=minute),
            )


def ranking_figures(found: Sequence[str], evidence: Collection[str]) -> dict[str, float]:
    """Return what a ranked list of turn ids is worth.

    R@k is the share of the evidence among the first k, averaged over questions; session@5 tells
    whether one of the five sessions that come first holds evidence.
    """
    ranks = [rank for rank, turn_id in enumerate(found, 1) if turn_id in evidence]
    sessions = list(dict.fromkeys(map(session_of, found)))[:5]
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(evidence), 10) + 1))
    return {
        **{f"R@{cut}": sum(rank <= cut for rank in ranks) / len(evidence) for cut in CUTS},
        "MRR": 1 / ranks[0] if ranks else 0.0,
        "hit@10": float(any(rank <= 10 for rank in ranks)),
        "nDCG@10": gain / ideal,
        "session@5": float(not set(sessions).isdisjoint(map(session_of, evidence))),
    }


def session_of(turn_id: str) -> str:
    """Return the session of a turn."""
    return turn_id.partition(":")[0]


class Figures:
    """Figures of questions, by category."""

    def __init__(self) -> None:
        self._rows: dict[str, list[dict[str, float]]] = {}

    def add(self, question: Question, figures: dict[str, float]) -> None:
        """Take the figures of a question."""
        for name in question.names:
            self._rows.setdefault(name, []).append(figures)

    def percent(self) -> dict[str, dict[str, float]]:
        """Return for each category the mean of each figure, in percent."""
        return {
            name: {
                figure: round(100 * statistics.mean(row[figure] for row in rows), 1)
                for figure in rows[0]
            }
            for name, rows in sorted(self._rows.items())
        }
