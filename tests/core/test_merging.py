"""Merging: what a reply makes of the notes, and that it never makes more of them than it says."""

import pytest
from core.counting import COUNTERS
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.learning.merging import (
    FACT_CHARACTERS,
    MOST_FACTS,
    MOST_SOURCES,
    SUMMARY_TOKENS,
    Merged,
    merged,
    short_summary,
)
from hiermem_core.learning.prompts import helper_prompt
from hiermem_core.learning.replies import Reply, Statement
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.threads.notes import without_turns
from hiermem_core.threads.notes_text import fit_notes, notes_text, without_last_sentence
from hiermem_core.tokens.counters import FunctionCounter

CHARACTERS = FunctionCounter(len, id="characters")
QUARTERS = COUNTERS["function"]()


def merge(state, reply, *, listed=None, seqs=(7, 8, 9)):
    known = state.facts if listed is None else listed
    return merged(state, reply, listed=known, seqs=seqs, counter=QUARTERS)


def learned(*texts, summary="", retract=(), state=None, seqs=(7, 8, 9)):
    """Return the texts of the facts after a reply."""
    reply = Reply(summary, tuple(map(Statement, texts)), tuple(retract))
    return texts_of(merge(state or ThreadState(), reply, seqs=seqs).state)


def texts_of(state):
    return [fact.text for fact in state.facts]


def state_of(*texts, summary="Old."):
    return ThreadState(summary, tuple(Fact(text, 3, ((3,),)) for text in texts), 6)


def test_b28_a_new_fact_joins_nine():
    nine = [f"Fact number {number}" for number in range(9)]

    assert learned("The tenth", state=state_of(*nine)) == [*nine, "The tenth"]


def test_b28_figures_that_differ_are_two_facts_unless_one_is_retracted():
    state = state_of("The port is 8090", "The host is kiku")

    joined = learned("The port is 8091", state=state)
    replaced = learned("The port is 8091", retract=[1], state=state)

    assert joined == ["The port is 8090", "The host is kiku", "The port is 8091"]
    assert replaced == ["The host is kiku", "The port is 8091"]


@pytest.mark.parametrize("numbers", [(0,), (-1,), (3,), (99, 10**30), ()])
def test_b28_a_number_that_lists_nothing_retracts_nothing(numbers):
    state = state_of("one", "two")

    assert merge(state, Reply("New.", (), numbers)).state.facts == state.facts


def test_a_number_is_of_the_listed_facts_and_not_of_all():
    state = state_of("one", "two", "three")

    new = merge(state, Reply("New.", (), (1,)), listed=state.facts[1:]).state

    assert texts_of(new) == ["one", "three"]


def test_a_fact_that_is_retracted_and_stated_at_once_is_confirmed():
    state = state_of("one", "two")

    new = merge(state, Reply("", (Statement("one."),), (1, 2))).state

    assert new.facts == (Fact("one", 9, ((3,), (7, 8, 9))),)


@pytest.mark.parametrize(
    "same",
    [
        "Ada lives in Kyoto.",
        "  Ada  lives\nin\tKyoto ",
        "Ada lives in Kyoto!",
        "- Ada lives in Kyoto",
        "\u2022 Ada lives in Kyoto",
        "12. Ada lives in Kyoto.",
        "(3) Ada lives in Kyoto",
    ],
)
def test_an_equal_fact_is_confirmed_and_keeps_its_words(same):
    new = merge(state_of("Ada lives in Kyoto"), Reply("", (Statement(same, (8,)),))).state

    assert new.facts == (Fact("Ada lives in Kyoto", 8, ((3,), (8,))),)


@pytest.mark.parametrize(
    "other", ["ada lives in Kyoto", "Ada lives in Kyoto?", "Ada lives in Kyo-to"]
)
def test_letter_case_and_signs_make_another_fact(other):
    assert learned(other, state=state_of("Ada lives in Kyoto")) == ["Ada lives in Kyoto", other]


def test_the_same_letters_composed_otherwise_are_equal():
    assert learned("cafe\u0301", state=state_of("caf\u00e9")) == ["caf\u00e9"]


@pytest.mark.parametrize("nothing", ["", " ", "...", "-", "- ", "1. ...", "\u3002", "\U0001f44d"])
def test_a_statement_without_a_letter_or_digit_is_no_fact(nothing):
    assert learned(nothing) == []


