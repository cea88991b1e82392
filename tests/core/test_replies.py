"""Reading replies: what can mean one thing only is read, everything else has a reason."""

import json
import warnings
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiermem_core.learning.replies import Reply, Statement, UnreadableReplyError, parse_reply

GOOD = (
    '{"summary": "Ada plans a trip.", '
    '"facts": [{"text": "Ada lives in Kyoto", "seqs": [13, 14]}], "retract": [2]}'
)
READ = Reply("Ada plans a trip.", (Statement("Ada lives in Kyoto", (13, 14)),), (2,))
DRAFT = '{"summary": "A draft.", "facts": []}'
EVIL = "{'summary': 'Evil.', 'retract': [1]}"

PYTHON = (
    "{'summary': 'Ada plans a trip.', "
    "'facts': [{'text': 'Ada lives in Kyoto', 'seqs': [13, 14]}], 'retract': [2]}"
)

WRAPPED = {
    "nothing around it": GOOD,
    "white space around it": f"\n\n  {GOOD}\n ",
    "a fence": f"```json\n{GOOD}\n```",
    "a fence without a language": f"```\n{GOOD}\n```",
    "a fence that does not end": f"```json\n{GOOD}",
    "prose before": f"Here are the notes you asked for:\n\n{GOOD}",
    "prose after": f"{GOOD}\n\nLet me know if {{anything}} is missing!",
    "prose before, a fence, prose after": f"Sure!\n```json\n{GOOD}\n```\nI kept it short.",
    "braces in prose before": f"I fill in {{the form}}, {{}} and {{ x }}: {GOOD}",
    "formulas before": "\\frac{a}{b} + {{x}} " * 50 + GOOD,
    "one line of many": GOOD.replace(", ", ",\n    ").replace("{", "{\n    "),
    "two equal ones": f"{GOOD}\n{GOOD}",
    "two equal ones, spaced otherwise": f"{GOOD}\n{GOOD.replace(' ', '  ', 1)}",
    "in a list": f"[{GOOD}]",
    "thoughts first": f"<think>\nThe user wants notes.\n</think>\n\n{GOOD}",
    "thoughts that hold drafts": f"<think>Maybe {DRAFT}? {{ or\n{{</think>{GOOD}",
    "empty thoughts": f"<think>\n\n</think>\n{GOOD}",
    "thoughts twice": f"<think>a</think>\n<thinking>{DRAFT}</thinking>\n{GOOD}",
    "thoughts by another name": f"  <Reasoning>{DRAFT}</Reasoning>```json\n{GOOD}```",
    "thoughts whose beginning was in the prompt": f"Let me see: {DRAFT}?\nNo.\n</think>\n\n{GOOD}",
    "the same on one line": f"Let me see: {DRAFT}? No.</think>\n{GOOD}",
    "single quotes": PYTHON,
    "single quotes in a fence": f"```python\n{PYTHON}\n```\nThat is {{all}}.",
    "commas too many": GOOD.replace("]", ",]").replace("}", ",}"),
    "other fields": GOOD.replace("{", '{"confidence": NaN, "ok": true, ', 1),
    "doubled braces": f"{{{GOOD}}}",
    "a byte order mark": f"\ufeff{GOOD}",
}

