"""The texts of notes: echoes are no news, and what is too long is cut where it reads well."""

from __future__ import annotations

import pytest
from core.counting import COUNTERS
from core.merging import learned, merge, state_of, texts_of
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.learning.merging import SUMMARY_TOKENS, Merged, short_summary
from hiermem_core.learning.prompts import helper_prompt
from hiermem_core.learning.replies import Reply, Statement
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.threads.notes_text import notes_text
from hiermem_core.tokens.counters import FunctionCounter


def echoes(state):
    """Return what a model repeats of what it reads, as statements of its own."""
    prompt = helper_prompt(state.summary, state.facts, ['{"seq":1,"role":"user","text":"Hi"}'])
    rendered = notes_text(state.summary, state.facts)
    block = f"<memory>\n<notes>\n{rendered}\n</notes>\n</memory>"
    whole = [message.content for message in prompt] + [rendered, block]
    lines = [line for text in whole[1:] for line in text.splitlines()]
    facts = [f"{n}. {fact.text}" for n, fact in enumerate(state.facts, 1)]
    return [*whole[1:], *lines, *facts, *texts_of(state), " ".join(rendered.split())]


@pytest.mark.parametrize("known", [1, 2, 12])
def test_b27_a_model_that_echoes_prompts_and_notes_makes_no_facts_of_them(known):
    state = state_of(*[f"Ada has seen {n} temples" for n in range(known)], summary="They talk.")
    before = texts_of(state)

    for seq in range(7, 57):
        said = echoes(state)
        summary = notes_text(state.summary, state.facts)
        reply = Reply(summary, tuple(map(Statement, said)))
        state = merge(state, reply, seqs=(seq,)).state

    assert state.summary == "They talk."
    assert texts_of(state) == [*before, "They talk."]


@pytest.mark.parametrize(
    "rendered",
    [
        "<notes>Ada lives in Kyoto",
        "</notes>",
        "<memory> Ada lives in Kyoto </memory>",
        "<recalled> [1 May 2026] user: hello",
        '{"seq":13,"role":"user","text":"hello"}',
        '{"seq": 13, "role": "user"}',
        '{"fact":1,"text":"Ada lives in Kyoto"}',
        '{"summary":"They talk."}',
    ],
)
def test_b27_what_has_the_form_of_a_prompt_or_a_context_is_neither_fact_nor_summary(rendered):
    assert learned(rendered) == []
    assert merge(ThreadState(), Reply(rendered)) == Merged(ThreadState("", (), 9), 0, is_empty=True)


@pytest.mark.parametrize(
    "said",
    [
        "The user builds an XML schema with a <notes> element",
        "The element <memory> is required",
        'The record is {"seq": 5}',
        "Route: Porto - Lisbon",
    ],
)
def test_what_only_speaks_of_such_forms_is_learned(said):
    state = ThreadState("", (Fact("Lisbon", 1, ((1,),)),), 1)

    new = merge(state, Reply(said, (Statement(said),)), seqs=(2,)).state

    assert new.summary == said
    assert texts_of(new) == ["Lisbon", said]


@pytest.mark.parametrize("retract", [(), (99,), (-1, 0)])
def test_a_reply_of_which_nothing_is_kept_is_empty(retract):
    reply = Reply("<notes>", (Statement("<memory> all of it"),), retract)

    assert merge(ThreadState("Old.", (), 1), reply, seqs=(2,)).is_empty


def test_words_about_notes_are_facts_like_any_other():
    facts = ["Ada keeps notes", "The route is Kyoto - Nara", "The tag is <b>", 'She said "seq"']

    assert learned(*facts, state=state_of("Nara is old")) == ["Nara is old", *facts]


def test_a_fact_of_three_hundred_characters_is_kept_whole():
    assert learned("x" * 300) == ["x" * 300]


def test_a_longer_fact_is_cut_at_a_word():
    (fact,) = learned("word " * 100)

    assert fact == "word " * 58 + "word\u2026"
    assert len(fact) <= 300