def test_a_fact_records_the_turns_it_names_of_those_that_were_learned():
    statements = (
        Statement("named", (9, 7, 7)),
        Statement("half", (2, 8, 99, -1)),
        Statement("wrong", (1, 2)),
        Statement("unnamed"),
    )

    new = merge(ThreadState(), Reply("", statements)).state

    assert new.facts == (
        Fact("named", 9, ((7, 9),)),
        Fact("half", 8, ((8,),)),
        Fact("wrong", 9, ((7, 8, 9),)),
        Fact("unnamed", 9, ((7, 8, 9),)),
    )
    assert new.turn_count == 9


def test_a_fact_stated_twice_in_a_reply_stands_once_with_both_sources():
    new = merge(ThreadState(), Reply("", (Statement("a", (8,)), Statement("a.", (7,))))).state

    assert new.facts == (Fact("a", 8, ((8,), (7,))),)


def test_the_newest_sources_of_a_fact_are_kept():
    state = ThreadState()
    for seq in range(1, 13):
        state = merge(state, Reply("", (Statement("a", (seq,)),)), seqs=(seq,)).state

    assert state.facts == (Fact("a", 12, tuple((seq,) for seq in range(5, 13))),)
    assert len(state.facts[0].sources) == MOST_SOURCES


def test_what_was_only_learnt_from_some_turns_goes_with_them():
    twice = Fact("twice", 9, ((3,), (8, 9)))
    state = ThreadState("Summary.", (Fact("once", 3, ((3,),)), twice, Fact("kept", 4, ((4,),))), 9)

    assert without_turns(state, [3], reset_seq=2) == ThreadState(
        "", (Fact("twice", 9, ((8, 9),)), Fact("kept", 4, ((4,),))), 2
    )
    assert without_turns(state, [3, 8, 4], reset_seq=0).facts == ()


def test_b29_the_fifty_facts_confirmed_last_remain_and_the_others_are_counted():
    state, dropped = ThreadState(), 0
    for seq in range(1, 61):
        merge_one = merge(state, Reply("", (Statement(f"fact {seq}"),)), seqs=(seq,))
        state, dropped = merge_one.state, dropped + merge_one.dropped

    assert texts_of(state) == [f"fact {seq}" for seq in range(11, 61)]
    assert dropped == 10


def test_b29_a_fact_that_was_confirmed_outlives_newer_ones():
    state = ThreadState()
    for seq in range(1, 61):
        stated = (Statement(f"fact {seq}"), *([Statement("fact 1")] if seq == 49 else []))
        state = merge(state, Reply("", stated), seqs=(seq,)).state

    assert texts_of(state)[:2] == ["fact 1", "fact 12"]
    assert len(state.facts) == 50


def test_b29_of_sixty_facts_in_one_reply_the_last_fifty_remain():
    reply = Reply("", tuple(Statement(f"fact {number}") for number in range(60)))

    first = merge(ThreadState(), reply)
    again = merge(first.state, reply, listed=())

    assert texts_of(first.state) == [f"fact {number}" for number in range(10, 60)]
    assert (first.dropped, again) == (10, Merged(first.state, 10, is_empty=False))


WORDS = st.sampled_from(["a", "b", "a.", "- b", "c - b", "x - a - b", "d", "e", "f", "...", "1. d"])
STATEMENTS = st.builds(
    Statement,
    WORDS | st.integers(0, 70).map("fact {}".format) | st.text(max_size=400),
    st.lists(st.integers(5, 12), max_size=3).map(tuple),
)
SUMMARIES = st.text() | WORDS | st.sampled_from(["- a", "S.\n- a\n- b", "One. Two. " * 300])
REPLIES = st.builds(
    Reply,
    SUMMARIES,
    st.lists(STATEMENTS, max_size=70).map(tuple),
    st.lists(st.integers(-2, 60), max_size=6).map(tuple),
)


@st.composite
def states(draw):
    state = ThreadState(draw(st.sampled_from(["", "Old summary."])))
    for seqs in ((1, 2), (3, 4), (5,)):
        state = merge(state, draw(REPLIES), seqs=seqs).state
    return state


@given(states(), REPLIES, st.integers(0, 60))
def test_p13_merging_is_idempotent(state, reply, from_fact):
    listed = state.facts[from_fact:]
    once = merge(state, reply, listed=listed).state

    assert merge(once, reply, listed=listed).state == once


