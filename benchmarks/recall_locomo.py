"""How much of what was said is found again: LoCoMo, by `thread.recall` and in `thread.context`.

    python benchmarks/recall_locomo.py --data locomo.json

Each conversation is a thread of a tenant of its own. Every question of categories 1 to 4 is asked
at its end; its evidence is the turns that hold the answer. Beside HierMem, with the same embedder
and the same rows: the newest turns, vector search of the raw text, BM25, and the vector retrievers
of LangChain and LlamaIndex as they come. LoCoMo is CC BY-NC 4.0 and no part of this project.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from hiermem_core import HierMem
from hiermem_core.embedding.minilm import MiniLM

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
CUTS = (5, 10, 20, 50)
BUDGETS = (500, 1000, 2000, 4000)
DEEP = 50
_EVIDENCE = re.compile(r"D(\d+):0*(\d+)")


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """A conversation: its turns as drafts, and what is asked about it."""

    name: str
    turns: list[dict]
    questions: list[Question]


@dataclass
class Figures:
    """Sums over questions."""

    rows: list[dict[str, float]] = field(default_factory=list)

    def add(self, **figures: float) -> None:
        """Take the figures of one question."""
        self.rows.append(figures)

    def means(self) -> dict[str, float]:
        """Return the mean of each figure, in percent."""
        names = self.rows[0] if self.rows else {}
        return {name: 100 * statistics.mean(row[name] for row in self.rows) for name in names}


def read(path: Path) -> list[Conversation]:
    """Return the conversations of a LoCoMo file."""
    samples = json.loads(path.read_text(encoding="utf-8"))
    return [conversation_of(sample, f"c{number}") for number, sample in enumerate(samples)]


def conversation_of(sample: dict, name: str) -> Conversation:
    """Return one conversation; evidence that names no turn is left out."""
    turns = list(turns_of(sample["conversation"]))
    known = {turn["id"] for turn in turns}
    questions = []
    for asked in sample["qa"]:
        named = _EVIDENCE.findall(" ".join(map(str, asked.get("evidence", []))))
        evidence = frozenset(f"D{session}:{place}" for session, place in named) & known
        if evidence:
            questions.append(Question(str(asked["question"]), asked["category"], evidence))
    return Conversation(name, turns, questions)


def turns_of(talk: dict):
    """Yield the turns, one minute apart within a session; a picture's caption goes with it."""
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        said_at = f"{talk[f'session_{number}_date_time']} +0000"
        begin = datetime.strptime(said_at, "%I:%M %p on %d %B, %Y %z")
        for minute, said in enumerate(talk[f"session_{number}"]):
            yield {
                "role": "user" if said["speaker"] == talk["speaker_a"] else "assistant",
                "name": said["speaker"],
                "id": said["dia_id"],
                "content": said["text"],
                "created_at": (begin + timedelta(minutes=minute)).isoformat(),
                "caption": said.get("blip_caption"),
            }


def draft_of(turn: dict) -> dict:
    """Return a turn as it is appended."""
    from hiermem_core import TurnDraft  # noqa: PLC0415 - beside its use

    parts: tuple[dict, ...] = ()
    if turn["caption"]:
        picture = {"type": "media", "kind": "image", "text": turn["caption"]}
        parts = ({"type": "text", "text": turn["content"]}, picture)
    return TurnDraft(
        role=turn["role"],
        name=turn["name"],
        id=turn["id"],
        content=turn["content"],
        parts=parts,
        created_at=datetime.fromisoformat(turn["created_at"]),
    )


def ranking_figures(found: list[str], question: Question) -> dict[str, float]:
    """Return what a ranked list of turn ids is worth for a question."""
    gold = question.evidence
    ranks = [place for place, turn_id in enumerate(found, 1) if turn_id in gold]
    sessions = {turn_id.split(":")[0] for turn_id in gold}
    first_sessions = list(dict.fromkeys(turn_id.split(":")[0] for turn_id in found))[:5]
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(gold), 10) + 1))
    return {
        **{f"R@{cut}": sum(rank <= cut for rank in ranks) / len(gold) for cut in CUTS},
        "MRR": 1 / ranks[0] if ranks else 0.0,
        "hit@10": float(any(rank <= 10 for rank in ranks)),
        "nDCG@10": gain / ideal,
        "session@5": float(bool(sessions & set(first_sessions))),
    }


def context_figures(thread, question: Question) -> dict[str, float]:
    """Return how much of the evidence is in contexts of several budgets."""
    figures = {}
    for budget in BUDGETS:
        context = thread.context(current=question.text, budget_tokens=budget)
        shown = {turn.id for turn in context.messages} | {hit.id for hit in context.hits}
        figures[f"{budget}"] = len(question.evidence & shown) / len(question.evidence)
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo JSON file")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--quick", action="store_true", help="HierMem only")
    options = parser.parse_args()
    conversations = read(options.data)
    results = measure_hiermem(conversations, embedder=None)
    for name, means in results.items():
        print(name, {k: round(v, 1) for k, v in means.items()})


def measure_hiermem(conversations, **options):
    """Return the figures of HierMem by category, and the time of a recall."""
    by_category: dict[str, Figures] = {}
    contexts: dict[str, Figures] = {}
    seconds = []
    with tempfile.TemporaryDirectory() as folder, HierMem.open(folder, **options) as hiermem:
        for conversation in conversations:
            tenant = hiermem.tenant(conversation.name)
            thread = tenant.thread("talk")
            thread.append([draft_of(turn) for turn in conversation.turns])
            tenant.memory.wait_for_index()
            for question in conversation.questions:
                begin = time.perf_counter()
                hits = thread.recall(question.text, limit=DEEP)
                seconds.append(time.perf_counter() - begin)
                figures = ranking_figures([hit.id for hit in hits], question)
                budgets = context_figures(thread, question)
                names = [CATEGORIES[question.category]]
                names += ["all"] if question.category != 5 else []
                for name in names:
                    by_category.setdefault(name, Figures()).add(**figures)
                    contexts.setdefault(f"{name} context", Figures()).add(**budgets)
    print("ms per recall", 1000 * statistics.median(seconds), file=sys.stderr)
    return {name: one.means() for name, one in (by_category | contexts).items()}


if __name__ == "__main__":
    main()
