"""Reports and statistics: what each says in facts, as text and as HTML. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hiermem_core.displays.entry_wording import doctor_lines, named_counts, receipt_lines
from hiermem_core.displays.markup import Html, element, grid, joined
from hiermem_core.displays.printing import table
from hiermem_core.displays.wording import moment_text

if TYPE_CHECKING:
    from hiermem_core.models.results import DoctorReport, ForgetReceipt

_LISTED = 10
"""Things of a list that are shown; the value holds them all."""


def facts_of(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the facts of a report by name, those of values in it too; what is empty is left out."""
    for field in fields(value):
        fact, name = getattr(value, field.name), field.name.replace("_", " ")
        if is_dataclass(fact):
            yield from ((f"{name}: {inner}", told) for inner, told in facts_of(fact))
        elif (told := _told(fact)) != "":
            yield name, told


def facts_text(value: Any) -> str:
    """Return the facts of a report, a line each."""
    return table((type(value).__name__, ""), facts_of(value))


def facts_html(value: Any) -> Html:
    """Return the facts of a report as a table; what it says in words stands above."""
    rows: list[tuple[object, ...]] = list(facts_of(value))
    return joined([element("p", type(value).__name__, class_="hm-lead"), grid(("", ""), rows)])


def report_html(report: Any) -> Html:
    """Return a report of an import, export or backup: its counts, then all it says in words."""
    counted = {
        name: getattr(report, name, None)
        for name in ("status", "found", "imported", "updated", "skipped", "failed")
    }
    rows = [(name, _told(fact)) for name, fact in counted.items() if fact is not None]
    lead = element("p", type(report).__name__, class_="hm-lead")
    counts = grid(tuple(name for name, _ in rows), [tuple(fact for _, fact in rows)])
    return joined([lead, counts if rows else Html(), element("pre", str(report))])


def forgotten_text(receipt: ForgetReceipt) -> str:
    """Return what a forget removed, or would remove."""
    return "\n".join(receipt_lines(receipt))


def forgotten_html(receipt: ForgetReceipt) -> Html:
    """Return what a forget removed, or would remove, and whether it is done."""
    head = "would be forgotten" if receipt.dry_run else "forgotten"
    rows: list[tuple[object, ...]] = [(name, f"{n:,}") for name, n in receipt.counts.items()]
    verdict = list(receipt_lines(receipt))[1:]
    lead = element("p", head, class_="hm-lead")
    told = [element("p", line, class_="hm-verdict") for line in verdict]
    when = element("p", f"at {moment_text(receipt.at)}, selector {receipt.selector[:12]}…")
    return joined([lead, grid(("store", "count"), rows), *told, when])


def doctored_text(report: DoctorReport) -> str:
    """Return where rows and vectors disagree."""
    return "\n".join(doctor_lines(report, is_repair=report.repaired))


def _told(fact: Any) -> str:
    match fact:
        case None:
            told = ""
        case bool():
            told = "yes" if fact else "no"
        case int():
            told = f"{fact:,}"
        case float():
            told = f"{fact:.3f}"
        case datetime():
            told = moment_text(fact)
        case Mapping():
            told = _told_mapping(fact)
        case list() | tuple():
            more = [f"and {len(fact) - _LISTED:,} more"] if len(fact) > _LISTED else []
            told = ", ".join([*map(str, fact[:_LISTED]), *more])
        case _:
            told = str(fact)
    return told


def _told_mapping(facts: Mapping[str, Any]) -> str:
    if all(isinstance(fact, int) for fact in facts.values()):
        return named_counts(facts)
    return "; ".join(f"{name}: {fact}" for name, fact in facts.items())