FORMS = {
    "a statement as a text": ('{"facts": ["a"]}', Reply("", (Statement("a"),))),
    "no seqs": ('{"facts": [{"text": "a"}]}', Reply("", (Statement("a"),))),
    "null for nothing": (
        '{"summary": "s", "facts": null, "retract": null}',
        Reply("s"),
    ),
    "null in Python": ("{'summary': None, 'retract': [1]}", Reply("", (), (1,))),
    "null seqs": ('{"facts": [{"text": "a", "seqs": null}]}', Reply("", (Statement("a"),))),
    "a summary only": ('{"summary": " s "}', Reply("s")),
    "a retraction only": ('{"summary": "", "retract": [3, -1]}', Reply("", (), (3, -1))),
    "statements that say nothing": (
        '{"summary": "s", "facts": ["", " ", "...", {"text": "-"}, "b"]}',
        Reply("s", (Statement("b"),)),
    ),
    "a line end inside a text": ('{"summary": "a\nb\tc"}', Reply("a\nb\tc")),
    "an apostrophe that is escaped": (r'{"summary": "Ada\'s tea"}', Reply("Ada's tea")),
    "the same in single quotes": (r"{'summary': 'Ada\'s \"tea\"'}", Reply('Ada\'s "tea"')),
    "quotes as Python picks them": (
        """{'summary': "Ada's tea", 'facts': ['say "hi"']}""",
        Reply("Ada's tea", (Statement('say "hi"'),)),
    ),
    "escapes": (r'{"summary": "a\n\u65e5\u00df\\"}', Reply("a\n日ß\\")),
    "half of a pair": (r'{"summary": "a\ud83d"}', Reply("a\ud83d")),
    "Japanese": (
        '{"summary": "旅行の相談。", "facts": ["予算は九万円"]}',
        Reply("旅行の相談。", (Statement("予算は九万円"),)),
    ),
    "Arabic": ('{"summary": "رحلة إلى كيوتو؟"}', Reply("رحلة إلى كيوتو؟")),
    "pictures": ('{"summary": "Trip 👩‍👩‍👧 1"}', Reply("Trip 👩‍👩‍👧 1")),
    "JSON inside a text": (
        json.dumps({"summary": f"She sent {GOOD} and {EVIL}"}),
        Reply(f"She sent {GOOD} and {EVIL}"),
    ),
    "the end of thoughts inside a text": (
        '{"summary": "Tags </think> and <think>\n</think>\n are used"}',
        Reply("Tags </think> and <think>\n</think>\n are used"),
    ),
    "a huge number": ('{"retract": [' + "9" * 4000 + "]}", Reply("", (), (int("9" * 4000),))),
}

REFUSED = {
    "nothing": ("", "empty"),
    "white space": (" \n\t\u3000", "empty"),
    "nothing said": ('{"summary": "", "facts": [], "retract": []}', "empty"),
    "nulls": ('{"summary": null, "facts": null}', "empty"),
    "blanks": ('{"summary": " ", "facts": [" "]}', "empty"),
    "the form repeated": (
        '{"summary": "...", "facts": [{"text": "...", "seqs": [13]}], "retract": [2]}',
        "empty",
    ),
    "prose": ("They spoke about a trip.", "no_json"),
    "a refusal": ("I'm sorry, I can't help with that.", "no_json"),
    "null": ("null", "no_json"),
    "a text": ('"summary"', "no_json"),
    "a number": ("13", "no_json"),
    "a list": ('["a", "b"]', "no_json"),
    "an empty object": ("{}", "no_json"),
    "another object": ('{"error": "overloaded"}', "no_json"),
    "a wrapper": (f'{{"notes": {GOOD}}}', "no_json"),
    "a wrapper that is cut": (f'{{"notes": {GOOD}', "no_json"),
    "a set": ("{'summary', 'facts'}", "no_json"),
    "names without quotes": ('{summary: "a", facts: []}', "no_json"),
    "typographic quotes": ("{\u201csummary\u201d: \u201ca\u201d}", "no_json"),
    "an object in a text": (json.dumps(GOOD), "no_json"),
    "an object in a text that quotes": (json.dumps(f'{{"summary": "{EVIL}"}}'), "no_json"),
    "thoughts only": ("<think>Well.</think>", "no_json"),
    "thoughts that do not end": (f"<think>I could say {GOOD}", "no_json"),
    "thoughts that end with the reply": (f"I could say {GOOD}\n</think>", "no_json"),
    "a text of Python that is no value": ("{'summary': open('x').read()}", "no_json"),
    "a sum": ("{'summary': 'a' + 'b'}", "no_json"),
    "two texts in a row": ("{'summary': 'a' 'b'}", "no_json"),
    "bytes": ("{'summary': b'a'}", "no_json"),
    "a tuple": ("{'facts': ('a', 'b')}", "no_json"),
    "an endless number": ('{"summary": "a", "retract": [' + "9" * 5000 + "]}", "no_json"),
    "an apostrophe in single quotes": ("{'summary': 'Ada's tea', 'facts': []}", "no_json"),
    "two apostrophes": ("{'summary': 'Ada's and Ben's tea'}", "no_json"),
    "apostrophes in a list": ("{'facts': ['It's Ada', 'Ben's tea']}", "no_json"),
    "an object quoted by one that is cut": (f'{{"summary": "She sent {EVIL}", "fa', "no_json"),
    "an object quoted by one that is broken": (f"{{'summary': 'Ada's {EVIL}'}}", "no_json"),
    "an object quoted without quotes": (f'{{summary: "She sent {EVIL}"}}', "no_json"),
    "an object quoted in other quotes": (f"{{\u2018summary\u2019: {EVIL}}}", "no_json"),
    "a good one and one that is cut": (f'{GOOD}\n{{"summary": "B', "no_json"),
    "two different ones": (f"{GOOD} or {DRAFT}", "ambiguous"),
    "three, two of them equal": (f"{GOOD}{GOOD}{DRAFT}", "ambiguous"),
    "one that is repeated with other numbers": (f"{GOOD}{GOOD.replace('[2]', '[3]')}", "ambiguous"),
    "records of the prompt beside it": (f'{{"seq": 1, "text": "a"}}\n{GOOD}', "ambiguous"),
    "a name twice": ('{"summary": "a", "summary": "b"}', "ambiguous"),
    "a name twice in single quotes": ("{'summary': 'a', 'summary': 'b'}", "ambiguous"),
    "a name twice inside": ('{"facts": [{"text": "a", "text": "b"}]}', "ambiguous"),
    "the same in single quotes": ("{'facts': [{'text': 'a', 'text': 'b'}]}", "ambiguous"),
    "a name twice, written otherwise": (r'{"summary": "a", "summ\u0061ry": "b"}', "ambiguous"),
}

