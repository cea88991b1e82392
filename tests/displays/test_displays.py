"""Values show themselves: in text that steers no terminal, and in HTML that runs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import (
    Context,
    ContextWarning,
    DoctorReport,
    Fact,
    Health,
    HierMem,
    ImportReport,
    NotesChange,
    Pattern,
    PatternHit,
    Receipt,
    Section,
    Session,
    Step,
    ThreadState,
    Turn,
    TurnHit,
    WorkingMemoryStats,
    timeline_of,
)
from hiermem_core.displays.budgets import bar_text, segments_of
from hiermem_core.displays.markup import Html, element, escaped
from hiermem_core.displays.showing import html_of, style_sheet
from hiermem_core.models.queries import Hit, RecallResult
from hiermem_core.models.results import ForgetReceipt, MemoryStats
from hiermem_core.testing import FakeClock

MOMENT = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
TAGS = {
    *("div", "style", "p", "span", "ul", "ol", "li", "b", "h4", "pre", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td", "svg", "rect", "title"),
}
HOSTILE = [
    "<script>document.title='ran'</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>alert(1)</script>",
    "</title></svg><script>alert(1)</script>",
    "</div></li></ol><iframe srcdoc='<script>alert(1)</script>'>",
    "<!-- --><![CDATA[ ]]>&lt;script&gt;&#60;script&#62;",
    "\x00\x1b[31mred\u202egnp.exe\u2066\ud800",
    "{{ 7*7 }} {% raw %} ${x} javascript:alert(1)",
]


class Reader(HTMLParser):
    """Reads what a browser would: the tags, the attributes and the text beside the style."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], set(), set(), []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)


def entry_hit(text):
    return Hit(
        id=text,
        content=text,
        namespace=text,
        type="semantic",
        key=text,
        tags=(text, text),
        metadata={text: [text]},
        created_at=MOMENT,
        updated_at=MOMENT,
        ttl=None,
        expires_at=MOMENT,
        version=1,
        times_stored=1,
        source="user",
        trust=0.5,
        derived_from=(text,),
        user_id=text,
        score=0.5,
        explanation={"keyword": 0.4, text: 0.1, "plan": text},
    )


def turn_hit(text):
    return TurnHit(
        thread_id=text,
        id=text,
        seq=3,
        part=1,
        role="user",
        author=text,
        content=text,
        created_at=MOMENT,
        score=0.25,
        explanation={"bm25": 1.5, "plan": text},
    )


def turn(text, seq=1):
    parts = ({"type": "media", "kind": text}, {"type": "opaque", "value": text})
    return Turn(role="user", content=text, name=text, id=text, seq=seq, parts=parts)


def context(text):
    sections = (Section("system", 10), Section("recall", 20, (text,)), Section("window", 30))
    receipt = Receipt(budget=100, reserve=5, counter=text, exact=False, sections=sections)
    warnings = (ContextWarning("unknown_namespace", detail={text: [text], "close": [text]}),)
    hits = (entry_hit(text), turn_hit(text))
    return Context((turn(text),), warnings, receipt, notes=text, hits=hits)


def pattern(text):
    return Pattern(id=text, name=text, data={text: [text]}, created_at=MOMENT, updated_at=MOMENT)


def step(text):
    return Step(
        id=text,
        session_id=text,
        step=2,
        action=text,
        state={text: text},
        reward=0.5,
        next_state=text,
        created_at=MOMENT,
    )


def values(text):
    before = ThreadState(text, (Fact(text, 1, ((1, 2),)), Fact("stays")), 2)
    after = ThreadState("new", (Fact("stays"), Fact(text + "!", 3, ((3,),))), 3)
    built = context(text)
    return [
        entry_hit(text),
        turn_hit(text),
        RecallResult([entry_hit(text), turn_hit(text)], warnings=built.warnings),
        built,
        built.receipt,
        timeline_of([turn(text), turn("other" + text, 2)], built),
        before,
        NotesChange(before, after),
        ForgetReceipt({text: 1}, ((text, text),), 1, False, MOMENT, "0" * 64),  # noqa: FBT003 - a field
        DoctorReport(unchecked=text),
        ImportReport(text, 1, (text,), ()),
        WorkingMemoryStats(hits=2, misses=1),
        pattern(text),
        PatternHit(pattern(text), text, 0.5),
        Session(id=text, data={text: text}, started_at=MOMENT, ended_at=MOMENT),
        step(text),
    ]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("place", range(16))
def test_nothing_stored_becomes_markup(place, text):
    value = values(text)[place]

    page = Reader(value._repr_html_())

    assert page.tags <= TAGS
    assert page.open == []
    assert not any(
        name.startswith("on") or name in {"href", "src", "style"} for name in page.attributes
    )


@given(st.text())
def test_any_text_is_shown_and_is_never_markup(text):
    for value in values(text):
        page = Reader(value._repr_html_())

        assert page.tags <= TAGS
        assert page.open == []
        assert not any(name.startswith("on") for name in page.attributes)


@given(st.text(alphabet="<>&\"'/=abc {}%-!"))
def test_the_text_itself_is_what_is_read(text):
    page = Reader(element("p", text, title=text))

    assert "".join(page.text) == text


def test_text_for_a_terminal_steers_nothing():
    shown = [one for one in values("\x1b[31mred\u202e\x07") if not isinstance(one, ImportReport)]
    for value in shown:
        assert not re.search("[\x00-\x08\x1b\u202e]", str(value))


