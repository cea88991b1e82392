"""What becomes of the notes when a reply comes in. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hiermem_core.learning.notes_text import says_something, without_last_sentence
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.models.text import TextCleaner, folded
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
_RENDERED = re.compile(r"</?(?:memory|notes|recalled|turns)>|\"(?:seq|fact|summary)\": ?[\d\"]")


@dataclass(frozen=True, slots=True)
class Merged:
    """New notes, and how many facts there was no room for."""

    state: ThreadState
    dropped: int


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
    stated = _stated(reply, seqs, listed)
    places = {n for n in reply.retract if 0 < n <= len(listed)}
    retracted = {_key(listed[n - 1].text) for n in places} - stated.keys()
    facts = {_key(fact.text): fact for fact in state.facts if _key(fact.text) not in retracted}
    for key, fact in stated.items():
        facts[key] = _confirmed(facts[key], fact) if key in facts else fact
    order = {key: place for place, key in enumerate(stated)}
    newest = sorted(facts, key=lambda key: (facts[key].confirmed_seq, order.get(key, -1)))
    left = set(newest[-MOST_FACTS:])
    kept = tuple(fact for key, fact in facts.items() if key in left)
    summary = _own_words(reply.summary, [*listed, *stated.values()])
    new = ThreadState(short_summary(summary, counter) or state.summary, kept, seqs[-1])
    return Merged(new, len(facts) - len(kept))


def short_summary(summary: str, counter: TokenCounter) -> str:
    """Return a summary of at most `SUMMARY_TOKENS`, cut at a sentence where it has several."""
    summary = TextCleaner().text(summary)
    if _RENDERED.search(summary):
        return ""
    if counter.count(summary) <= SUMMARY_TOKENS:
        return summary
    head = longest_head(summary, lambda head: counter.count(head) <= SUMMARY_TOKENS)
    whole = without_last_sentence(head)
    is_most = 2 * len(whole) > len(head) and counter.count(whole) <= SUMMARY_TOKENS
    return whole if is_most else head


def _own_words(summary: str, known: Sequence[Fact]) -> str:
    """Return a summary without the lines that repeat facts as notes are rendered."""
    rendered = {f"- {fact.text}" for fact in known}
    lines = [line for line in summary.split("\n") if line.strip() not in rendered]
    return "\n".join(lines).strip()


def _stated(reply: Reply, seqs: Sequence[int], listed: Sequence[Fact]) -> dict[str, Fact]:
    """Return the facts a reply states, each once, by their keys."""
    facts: dict[str, Fact] = {}
    for statement in reply.facts:
        fact = _fact(statement, seqs, listed)
        if fact is not None:
            key = _key(fact.text)
            facts[key] = _confirmed(facts[key], fact) if key in facts else fact
    return facts


def _fact(statement: Statement, seqs: Sequence[int], listed: Sequence[Fact]) -> Fact | None:
    """Return a statement as a fact; `None` for one that repeats the form of a prompt or context.

    One that names no turn of those learned may come from any of them.
    """
    text = _LIST_MARK.sub("", folded(TextCleaner().text(statement.text)))
    if not says_something(text) or _is_rendered(text, listed):
        return None
    named = tuple(sorted(set(statement.seqs) & set(seqs)))
    return Fact(_cut(text), named[-1] if named else seqs[-1], (named or tuple(seqs),))


def _is_rendered(text: str, listed: Sequence[Fact]) -> bool:
    """Tell whether a text repeats notes as they are rendered: its items, one after the other."""
    items = f" {text} - "
    return bool(_RENDERED.search(text)) or any(f" - {fact.text} - " in items for fact in listed)


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