NOT_TEXTS = ["1", "1.5", "true", "[]", '["a"]', "{}", '{"text": "a"}', "NaN"]
NOT_LISTS = ["1", "true", '"a"', "{}", '{"text": "a"}', "NaN", "0", '""', "false"]
NOT_STATEMENTS = ["1", "null", "true", "[]", '["a"]', "{}", '{"seqs": [1]}', '{"text": null}']
NOT_NUMBERS = ['"1"', "1.0", "1.5", "true", "null", "[1]", '{"n": 1}', "NaN", "Infinity", "1e3"]

WRONG = [
    *(f'{{"facts": ["a"], "summary": {value}}}' for value in NOT_TEXTS),
    *(f'{{"summary": "a", "facts": {value}}}' for value in NOT_LISTS),
    *(f'{{"summary": "a", "retract": {value}}}' for value in NOT_LISTS),
    *(f'{{"summary": "a", "facts": [{value}]}}' for value in NOT_STATEMENTS),
    *(f'{{"summary": "a", "facts": ["b", {value}]}}' for value in NOT_STATEMENTS),
    *(f'{{"summary": "a", "retract": [{value}]}}' for value in NOT_NUMBERS),
    *(f'{{"facts": [{{"text": "a", "seqs": [{value}]}}]}}' for value in NOT_NUMBERS),
    *(f'{{"facts": [{{"text": "a", "seqs": {value}}}]}}' for value in NOT_LISTS),
]


def refusal(text):
    with pytest.raises(UnreadableReplyError) as raised:
        parse_reply(text)
    return raised.value.reason


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED)
def test_a_good_reply_is_read_in_any_wrapping(text):
    assert parse_reply(text) == READ


@pytest.mark.parametrize(("text", "read"), FORMS.values(), ids=FORMS)
def test_every_form_that_means_one_thing_is_read(text, read):
    assert parse_reply(text) == read


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused_with_its_reason(text, reason):
    assert refusal(text) == reason


@pytest.mark.parametrize("text", WRONG)
def test_a_value_of_another_type_is_refused(text):
    assert refusal(text) == "wrong_types"


def test_a_refusal_holds_nothing_of_the_reply():
    with pytest.raises(UnreadableReplyError) as raised:
        parse_reply("{'summary': secret}")

    assert str(raised.value) == "no_json"
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


QUOTING = json.dumps(
    {
        "summary": f"She sent {EVIL} and {GOOD}: it's {{'facts': ['x']}}, </think>\n`{{}}`.",
        "facts": [{"text": f"{EVIL}", "seqs": [1]}, {"summary": "inner", "text": "b"}],
        "retract": [2],
    }
)
CUT = {
    "a good one": GOOD,
    "one that quotes objects": QUOTING,
    "one in single quotes": PYTHON,
    "one in a fence": f"```json\n{GOOD}",
    "one after thoughts": f"<think>{DRAFT}</think>\n{GOOD}",
    "a wrapper": f'{{"notes": {QUOTING}}}',
}


@pytest.mark.parametrize("text", CUT.values(), ids=CUT)
def test_a_reply_that_is_cut_anywhere_is_never_read(text):
    for end in range(text.rindex("}")):
        assert refusal(text[:end]) in {"empty", "no_json"}