def test_what_is_html_already_is_not_escaped_again():
    assert escaped(Html("<b>x</b>")) == "<b>x</b>"
    assert Html("<b>").__html__() == "<b>"
    assert escaped("<b>") == "&lt;b&gt;"


def test_the_style_asks_for_nothing_outside():
    assert not re.search(r"url\(|@import|https?:|expression|</", style_sheet())


def test_the_bar_shows_every_section_and_what_is_free():
    receipt = context("x").receipt

    assert [tuple(part) for part in segments_of(receipt)] == [
        ("system", 10),
        ("recall", 20),
        ("window", 30),
        ("free", 40),
    ]
    assert bar_text(receipt) == f"[{'S' * 6}{'R' * 12}{'W' * 18}{'.' * 24}]"


def test_a_bar_of_nothing_and_one_over_the_budget_are_drawn():
    empty = Receipt(budget=0, reserve=0, counter="c", exact=True, sections=())
    over = replace(empty, budget=5, sections=(Section("current", 9),))

    assert bar_text(empty) == "[]"
    assert bar_text(over) == f"[{'C' * 60}]"
    assert "4 over the budget" in html_of(over)
    assert "<svg" in html_of(empty)


def test_small_sections_are_seen():
    sections = (Section("notes", 1), Section("window", 99_999))
    receipt = Receipt(budget=100_000, reserve=0, counter="c", exact=True, sections=sections)

    assert bar_text(receipt).startswith("[NW")


def test_a_timeline_says_where_each_turn_stands():
    with HierMem.open(":memory:", clock=FakeClock()) as memory:
        chat = memory.tenant("alice").thread("trip")
        chat.append([{"role": "user", "content": "The locker code is 4711."}])
        chat.append([{"role": "assistant", "content": "Noted, the code."}])
        for number in range(30):
            chat.append([{"role": "user", "content": f"Question {number} about the weather?"}])
            chat.append([{"role": "assistant", "content": f"Answer {number}: it rains."}])
        built = chat.context(current="What is the locker code?", budget_tokens=160)

        timeline = timeline_of(chat.turns(), built)

    places = {one.seq: one.place for one in timeline.turns}
    assert places[1] == "recalled"
    assert places[62] == "window"
    assert places[30] == "trimmed"
    assert sum(timeline.counts.values()) == 62
    assert "* #1 user: The locker code is 4711." in str(timeline)
    assert '<li class="hm-recalled">' in timeline._repr_html_()
    assert '<li class="hm-trimmed">' in timeline._repr_html_()


def test_a_long_timeline_draws_its_newest_turns_and_all_that_is_read():
    long = [turn(f"t{number}", number) for number in range(1, 3001)]

    drawn = html_of(timeline_of(long, context("t7")))

    assert drawn.count("<li") == 1001
    assert "1,999 of the oldest that are left out are not drawn" in drawn
    assert "#7 " in drawn


def test_messages_of_a_framework_are_shown_too():
    llamaindex = pytest.importorskip("llama_index.core.llms").ChatMessage
    langchain = pytest.importorskip("langchain_core.messages").AIMessage
    said = (llamaindex(role="user", content="From one"), langchain("From the other"))

    shown = replace(context("x"), messages=said)

    assert "user\n  From one" in str(shown)
    assert "assistant\n  From the other" in str(shown)
    assert {"From one", "From the other"} <= set(Reader(shown._repr_html_()).text)


def test_notes_before_and_after_say_what_came_and_went():
    before = ThreadState("One.", (Fact("old"), Fact("both")), 4)
    after = ThreadState("Two.", (Fact("both"), Fact("new")), 8)

    change = NotesChange(before, after)

    assert [fact.text for fact in change.added] == ["new"]
    assert [fact.text for fact in change.dropped] == ["old"]
    assert [fact.text for fact in change.kept] == ["both"]
    assert str(change).splitlines()[2:] == ["+ new", "- old", "  both"]


def test_a_hit_explains_itself_in_a_table():
    page = Reader(html_of(entry_hit("x")))

    assert {"table", "details"} <= page.tags
    assert {"why it was found", "keyword", "0.400", "plan: x"} <= set(page.text)


def test_a_pattern_shows_its_confidence_and_a_step_what_was_seen_done_and_got():
    shown = html_of(replace(pattern("book early"), confidence=0.9, uses=1))

    assert {"book early", "0.90", "used once", '{"book early":["book early"]}'} <= set(
        Reader(shown).text
    )
    assert str(step("x")).splitlines()[1:] == ['  saw {"x":"x"}', "  did x", "  got x"]
    assert "\ndid x\n" in "".join(Reader(html_of(step("x"))).text)


def test_every_value_that_is_printed_reads_as_words():
    for value in values("x"):
        assert str(value)
        assert "object at 0x" not in str(value)


def test_stats_and_health_of_a_real_memory_show_themselves():
    with HierMem.open(":memory:") as memory:
        alice = memory.tenant("alice")
        alice.remember("Prefers mornings", namespace="profile")

        shown = [alice.stats(), alice.memory.stats(), memory.health(), memory.doctor()]

    assert isinstance(shown[1], MemoryStats)
    assert isinstance(shown[1].entries_by_namespace, Mapping)
    assert isinstance(shown[2], Health)
    assert "profile 1" in str(shown[1])
    for value in shown:
        assert Reader(value._repr_html_()).tags <= TAGS
