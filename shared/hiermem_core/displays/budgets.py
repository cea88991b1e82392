"""Where the tokens of a context went: a bar, and its figures. Pure."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from hiermem_core.displays.markup import Html, element, grid, joined

if TYPE_CHECKING:
    from hiermem_core.models.context import Receipt

_WIDTH = 60
"""Letters of a bar in text."""


class Kind(NamedTuple):
    """How one kind of segment looks: its letter in text, its colour, and what it is."""

    letter: str
    colour: str
    meaning: str


KINDS: dict[str, Kind] = {
    "system": Kind("S", "#6875d6", "the system prompt"),
    "tools": Kind("T", "#9a66cf", "schemas of tools"),
    "pinned": Kind("P", "#c25b8a", "turns that stay in every context"),
    "notes": Kind("N", "#cf8423", "summary and facts"),
    "recall": Kind("R", "#17917f", "what left the window and was found again"),
    "window": Kind("W", "#3a7fc0", "the newest turns, word for word"),
    "current": Kind("C", "#54993f", "the new question"),
    "other": Kind("o", "#858b95", "framing, and what the caller sends besides"),
    "free": Kind(".", "none", "not used"),
}
"""In the order of the bar."""

_OTHER = frozenset({"framing", "prefix"})


class Segment(NamedTuple):
    """One part of the bar."""

    name: str
    tokens: int


def segments_of(receipt: Receipt) -> list[Segment]:
    """Return the parts of a receipt in the order of the bar, what is free at the end."""
    sums = dict.fromkeys(KINDS, 0)
    for section in receipt.sections:
        name = section.name if section.name in KINDS else "other"
        sums[name] += section.tokens
    sums["free"] = max(0, receipt.budget - receipt.total)
    return [Segment(name, tokens) for name, tokens in sums.items() if tokens]


def bar_text(receipt: Receipt) -> str:
    """Return the bar in letters, a letter for each part's share, at least one."""
    segments = segments_of(receipt)
    whole = sum(segment.tokens for segment in segments)
    ends = list(accumulate(segment.tokens for segment in segments))
    places = [0, *(round(end * _WIDTH / whole) for end in ends)] if whole else [0]
    letters = [
        KINDS[segment.name].letter * max(1, last - first)
        for segment, first, last in zip(segments, places, places[1:], strict=False)
    ]
    return f"[{''.join(letters)}]"


def receipt_html(receipt: Receipt) -> Html:
    """Return the bar with its legend."""
    segments = segments_of(receipt)
    how = "" if receipt.exact else ", estimated"
    told = f"{receipt.total:,} of {receipt.budget:,} tokens, by {receipt.counter}{how}"
    over = receipt.total - receipt.budget
    parts = [element("p", told, class_="hm-lead"), bar_html(receipt), _legend(segments)]
    if receipt.reserve:
        parts.append(element("p", f"{receipt.reserve:,} more are kept for the answer"))
    if over > 0:
        parts.append(element("p", f"{over:,} over the budget", class_="hm-warning"))
    return joined(parts)


def bar_html(receipt: Receipt) -> Html:
    """Return the bar alone; widths and colours are attributes, which no style policy refuses."""
    segments = segments_of(receipt)
    whole = max(1, sum(segment.tokens for segment in segments))
    starts = accumulate((segment.tokens for segment in segments), initial=0)
    rects = [
        element(
            "rect",
            element("title", f"{segment.name}: {segment.tokens:,} tokens"),
            x=f"{1000 * start / whole:.2f}",
            y="0",
            width=f"{max(1000 * segment.tokens / whole, 2):.2f}",
            height="20",
            fill=KINDS[segment.name].colour,
        )
        for segment, start in zip(segments, starts, strict=False)
    ]
    words = ", ".join(f"{segment.name} {segment.tokens:,}" for segment in segments)
    return element(
        "svg",
        *rects,
        class_="hm-bar",
        viewBox="0 0 1000 20",
        preserveAspectRatio="none",
        width="100%",
        height="20",
        role="img",
        aria_label=f"tokens: {words}",
    )


def sections_html(receipt: Receipt) -> Html:
    """Return each section of a receipt with its tokens and how many things are in it."""
    rows: list[tuple[object, ...]] = [
        (part.name, f"{part.tokens:,}", f"{len(part.ids):,}") for part in receipt.sections
    ]
    return grid(("section", "tokens", "items"), rows)


def _legend(segments: list[Segment]) -> Html:
    items = [
        element(
            "li",
            _swatch(segment.name),
            element("b", segment.name),
            f" {segment.tokens:,}",
            title=KINDS[segment.name].meaning,
        )
        for segment in segments
    ]
    return element("ul", *items, class_="hm-legend")


def _swatch(name: str) -> Html:
    box = element(
        "rect",
        x="1",
        y="1",
        width="10",
        height="10",
        rx="2",
        fill=KINDS[name].colour,
        stroke="currentColor",
        stroke_opacity="0.35",
    )
    return element("svg", box, width="12", height="12", aria_hidden="true")