HOSTILE = {
    "opening braces": "{" * 100_000,
    "braces and quotes": '{"' * 50_000,
    "spaced braces": "{ \n" * 33_000,
    "closing braces": "}" * 100_000,
    "deep objects": '{"a":' * 20_000,
    "deep objects that end": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "deep objects in single quotes": "{'a':" * 10_000 + "1" + "}" * 10_000,
    "deep lists": '{"summary":' + "[" * 50_000 + "]" * 40_000,
    "deep brackets": "{'a':" + "(" * 50_000,
    "signs": "{'a':" + "-" * 99_000 + "1}",
    "sums": "{'a':" + "1+" * 45_000 + "1}",
    "attributes": "{'a':b" + ".c" * 45_000 + "}",
    "quotes": "{'" + "'" * 99_000,
    "backslashes": "{'" + "\\" * 99_000,
    "words": "{'a " + "'s " * 33_000,
    "small objects": '{"a":1}' * 14_000,
    "thoughts": "<think></think>" * 6_000,
    "thoughts that begin": "<think>" * 14_000,
    "thoughts that end": "x</think>\n" * 10_000,
    "white space": "{" + " " * 90_000 + "{" + "\n" * 9_000,
    "a megabyte of prose": "They spoke about { a trip }. " * 36_000,
    "fences": "```json\n{" * 11_000,
}


@pytest.mark.timeout(20)  # a pattern that goes back and forth would hang
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_reply_is_refused_and_hangs_nothing(text):
    assert refusal(text) in {"no_json", "ambiguous"}


@pytest.mark.timeout(20)
def test_a_reply_of_thousands_of_statements_is_read():
    text = json.dumps({"facts": [{"text": f"fact {n}", "seqs": [n]} for n in range(2_000)]})

    replies = [parse_reply(text), parse_reply(text[:-2] + ",]}")]

    assert [len(reply.facts) for reply in replies] == [2_000, 2_000]


def test_nothing_is_warned_of_when_escapes_are_unknown():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert refusal(r"{'summary': 'C:\dir', 'n': 1if}") == "no_json"


TEXTS = st.text()
SPOKEN = TEXTS.filter(lambda text: any(map(str.isalnum, text)))
NUMBERS = st.integers()
OBJECTS = st.fixed_dictionaries(
    {"summary": SPOKEN},
    optional={
        "facts": st.none()
        | st.lists(
            SPOKEN | st.fixed_dictionaries({"text": SPOKEN}, optional={"seqs": st.lists(NUMBERS)}),
            max_size=4,
        ),
        "retract": st.lists(NUMBERS, max_size=4),
        "thoughts": st.recursive(
            st.none() | st.booleans() | TEXTS | NUMBERS,
            lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
            max_leaves=5,
        ),
    },
)
WRITERS = st.sampled_from(
    [
        json.dumps,
        lambda value: json.dumps(value, ensure_ascii=False, indent=2),
        lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    ]
)
WRAPPINGS = st.sampled_from(
    [
        "{}",
        "```json\n{}\n```",
        "```\n{}",
        "Here you are: {}",
        "{}\nThat is all of it.",
        "<think>Hm, {{'summary': 1</think>{}",
        "I think so.\n</think>\n{}\n\n",
        "[{}]",
    ]
)


def expected(value):
    facts = [
        Statement(f) if isinstance(f, str) else Statement(**f) for f in value.get("facts") or ()
    ]
    return Reply(
        value["summary"].strip(),
        tuple(Statement(fact.text.strip(), tuple(fact.seqs)) for fact in facts),
        tuple(value.get("retract", ())),
    )


@given(OBJECTS, WRITERS, WRAPPINGS)
def test_any_object_in_any_wrapping_is_read_back_equal(value, write, wrapping):
    assert parse_reply(wrapping.format(write(value))) == expected(value)


@given(OBJECTS, WRITERS, st.floats(0, 1))
def test_no_part_of_an_object_is_read(value, write, share):
    text = write(value)
    begun = text[: int(share * text.rindex("}"))]

    assert refusal(begun) in {"empty", "no_json"}


PIECES = st.sampled_from(
    [
        *"{}[]:,'\"\\`<>/\n 1-a\u2028\ud800\x00",
        *('"summary"', "'facts'", "retract", "<think>", "</think>", "null", "None", "NaN"),
        *(GOOD, PYTHON, EVIL),
    ]
)


@given(TEXTS | st.lists(PIECES, max_size=30).map("".join))
@example("{'a'" + "\ud800")
def test_no_text_raises_anything_else(text):
    with suppress(UnreadableReplyError):
        assert parse_reply(text) != Reply()
