"""Notes as text, and shortened until they fit. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from hiermem_core.models.warnings import ContextWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hiermem_core.models.notes import Fact, ThreadState
    from hiermem_core.protocols import TokenCounter

FACT = "- "
"""What the line of a fact begins with."""

_SENTENCE = re.compile(
    r".*?(?:[.!?\u061f\u06d4\u0964](?=\s|$)|[\u3002\uff01\uff0e\uff1f]|\n|$)\s*", re.DOTALL
)


def says_something(text: str) -> bool:
    """Tell whether a text has a letter or a digit."""
    return any(map(str.isalnum, text))


def notes_text(summary: str, facts: Sequence[Fact]) -> str:
    """Return the text of notes: the summary, then a line for each fact; `""` for none.

    The facts confirmed longest ago come first.
    """
    oldest_first = sorted(facts, key=lambda fact: fact.confirmed_seq)
    lines = [summary.strip(), *(f"{FACT}{fact.text}" for fact in oldest_first)]
    return "\n".join(line for line in lines if line)


def fit_notes(
    state: ThreadState, budget: int, counter: TokenCounter
) -> tuple[str, tuple[ContextWarning, ...]]:
    """Return the text of notes in at most `budget` tokens, and a warning if some are left out."""
    whole = notes_text(state.summary, state.facts)
    return shortened_notes(whole, lambda text: counter.count(text) - budget, counter)


def shortened_notes(
    notes: str, excess: Callable[[str], int], counter: TokenCounter
) -> tuple[str, tuple[ContextWarning, ...]]:
    """Return notes cut until they fit, and a warning of what is left out.

    The lines of facts go first, from the oldest on, then the summary from its end, by sentences.

    Args:
        excess: Returns how many tokens too many a text is.
    """
    if not notes or excess(notes) <= 0:
        return notes, ()
    summary, facts = _parted(notes)
    sentences = sentences_of(summary)

    def without(gone: int) -> str:
        """Return the notes less so many facts, then sentences."""
        kept = "".join(sentences[: len(sentences) - max(0, gone - len(facts))])
        return "\n".join([kept.rstrip()] * bool(kept.strip()) + facts[gone:])

    most = len(facts) + len(sentences)
    gone = bisect_left(range(most), True, key=lambda gone: excess(without(gone)) <= 0)  # noqa: FBT003 - what is looked for
    text = without(gone)
    left = len(_parted(text)[0]) if gone > len(facts) else len(summary)
    detail = {"facts": min(gone, len(facts)), "summary_characters": len(summary) - left}
    tokens = max(0, counter.count(notes) - counter.count(text))
    return text, (ContextWarning("notes_trimmed", tokens=tokens, detail=detail),)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, each with the white space after it."""
    return [match.group() for match in _SENTENCE.finditer(text) if match.group()]


def without_last_sentence(text: str) -> str:
    """Return `text` less its last sentence; `""` where it is one."""
    return "".join(sentences_of(text)[:-1]).rstrip()


def _parted(notes: str) -> tuple[str, list[str]]:
    """Return the summary, and the lines of facts that end the notes."""
    lines = notes.split("\n")
    first = len(lines)
    while first and lines[first - 1].startswith(FACT):
        first -= 1
    return "\n".join(lines[:first]), lines[first:]
