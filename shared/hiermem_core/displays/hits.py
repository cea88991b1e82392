"""Hits and entries as HTML, each with how it came by its score. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.displays.markup import Html, element, grid, joined
from hiermem_core.displays.wording import explain, moment_text
from hiermem_core.models.plain import dump_json
from hiermem_core.models.queries import Hit, TurnHit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.queries import ResultList
    from hiermem_core.models.warnings import ContextWarning

_RAW = frozenset({"bm25", "cosine"})
"""Terms of an explanation that are no part of the sum."""


def results_html(found: ResultList[Hit | TurnHit]) -> Html:
    """Return hits as a list, best first, and what is weaker than asked for."""
    count = f"{len(found)} {'hit' if len(found) == 1 else 'hits'}, best first"
    told = element("p", count if found else "nothing was found", class_="hm-lead")
    return joined([told, warnings_html(found.warnings), hits_html(found)])


def hits_html(hits: Iterable[Hit | TurnHit]) -> Html:
    """Return hits as a list."""
    items = [element("li", hit_html(hit)) for hit in hits]
    return element("ol", *items, class_="hm-hits") if items else Html()


def hit_html(hit: Hit | TurnHit) -> Html:
    """Return a hit: its score, what it is, its content, and why it was found where that is told."""
    facts = _about_turn(hit) if isinstance(hit, TurnHit) else _about_entry(hit)
    head = element("div", score_html(hit.score), chips_html(facts), class_="hm-head")
    why = explanation_html(hit.explanation) if hit.explanation else Html()
    return joined([head, content_html(hit.content), why])


def entry_html(entry: MemoryEntry) -> Html:
    """Return an entry: what it is, and its content."""
    facts = [*_about_entry(entry), f"version {entry.version}"]
    if entry.expires_at is not None:
        facts.append(f"expires {moment_text(entry.expires_at)}")
    if entry.metadata:
        facts.append(dump_json(dict(entry.metadata)))
    return joined(
        [element("div", chips_html(facts), class_="hm-head"), content_html(entry.content)]
    )


def explanation_html(explanation: Mapping[str, object]) -> Html:
    """Return what made a score: each term with a meter, what it is made of, and the plan."""
    terms = {name: fact for name, fact in explanation.items() if isinstance(fact, int | float)}
    rows: list[tuple[object, ...]] = [
        (name, f"{value:.3f}", Html() if name in _RAW else meter_html(value))
        for name, value in terms.items()
        if value or name in _RAW
    ]
    others = [f"{name}: {fact}" for name, fact in explanation.items() if name not in terms and fact]
    table = grid(("term", "value", ""), rows, class_="hm-terms")
    summary = element("summary", "why it was found")
    return element("details", summary, table, *(element("p", line) for line in others))


def score_html(score: float, title: str = "score, 0 to 1") -> Html:
    """Return a score in figures, with a meter."""
    figure = element("span", f"{score:.2f}", class_="hm-score", title=title)
    return joined([figure, meter_html(score)])


def meter_html(share: float) -> Html:
    """Return a share of 1 as a little bar; less than nothing shows nothing."""
    width = 60 * min(1.0, max(0.0, share))
    frame = element("rect", width="60", height="6", rx="3", fill="currentColor", opacity="0.15")
    filled = element("rect", width=f"{width:.1f}", height="6", rx="3", fill="#17917f")
    return element(
        "svg", frame, filled, class_="hm-meter", width="60", height="6", aria_hidden="true"
    )


def warnings_html(warnings: Sequence[ContextWarning]) -> Html:
    """Return warnings, a line each."""
    lines = [element("li", explain(warning)) for warning in warnings]
    return element("ul", *lines, class_="hm-warnings") if lines else Html()


def content_html(text: str | None) -> Html:
    """Return a text as it stands, in the direction of its script."""
    return element("div", text or "", class_="hm-content", dir="auto")


def chips_html(facts: Iterable[str]) -> Html:
    """Return short facts side by side."""
    return joined(element("span", fact, class_="hm-chip") for fact in facts if fact)


def _about_entry(entry: MemoryEntry) -> list[str]:
    key = f"key {entry.key}" if entry.key is not None else ""
    tags = [f"#{tag}" for tag in entry.tags]
    said = f"{entry.source}, trust {entry.trust:g}"
    return [entry.namespace, entry.type, key, *tags, said, moment_text(entry.updated_at)]


def _about_turn(hit: TurnHit) -> list[str]:
    place = f"{hit.thread_id} #{hit.seq}"
    return [place, hit.role, hit.author or "", moment_text(hit.created_at)]
