"""Notes as text, fitted into a budget. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hiermem_core.models.warnings import ContextWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.models.notes import Fact, ThreadState
    from hiermem_core.protocols import TokenCounter

_SENTENCE = re.compile(
    r".*?(?:[.!?\u061f\u06d4\u0964](?=\s|$)|[\u3002\uff01\uff0e\uff1f]|\n|$)\s*", re.DOTALL
)


def says_something(text: str) -> bool:
    """Tell whether a text has a letter or a digit."""
    return any(map(str.isalnum, text))


def notes_text(summary: str, facts: Sequence[Fact]) -> str:
    """Return the text of notes: the summary, then a line for each fact; `""` for none."""
    lines = [summary.strip(), *(f"- {fact.text}" for fact in facts)]
    return "\n".join(line for line in lines if line)


def fit_notes(
    state: ThreadState, budget: int, counter: TokenCounter
) -> tuple[str, tuple[ContextWarning, ...]]:
    """Return the text of notes in at most `budget` tokens, and a warning if some are left out.

    Facts confirmed longest ago go first, then the summary is cut at a sentence.
    """
    whole = notes_text(state.summary, state.facts)
    kept = _newest(state.facts, budget, counter)
    while kept and counter.count(notes_text(state.summary, kept)) > budget:
        kept.pop()
    facts = [fact for fact in state.facts if fact in kept]
    summary = state.summary
    while summary and counter.count(notes_text(summary, facts)) > budget:
        summary = without_last_sentence(summary)
    text = notes_text(summary, facts)
    if text == whole:
        return text, ()
    cut = max(0, counter.count(whole) - counter.count(text))
    detail = {
        "facts": len(state.facts) - len(facts),
        "summary_characters": len(state.summary) - len(summary),
    }
    return text, (ContextWarning("notes_trimmed", tokens=cut, detail=detail),)


def _newest(facts: Sequence[Fact], budget: int, counter: TokenCounter) -> list[Fact]:
    """Return the facts confirmed last that fit by themselves, the newest first."""
    kept = []
    for fact in sorted(facts, key=lambda fact: -fact.confirmed_seq):
        budget -= counter.count(f"- {fact.text}\n")
        if budget < 0:
            break
        kept.append(fact)
    return kept


def without_last_sentence(text: str) -> str:
    """Return `text` less its last sentence; `""` where it is one."""
    sentences = [match.group() for match in _SENTENCE.finditer(text) if match.group()]
    return "".join(sentences[:-1]).rstrip()