@given(states(), REPLIES)
def test_p13_merging_never_exceeds_a_limit(state, reply):
    new = merge(state, reply).state

    assert len(new.facts) <= MOST_FACTS
    assert all(0 < len(fact.text) <= FACT_CHARACTERS for fact in new.facts)
    assert all(len(fact.sources) <= MOST_SOURCES for fact in new.facts)
    assert QUARTERS.count(new.summary) <= SUMMARY_TOKENS
    assert all(fact.sources and fact.confirmed_seq in fact.seqs for fact in new.facts)


@given(states(), REPLIES)
def test_p13_only_retracted_or_dropped_facts_are_removed(state, reply):
    numbers = [number for number in reply.retract if 0 < number <= len(state.facts)]
    retracted = {state.facts[number - 1].text for number in numbers}

    result = merge(state, reply)

    left = texts_of(result.state)
    gone = [fact for fact in state.facts if fact.text not in left]
    dropped = [fact for fact in gone if fact.text not in retracted]
    assert len(dropped) <= result.dropped
    oldest_kept = min((fact.confirmed_seq for fact in result.state.facts), default=0)
    assert all(fact.confirmed_seq <= oldest_kept for fact in dropped)
    assert not dropped or len(left) == MOST_FACTS


@given(states(), REPLIES)
def test_p13_an_empty_summary_never_replaces_another(state, reply):
    assert merge(state, reply).state.summary or not state.summary


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


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("One. Two. Three.", "One. Two."),
        ("One. Two", "One."),
        ("Costs 3.50 euro. More.", "Costs 3.50 euro."),
        ("一つ。二つ。", "一つ。"),
        ("a\nb", "a"),
        ("One.", ""),
        ("", ""),
        ("no end", ""),
        ("واحد؟ اثنان؟", "واحد؟"),
        ("एक। दो।", "एक।"),
    ],
)
def test_a_text_less_its_last_sentence(text, left):
    assert without_last_sentence(text) == left


@given(states(), st.integers(0, 600))
def test_fitted_notes_are_in_their_budget_and_say_what_is_left_out(state, budget):
    whole = notes_text(state.summary, state.facts)

    text, warned = fit_notes(state, budget, CHARACTERS)

    assert len(text) <= budget
    assert (text == whole) is not bool(warned)
    assert all(warning.tokens == len(whole) - len(text) for warning in warned)


def test_what_is_left_out_is_told_even_where_it_costs_nothing():
    state = ThreadState("", (Fact("a", 1), Fact("b", 2)), 2)
    lines = FunctionCounter(lambda text: 3 if text.count("-") > 1 else 2, id="odd")

    text, warned = fit_notes(state, 2, lines)

    assert (text, len(warned)) == ("- b", 1)


def test_nothing_is_left_out_that_costs_nothing():
    state = ThreadState("", (Fact("a", 1), Fact("b", 2)), 2)
    flat = FunctionCounter(lambda text: 2 if text else 0, id="flat")

    assert fit_notes(state, 3, flat) == ("- a\n- b", ())
    assert fit_notes(state, 1, flat)[0] == ""


def test_a_long_summary_is_counted_few_times():
    counted = []
    counter = FunctionCounter(lambda text: counted.append(len(text)) or len(text) // 4, id="q")
    state = ThreadState("They spoke about a trip. " * 4000, (), 2)

    text, _ = fit_notes(state, 100, counter)

    assert 300 < len(text) <= 400
    assert sum(counted) < 16 * len(state.summary)


def test_a_summary_is_in_its_room_by_a_counter_for_which_less_may_cost_more():
    odd = FunctionCounter(lambda text: 9999 if text.endswith(".") else len(text), id="odd")

    assert odd.count(short_summary("They talk. " * 100, odd)) <= SUMMARY_TOKENS


def test_p13_sources_that_are_named_again_are_the_newest_ones():
    sources = tuple((seq,) for seq in range(1, MOST_SOURCES + 1))
    state = ThreadState("", (Fact("a", MOST_SOURCES, sources),), 8)
    reply = Reply("", (Statement("a", (1,)), Statement("a", (9,))))

    once = merge(state, reply, seqs=(1, 9)).state
    again = merge(once, reply, seqs=(1, 9)).state

    assert once.facts[0].sources == (*sources[2:], (1,), (9,))
    assert again == once


def test_p13_a_summary_reads_the_same_whether_its_facts_are_new_or_known():
    reply = Reply("They talk.\n- Ada is here", (Statement("Ada is here"),))

    once = merge(ThreadState(), reply, listed=()).state

    assert once.summary == "They talk."
    assert merge(once, reply, listed=()).state == once
