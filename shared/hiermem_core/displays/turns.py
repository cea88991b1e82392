"""Contexts, timelines and notes as HTML. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.displays.budgets import receipt_html, sections_html
from hiermem_core.displays.hits import chips_html, content_html, hits_html, warnings_html
from hiermem_core.displays.markup import Html, element, grid, joined
from hiermem_core.displays.note_wording import ranges_of
from hiermem_core.displays.wording import as_turn, asides, moment_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hiermem_core.models.context import Context
    from hiermem_core.models.notes import Fact, NotesChange, ThreadState
    from hiermem_core.models.timelines import Timeline, TimelineTurn
    from hiermem_core.models.turns import Turn

_MARKS = {"trimmed": "left out", "recalled": "recalled"}
_DRAWN = 1000
"""The newest turns of a timeline, which are drawn wherever they stand."""
_SIGNS = {"added": "+", "dropped": "-", "kept": "="}


def context_html(context: Context) -> Html:
    """Return a context: where the tokens went, what was left out, what the model reads."""
    parts = [receipt_html(context.receipt), warnings_html(context.warnings)]
    if context.hits:
        parts.append(_folded(f"recalled: {len(context.hits)}", hits_html(context.hits)))
    if context.notes:
        parts.append(_folded("notes", content_html(context.notes)))
    parts.append(_folded("tokens by section", sections_html(context.receipt)))
    parts.append(
        _folded(f"messages: {len(context.messages)}", turns_html(map(as_turn, context.messages)))
    )
    return joined(parts)


def turns_html(turns: Iterable[Turn]) -> Html:
    """Return turns, one below the other."""
    return element("ol", *(element("li", turn_html(turn)) for turn in turns), class_="hm-turns")


def turn_html(turn: Turn) -> Html:
    """Return a turn: who speaks, when, and all it says."""
    seq = f"#{turn.seq}" if turn.seq else ""
    facts = [seq, turn.role, turn.name or "", moment_text(turn.created_at)]
    facts += ["pinned" if turn.pinned else "", "archived" if turn.status == "archived" else ""]
    said = "\n".join([turn.content or "", *asides(turn)]).strip("\n")
    return joined([element("div", chips_html(facts), class_="hm-head"), content_html(said)])


def timeline_html(timeline: Timeline) -> Html:
    """Return a timeline: what is left out greyed, what is recalled marked."""
    counts = timeline.counts
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    lead = element("p", f"{len(timeline.turns):,} turns: {told}", class_="hm-lead")
    kept = len(timeline.turns) - _DRAWN
    drawn = [one for at, one in enumerate(timeline.turns) if at >= kept or one.place != "trimmed"]
    hidden = len(timeline.turns) - len(drawn)
    note = element("p", f"{hidden:,} of the oldest that are left out are not drawn")
    items = element("ol", *map(_timeline_item, drawn), class_="hm-timeline")
    return joined([lead, note if hidden else Html(), items])


def notes_html(state: ThreadState) -> Html:
    """Return notes: how far they reach, the summary, and each fact with its turns."""
    covered = f"cover the turns up to #{state.turn_count}" if state.turn_count else "none yet"
    lead = element("p", f"notes: {covered}", class_="hm-lead")
    rows: list[tuple[object, ...]] = [(fact.text, ranges_of(fact.seqs)) for fact in state.facts]
    facts = grid(("fact", "turns"), rows) if rows else Html()
    return joined([lead, content_html(state.summary) if state.summary else Html(), facts])


def change_html(change: NotesChange) -> Html:
    """Return notes before and after side by side, then which facts came and went."""
    halves = [
        element("div", element("h4", name), content_html(state.summary or "(no summary)"))
        for name, state in (("before", change.before), ("after", change.after))
    ]
    kinds = (("added", change.added), ("dropped", change.dropped), ("kept", change.kept))
    facts = [_fact_html(kind, fact) for kind, found in kinds for fact in found]
    covered = f"covered up to #{change.before.turn_count}, then up to #{change.after.turn_count}"
    parts = [
        element("p", f"notes: {covered}", class_="hm-lead"),
        element("div", *halves, class_="hm-halves"),
    ]
    return joined([*parts, element("ul", *facts, class_="hm-facts") if facts else Html()])


def _fact_html(kind: str, fact: Fact) -> Html:
    sign = element("span", _SIGNS[kind], class_="hm-sign", title=kind)
    return element("li", sign, " ", fact.text, class_=f"hm-{kind}", dir="auto")


def _timeline_item(turn: TimelineTurn) -> Html:
    mark = element("b", _MARKS[turn.place], class_="hm-mark") if turn.place in _MARKS else Html()
    head = element("span", f"#{turn.seq} {turn.author or turn.role}", class_="hm-who")
    text = element("span", turn.text, class_="hm-line", dir="auto")
    tokens = element("span", f"{turn.tokens:,}", class_="hm-tokens", title="tokens")
    return element("li", head, text, mark, tokens, class_=f"hm-{turn.place}")


def _folded(title: str, inner: Html) -> Html:
    return element("details", element("summary", title), inner)
