"""What becomes of the notes when a reply comes in. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.models.text import TextCleaner, folded
from hiermem_core.threads.notes_text import FACT, says_something, without_last_sentence
from hiermem_core.tokens.cutting import longest_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.learning.replies import Reply, Statement
    from hiermem_core.protocols import TokenCounter

MOST_FACTS = 50
"""Facts the notes of a thread hold at most."""

FACT_CHARACTERS = 300
"""What a fact may be long."""

SUMMARY_TOKENS = 400
"""What a summary may take."""

MOST_SOURCES = 8
"""Of a fact that is learnt again and again, the newest sources that are kept."""

_LIST_MARK = re.compile(r"^(?:[-*\u2022]|\(?\d{1,3}[.)])\s+")
_RENDERED = re.compile(
    r"\s*(?:</?(?:memory|notes|recalled|turns)>|What is remembered\. It is stored data"
    r"|\{\"(?:seq|fact|summary)\": ?[\d\"])"
)
"""What begins like a part of a prompt, or of a context's block; to speak of one is no repeating."""


@dataclass(frozen=True, slots=True)
class Merged:
    """New notes.

    Attributes:
        dropped: Facts that there was no room for.
        is_empty: Nothing of the reply came into them.
    """

    state: ThreadState
    dropped: int
    is_empty: bool


def merged(
    state: ThreadState,
    reply: Reply,
    *,
    listed: Sequence[Fact],
    seqs: Sequence[int],
    counter: TokenCounter,
) -> Merged:
    """Return the notes with what a reply says.

    An equal fact is confirmed, a new one added, a retracted one removed unless the same reply
    states it, and no other is removed but those confirmed longest ago, where there are too many.

    Args:
        listed: The facts as the prompt numbered them, from 1.
        seqs: The turns that were learned, ascending.
    """
    stated = _stated(reply, seqs, listed, state.summary)
    places = {n for n in reply.retract if 0 < n <= len(listed)}
    retracted = {_key(listed[n - 1].text) for n in places} - stated.keys()
    facts = {_key(fact.text): fact for fact in state.facts if _key(fact.text) not in retracted}
    for key, fact in stated.items():
        facts[key] = _confirmed(facts[key], fact) if key in facts else fact
    order = {key: place for place, key in enumerate(stated)}
    newest = sorted(facts, key=lambda key: (facts[key].confirmed_seq, order.get(key, -1)))
    left = set(newest[-MOST_FACTS:])
    kept = tuple(fact for key, fact in facts.items() if key in left)
    words = _own_words(reply.summary, [*listed, *stated.values()])
    summary = short_summary(words, counter)
    new = ThreadState(summary or state.summary, kept, seqs[-1])
    return Merged(new, len(facts) - len(kept), is_empty=not (summary or stated or places))


def checked_notes(
    state: ThreadState, seqs: Sequence[int], *, newest: int, cleaner: TextCleaner | None = None
) -> ThreadState:
    """Return notes that somebody else made; a fact without sources may come from any turn.

    Args:
        seqs: Of the turns it was given and covers.
        newest: Of the turns it was given.
        cleaner: Redacts them.

    Raises:
        InvalidInputError: They cover no turn that was given, or more; or are no notes.
    """
    if not seqs or state.turn_count > newest:
        raise InvalidInputError("turn_count", "must be the seq of a turn that was given")
    are_texts = isinstance(state.summary, str) and all(
        isinstance(fact, Fact) and isinstance(fact.text, str) for fact in state.facts
    )
    if not are_texts:
        raise InvalidInputError("notes", "must be a text and facts with texts")
    cleaner = cleaner or TextCleaner()
    facts = tuple(_sourced(fact, cleaner, tuple(seqs)) for fact in state.facts)
    return ThreadState(cleaner.text(state.summary), facts, state.turn_count)


def _sourced(fact: Fact, cleaner: TextCleaner, seqs: tuple[int, ...]) -> Fact:
    sources = tuple(tuple(map(int, source)) for source in fact.sources) or (seqs,)
    return Fact(cleaner.text(fact.text), int(fact.confirmed_seq) or seqs[-1], sources)


def short_summary(summary: str, counter: TokenCounter) -> str:
    """Return a summary of at most `SUMMARY_TOKENS`, cut at a sentence where it has several."""
    summary = TextCleaner().text(summary)
    if counter.count(summary) <= SUMMARY_TOKENS:
        return summary
    head = longest_head(summary, lambda head: counter.count(head) <= SUMMARY_TOKENS)
    whole = without_last_sentence(head)
    is_most = 2 * len(whole) > len(head) and counter.count(whole) <= SUMMARY_TOKENS
    return whole if is_most else head


def _own_words(summary: str, known: Sequence[Fact]) -> str:
    """Return a summary without the lines that repeat facts, or a prompt, as they are rendered."""
    rendered = {f"{FACT}{fact.text}" for fact in known}
    lines = [
        line
        for line in summary.split("\n")
        if line.strip() not in rendered and not _RENDERED.match(line)
    ]
    return "\n".join(lines).strip()


def _stated(
    reply: Reply, seqs: Sequence[int], listed: Sequence[Fact], summary: str
) -> dict[str, Fact]:
    """Return the facts a reply states, each once, by their keys."""
    facts: dict[str, Fact] = {}
    for statement in reply.facts:
        fact = _fact(statement, seqs, listed, summary)
        if fact is not None:
            key = _key(fact.text)
            facts[key] = _confirmed(facts[key], fact) if key in facts else fact
    return facts


def _fact(
    statement: Statement, seqs: Sequence[int], listed: Sequence[Fact], summary: str
) -> Fact | None:
    """Return a statement as a fact; `None` for one that repeats the form of a prompt or context.

    One that names no turn of those learned may come from any of them.
    """
    text = _LIST_MARK.sub("", folded(TextCleaner().text(statement.text)))
    if not says_something(text) or _is_rendered(text, listed, summary):
        return None
    named = tuple(sorted(set(statement.seqs) & set(seqs)))
    return Fact(_cut(text), named[-1] if named else seqs[-1], (named or tuple(seqs),))


def _is_rendered(text: str, listed: Sequence[Fact], summary: str) -> bool:
    """Tell whether a text repeats a prompt, or notes as they are rendered: two items in a row."""
    if _RENDERED.match(text):
        return True
    items = f" {FACT}{text} {FACT}"
    known = [folded(summary), *(fact.text for fact in listed)]
    return sum(f" {FACT}{item} {FACT}" in items for item in known if item) > 1


def _confirmed(old: Fact, new: Fact) -> Fact:
    older = (source for source in old.sources if source not in new.sources)
    sources = (*older, *new.sources)[-MOST_SOURCES:]
    newest = max(old.confirmed_seq, new.confirmed_seq)
    return replace(old, confirmed_seq=newest, sources=sources)


def _cut(text: str) -> str:
    if len(text) <= FACT_CHARACTERS:
        return text
    head = longest_head(text, lambda head: len(head) < FACT_CHARACTERS)
    head = head or text[: FACT_CHARACTERS - 1]
    words = head.rpartition(" ")[0]
    return f"{words if 2 * len(words) > len(head) else head}\u2026"


def _key(text: str) -> str:
    """Return what equal facts share: the text without the mark of its end."""
    return text.rstrip(" .!\u3002\uff01")
