"""Which display a value has."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from hiermem_core.displays import hits, reports, run_wording, runs, turns
from hiermem_core.displays.budgets import bar_text, receipt_html
from hiermem_core.displays.context_wording import context_lines, receipt_table
from hiermem_core.displays.entry_wording import entry_text, hit_text
from hiermem_core.displays.markup import Html, element
from hiermem_core.displays.note_wording import change_lines, notes_lines, timeline_lines
from hiermem_core.displays.printing import printable
from hiermem_core.exporting.backups import BackupReport
from hiermem_core.exporting.report import ExportReport, ReadReport
from hiermem_core.exporting.restoring import RestoreReport
from hiermem_core.importing.report import ImportReport
from hiermem_core.models.context import Context, Receipt
from hiermem_core.models.entries import MemoryEntry
from hiermem_core.models.notes import NotesChange, ThreadState
from hiermem_core.models.patterns import Pattern, PatternHit
from hiermem_core.models.queries import Hit, ResultList, TurnHit
from hiermem_core.models.results import DoctorReport, ForgetReceipt
from hiermem_core.models.sessions import Session, Step
from hiermem_core.models.timelines import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TEXTS: Final[Mapping[type, Callable[[Any], str]]] = {
    Hit: hit_text,
    TurnHit: hit_text,
    MemoryEntry: entry_text,
    ResultList: repr,
    Receipt: lambda receipt: f"{bar_text(receipt)}\n{receipt_table(receipt)}",
    Context: lambda context: "\n".join(context_lines(context)),
    ThreadState: lambda state: "\n".join(notes_lines(state, state.turn_count)),
    NotesChange: lambda change: "\n".join(change_lines(change)),
    Timeline: lambda timeline: "\n".join(timeline_lines(timeline)),
    Pattern: run_wording.pattern_text,
    PatternHit: run_wording.pattern_hit_text,
    Session: run_wording.session_text,
    Step: run_wording.step_text,
    ForgetReceipt: reports.forgotten_text,
    DoctorReport: reports.doctored_text,
}

_PAGES: Final[Mapping[type, Callable[[Any], Html]]] = {
    Hit: hits.hit_html,
    TurnHit: hits.hit_html,
    MemoryEntry: hits.entry_html,
    ResultList: hits.results_html,
    Receipt: receipt_html,
    Context: turns.context_html,
    ThreadState: turns.notes_html,
    NotesChange: turns.change_html,
    Timeline: turns.timeline_html,
    Pattern: runs.pattern_html,
    PatternHit: runs.pattern_hit_html,
    Session: runs.session_html,
    Step: runs.step_html,
    ForgetReceipt: reports.forgotten_html,
    ImportReport: reports.report_html,
    ExportReport: reports.report_html,
    ReadReport: reports.report_html,
    BackupReport: reports.report_html,
    RestoreReport: reports.report_html,
}


def text_of(value: object) -> str:
    """Return a value in text for people; one without a display of its own shows its facts."""
    text: str = _found(_TEXTS, value, reports.facts_text)(value)
    return printable(text)


def html_of(value: object) -> Html:
    """Return a value as HTML, without the style that goes with it."""
    page: Html = _found(_PAGES, value, reports.facts_html)(value)
    return page


def page_of(value: object) -> Html:
    """Return a value as HTML that stands for itself, with its style."""
    style = element("style", Html(style_sheet()))
    return element("div", style, html_of(value), class_="hiermem")


@cache
def style_sheet() -> str:
    """Return the style of all displays; it takes its colours from the page around."""
    return files("hiermem_core.displays").joinpath("displays.css").read_text(encoding="utf-8")


def _found(
    displays: Mapping[type, Callable[[Any], Any]], value: object, default: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    kinds = type(value).__mro__
    return next((displays[kind] for kind in kinds if kind in displays), default)
