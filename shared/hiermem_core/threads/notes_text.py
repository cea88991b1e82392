"""Notes as text, fitted into a budget. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hiermem_core.models.context import ContextWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.models.notes import Fact, ThreadState
    from hiermem_core.protocols import TokenCounter

_SENTENCE = re.compile(r".*?(?:[.!?](?=\s|$)|[\u3002\uff01\uff1f]|\n|$)\s*", re.DOTALL)


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
    facts, summary = list(state.facts), state.summary
    while facts and counter.count(notes_text(summary, facts)) > budget:
        facts.remove(min(facts, key=lambda fact: fact.confirmed_seq))
    while summary and counter.count(notes_text(summary, facts)) > budget:
        summary = without_last_sentence(summary)
    text = notes_text(summary, facts)
    cut = counter.count(whole) - counter.count(text)
    if not cut:
        return text, ()
    detail = {
        "facts": len(state.facts) - len(facts),
        "summary_characters": len(state.summary) - len(summary),
    }
    return text, (ContextWarning("notes_trimmed", tokens=cut, detail=detail),)


def without_last_sentence(text: str) -> str:
    """Return `text` less its last sentence; `""` where it is one."""
    sentences = [match.group() for match in _SENTENCE.finditer(text) if match.group()]
    return "".join(sentences[:-1]).rstrip()
