"""How notes and what was learned read, to people. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hiermem_core.displays.printing import printable, table
from hiermem_core.displays.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core.models.events import NotesLearned, UpdateFailed
    from hiermem_core.models.notes import NotesChange, ThreadState
    from hiermem_core.models.timelines import Timeline

_SIGNS = {"trimmed": "-", "recalled": "*", "window": "|", "pinned": "^"}


def notes_lines(state: ThreadState, newest: int) -> Iterator[str]:
    """Yield notes: how far they reach, the summary, and a line for each fact."""
    yield f"the notes cover turns up to {state.turn_count:,} of {newest:,}"
    if state.summary:
        yield f"\n{state.summary}"
    if state.facts:
        facts = [(fact.text, ranges_of(fact.seqs)) for fact in state.facts]
        yield "\n" + table(("fact", "turns"), facts)


def change_lines(change: NotesChange) -> Iterator[str]:
    """Yield notes before and after: both summaries, then which facts came, went and stayed."""
    for name, state in (("before", change.before), ("after", change.after)):
        yield f"{name}, up to turn {state.turn_count:,}: {state.summary or '(no summary)'}"
    signs = (("+", change.added), ("-", change.dropped), (" ", change.kept))
    yield from (f"{sign} {fact.text}" for sign, facts in signs for fact in facts)


def timeline_lines(timeline: Timeline) -> Iterator[str]:
    """Yield how many turns stand where, then a line for each turn."""
    yield ", ".join(f"{count:,} {place}" for place, count in timeline.counts.items())
    for turn in timeline.turns:
        who = turn.author or turn.role
        yield printable(f"{_SIGNS[turn.place]} #{turn.seq} {who}: {turn.text}", keep="")


def ranges_of(seqs: Sequence[int]) -> str:
    """Return ascending numbers with runs as ranges, such as `1, 3-9`."""
    starts = [seq for place, seq in enumerate(seqs) if not place or seqs[place - 1] < seq - 1]
    ends = [seq for place, seq in enumerate(seqs, 1) if place == len(seqs) or seqs[place] > seq + 1]
    pairs = zip(starts, ends, strict=True)
    return ", ".join(str(one) if one == last else f"{one}-{last}" for one, last in pairs)


def learned_lines(learned: Sequence[NotesLearned], failed: Sequence[UpdateFailed]) -> Iterator[str]:
    """Yield what was learned of each thread, and what failed, and why."""
    turns: Counter[tuple[str, str]] = Counter()
    facts: dict[tuple[str, str], int] = {}
    for event in learned:
        turns[event.tenant_id, event.thread_id] += event.turns
        facts[event.tenant_id, event.thread_id] = event.facts
    if turns:
        rows = [(*key, f"{count:,}", f"{facts[key]:,}") for key, count in turns.items()]
        yield table(("tenant", "thread", "turns learned", "facts"), rows)
    for failure in failed:
        what = f"{failure.reason} ({failure.stage})"
        yield f"thread {failure.thread_id} of {failure.tenant_id} stays due: {what}"
    if failed:
        yield f"{counted(len(failed), 'update')} failed; nothing is lost, run it again"