@pytest.mark.parametrize(
    ("text", "kept"),
    [("日本語" * 200, 299), ("Tokyo " + "日" * 600, 299), ("x" * 301, 299), ("e\u0301" * 900, 299)],
    ids=["no space", "a space at the beginning", "one word", "marks that are composed"],
)
def test_a_longer_fact_without_words_is_cut_at_a_character(text, kept):
    (fact,) = learned(text)

    assert len(fact) == kept + 1
    assert fact.endswith("\u2026")


def test_a_longer_fact_is_never_cut_inside_a_grapheme():
    family = "👩‍👩‍👧"

    assert learned("a" + family * 90) == ["a" + family * 59 + "\u2026"]
    assert len(learned("a" + "\u0301" * 900)[0]) == 300


def test_a_fact_that_was_cut_is_confirmed_by_the_same_words():
    (fact,) = learned("word " * 100)

    assert learned("word " * 100, fact, state=state_of(fact)) == [fact]


EVERY_COUNTER = {name: make() for name, make in COUNTERS.items()}
LANGUAGES = {
    "English": "She asked about the inn at 5.30 p.m. today, and paid 3.5 euro. ",
    "Japanese": "京都の旅館について相談した。",
    "Chinese": "她问了旅馆的价格\uff01",
    "Arabic": "سألت عن سعر الغرفة؟ ",
    "Hindi": "उसने कमरे का दाम पूछा। ",
}
ENDS = {"English": ".", "Japanese": "。", "Chinese": "\uff01", "Arabic": "؟", "Hindi": "।"}


@pytest.mark.parametrize("counter", EVERY_COUNTER.values(), ids=EVERY_COUNTER)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_long_summary_is_cut_at_a_sentence(language, counter):
    text = LANGUAGES[language] * 400

    short = short_summary(text, counter)

    assert text.startswith(short)
    assert short.endswith(ENDS[language])
    assert SUMMARY_TOKENS * 0.85 < counter.count(short) <= SUMMARY_TOKENS
    assert short_summary(short, counter) == short


@pytest.mark.parametrize("counter", EVERY_COUNTER.values(), ids=EVERY_COUNTER)
@pytest.mark.parametrize(
    "text",
    ["word " * 3000, "日本" * 3000, "x" * 9000, "👩‍👩‍👧" * 900, "Ok. " + "word " * 3000],
    ids=["words", "Japanese", "one word", "pictures", "an end at the beginning"],
)
def test_a_long_summary_without_a_sentence_end_keeps_what_there_is_room_for(text, counter):
    short = short_summary(text, counter)

    assert text.startswith(short)
    assert SUMMARY_TOKENS * 0.85 < counter.count(short) <= SUMMARY_TOKENS


@pytest.mark.parametrize("counter", EVERY_COUNTER.values(), ids=EVERY_COUNTER)
@given(st.text(st.sampled_from("ab .!?\n。日é")).map(lambda text: text * 40))
def test_a_short_summary_is_a_head_in_its_room(counter, text):
    short = short_summary(text, counter)

    assert text.startswith(short)
    assert counter.count(short) <= SUMMARY_TOKENS


def test_a_summary_of_nothing_but_listed_facts_leaves_the_old_one():
    state = state_of("Ada lives in Kyoto", summary="Old.")

    assert merge(state, Reply("- Ada lives in Kyoto")).state.summary == "Old."
    assert merge(state, Reply("New.\n- Ada lives in Kyoto\nMore.")).state.summary == "New.\nMore."
    assert (
        merge(state, Reply("New.\n- Ben lives in Nara")).state.summary
        == "New.\n- Ben lives in Nara"
    )


def test_what_no_store_can_hold_is_replaced():
    new = merge(ThreadState(), Reply("a\x00\ud800b", (Statement("c\x00d"),))).state

    assert (new.summary, texts_of(new)) == ("a\ufffd\ufffdb", ["c\ufffdd"])


def test_a_summary_is_in_its_room_by_a_counter_for_which_less_may_cost_more():
    odd = FunctionCounter(lambda text: 9999 if text.endswith(".") else len(text), id="odd")

    assert odd.count(short_summary("They talk. " * 100, odd)) <= SUMMARY_TOKENS
