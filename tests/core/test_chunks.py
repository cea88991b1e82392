"""Chunks: every turn is learned, whole exchanges at a time, in the room there is."""

import json

import pytest
import regex
from core.counting import COUNTERS, splitting_counter
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.learning.chunks import LEAST_CHARACTERS, lines_tokens, take_chunk
from hiermem_core.learning.transcript import line_of, parse_lines, records_of
from hiermem_core.models.turns import ToolCall, Turn
from hiermem_core.tokens.counters import FunctionCounter
from hiermem_core.tokens.cutting import grapheme_boundary, head_and_tail

QUARTERS = COUNTERS["function"]()
BYTES = FunctionCounter(lambda text: len(text.encode()), id="bytes")

EVERY_COUNTER = {name: make() for name, make in COUNTERS.items()} | {"bytes": BYTES}


def user(text):
    return Turn(role="user", content=text)


def assistant(text, *, calls=()):
    return Turn(role="assistant", content=text, tool_calls=calls)


def tool(text):
    return Turn(role="tool", content=text, tool_call_id="c")


def numbered(turns):
    return [
        Turn(role=turn.role, content=turn.content, tool_calls=turn.tool_calls, seq=seq)
        for seq, turn in enumerate(turns, 1)
    ]


def called(text, args):
    return assistant(text, calls=[ToolCall("c", "look", args)])


def chunks_of(turns, room, counter):
    """Learn turns as updates do: from the first that is not learned on, again and again."""
    left, chunks = list(turns), []
    while left:
        chunk = take_chunk(left, room, counter)
        assert chunk is not None
        assert chunk.seqs
        chunks.append(chunk)
        left = left[len(chunk.seqs) :]
    return chunks


def records(chunk):
    return parse_lines("\n".join(chunk.lines))


def tokens_of(turns, counter):
    return lines_tokens([line_of(record) for record in records_of(turns)], counter)


TEXTS = (
    st.text(max_size=40)
    | st.builds(
        lambda piece, times: piece * times,
        st.sampled_from(["Hello there. ", "日本語の文。", "<tag>", "a\n", "👩‍👩‍👧", "e\u0301"]),
        st.integers(0, 200),
    )
).map(lambda text: text.encode("utf-8", "replace").decode())
CALLS = st.lists(
    st.builds(ToolCall, st.none(), st.sampled_from(["look", "book"]), TEXTS | st.just({"n": 1})),
    max_size=2,
)
TURNS = st.lists(
    st.builds(user, TEXTS)
    | st.builds(assistant, st.none() | TEXTS, calls=CALLS)
    | st.builds(tool, st.none() | TEXTS),
    min_size=1,
    max_size=12,
).map(numbered)


@pytest.mark.parametrize("counter", EVERY_COUNTER.values(), ids=EVERY_COUNTER)
@given(turns=TURNS, room=st.integers(500, 2500))
def test_b25_every_turn_is_in_a_chunk_and_every_chunk_in_its_room(counter, turns, room):
    chunks = chunks_of(turns, room, counter)

    assert [seq for chunk in chunks for seq in chunk.seqs] == [turn.seq for turn in turns]
    assert all(lines_tokens(chunk.lines, counter) <= room for chunk in chunks)
    for chunk in chunks:
        assert tuple(record["seq"] for record in records(chunk)) == chunk.seqs
    said = {turn.seq: turn.content for turn in turns}
    for record in (record for chunk in chunks for record in records(chunk)):
        text = said[record["seq"]]
        assert record.get("text") == text or is_shortened(record["text"], text)


def is_shortened(short, text):
    """Tell whether a text is the head and the tail of another, with a marker between them."""
    head, marker, tail = short.partition("\n[... ")
    tail = tail.partition(" characters cut ...]\n")[2]
    assert marker
    assert head
    assert tail or len(text) > 1
    return text.startswith(head) and text.endswith(tail)


@given(TURNS, st.integers(0, 60))
def test_a_room_for_no_turn_gives_no_chunk_and_any_other_gives_one_that_fits(turns, room):
    chunk = take_chunk(turns, room, BYTES)

    assert chunk is None or lines_tokens(chunk.lines, BYTES) <= room


@given(TURNS, st.integers(500, 2500), st.booleans())
def test_an_exchange_is_parted_only_where_it_has_no_room_at_its_shortest(turns, room, has_more):
    chunk = take_chunk(turns, room, BYTES, has_more=has_more)

    following = turns[len(chunk.seqs) :]
    opens = not following or (following[0].role == "user" and (following[0].content or "").strip())
    if not opens:
        begun = max(
            n for n, turn in enumerate(turns[: len(chunk.seqs)]) if n == 0 or is_begin(turn)
        )
        assert begun == 0
        shortest = shortest_lines(turns[: len(chunk.seqs) + 1])
        assert lines_tokens(shortest, BYTES) > room


def is_begin(turn):
    return turn.role == "user" and bool((turn.content or "").strip())


def shortest_lines(turns):
    short = []
    for record in records_of(turns):
        for call in record.get("calls", []):
            args = call["args"] if isinstance(call["args"], str) else json.dumps(call["args"])
            if len(args) > LEAST_CHARACTERS:
                call["args"] = head_and_tail(args, LEAST_CHARACTERS)
        if "text" in record:
            record["text"] = head_and_tail(record["text"], LEAST_CHARACTERS)
        short.append(line_of(record))
    return short


def test_the_oldest_whole_exchanges_that_fit_are_taken_as_they_are():
    turns = numbered([user("one"), assistant("1"), user("two"), assistant("2"), user("three")])
    room = tokens_of(turns[:4], QUARTERS) + 1

    chunk = take_chunk(turns, room, QUARTERS)

    assert chunk.seqs == (1, 2, 3, 4)
    assert records(chunk) == records_of(turns[:4])


def test_the_last_exchange_waits_where_it_goes_on_in_turns_that_are_not_given():
    turns = numbered([user("one"), assistant("1"), user("two"), assistant(None)])

    assert take_chunk(turns, 900, QUARTERS, has_more=True).seqs == (1, 2)
    assert take_chunk(turns[:2], 900, QUARTERS, has_more=True).seqs == (1, 2)
    assert take_chunk(turns, 900, QUARTERS).seqs == (1, 2, 3, 4)


def test_turns_before_the_first_question_are_an_exchange_of_their_own():
    turns = numbered([assistant("Welcome."), tool("x"), user("one"), assistant("1" * 400)])

    assert take_chunk(turns, 60, QUARTERS).seqs == (1, 2)


def test_a_larger_exchange_is_shortened_inside_its_tool_results_first():
    turns = numbered(
        [
            user("q" * 400),
            called("a" * 400, {"text": "b" * 400}),
            tool("start " + "r" * 8000 + " end"),
            tool("brief"),
            assistant("The answer."),
        ]
    )

    chunk = take_chunk(turns, 1000, QUARTERS)

    question, call, long_result, result, answer = records(chunk)
    assert question["text"] == "q" * 400
    assert call["text"] == "a" * 400
    assert call["calls"] == [{"name": "look", "args": {"text": "b" * 400}}]
    assert long_result["text"].startswith("start rrr")
    assert long_result["text"].endswith("rrr end")
    assert "characters cut ...]" in long_result["text"]
    assert (result["text"], answer["text"]) == ("brief", "The answer.")
    assert 990 <= lines_tokens(chunk.lines, QUARTERS) <= 1000


def test_then_inside_its_texts_and_arguments():
    turns = numbered(
        [
            user("Q" + "q" * 4000 + "?"),
            called("A" + "a" * 4000, {"text": "b" * 4000}),
            tool("r" * 4000),
            assistant("The answer."),
        ]
    )

    chunk = take_chunk(turns, 1000, QUARTERS)

    question, call, result, answer = records(chunk)
    assert chunk.seqs == (1, 2, 3, 4)
    assert question["text"].startswith("Qqqq")
    assert question["text"].endswith("qqq?")
    assert len(question["text"]) == pytest.approx(len(call["text"]), abs=2)
    assert call["calls"][0]["args"].startswith('{"text":"bbb')
    assert result["text"] == "r" * 100 + "\n[... 3800 characters cut ...]\n" + "r" * 100
    assert answer["text"] == "The answer."
    assert 990 <= lines_tokens(chunk.lines, QUARTERS) <= 1000


def test_an_exchange_with_too_many_turns_is_parted_and_every_part_is_learned():
    steps = [
        turn for n in range(60) for turn in (called(None, {"n": n}), tool(f"{n} " + "r" * 900))
    ]
    turns = numbered([user("Go on."), *steps, assistant("Done.")])

    chunks = chunks_of(turns, 600, QUARTERS)

    assert len(chunks) > 5
    assert [seq for chunk in chunks for seq in chunk.seqs] == [turn.seq for turn in turns]
    texts = [record.get("text", "") for chunk in chunks for record in records(chunk)]
    assert all(text.startswith(f"{n} rrr") for n, text in enumerate(texts[2::2]) if n < 60)


def test_a_single_turn_of_many_calls_is_still_learned():
    """What has no room even alone would end the learning of its thread for good."""
    calls = [ToolCall(str(n), f"tool_{n}", {"text": "x" * 300}) for n in range(400)]
    turns = numbered([user("Go on."), assistant("I will.", calls=calls), assistant("Done.")])

    chunks = chunks_of(turns, 1500, QUARTERS)

    call = next(record for chunk in chunks for record in records(chunk) if record["seq"] == 2)
    names = [made["name"] for made in call["calls"]]
    assert (names[0], names[-1]) == ("tool_0", "tool_399")
    assert call["calls_cut"] + len(names) == 400
    assert call["text"] == "I will."


def test_text_that_was_never_cut_has_no_marker():
    turns = numbered([user("x" * (LEAST_CHARACTERS + 5)), *[tool("r" * 900)] * 9])

    chunk = take_chunk(turns, 800, QUARTERS)

    assert records(chunk)[0]["text"] == "x" * (LEAST_CHARACTERS + 5)


def test_without_room_there_is_no_chunk():
    assert take_chunk(numbered([user("Hello there")]), 3, QUARTERS) is None
    assert take_chunk(numbered([user("Hello there")]), 0, QUARTERS) is None
    assert take_chunk(numbered([user("Hello there")]), -9, QUARTERS) is None


def test_words_as_tokens_leave_nothing_out_either():
    turns = numbered([user("one two"), assistant("three"), *[tool("word " * 90)] * 6])

    chunks = chunks_of(turns, 100, splitting_counter())

    assert [seq for chunk in chunks for seq in chunk.seqs] == list(range(1, 9))


class Weighing:
    """A counter that knows how many characters it was given to count."""

    id = "weighing"

    def __init__(self, counter):
        self.counted = 0
        self._counter = counter

    def count(self, text):
        self.counted += len(text)
        return self._counter.count(text)

    def count_turn(self, turn):
        return self._counter.count_turn(turn)


def weighed(turns, room, counter=QUARTERS):
    """Return what is counted for one chunk, in characters."""
    weighing = Weighing(counter)
    assert take_chunk(turns, room, weighing) is not None
    return weighing.counted


LONG = {
    "letters": "word and more, ",
    "one letter": "a",
    "Japanese": "日本語の長い文章",
    "Korean": "한국어",
    "combining marks": "\u0301",
    "flags": "\U0001f1ef\U0001f1f5",
    "families": "👩‍👩‍👧",
    "what is escaped": "<\u2028",
}


@pytest.mark.parametrize("piece", LONG.values(), ids=LONG)
def test_of_one_huge_text_little_more_is_counted_than_once(piece):
    text = piece * (1_000_000 // len(piece.encode()))
    counter = FunctionCounter(lambda text: len(text.encode()) // 4, id="quarter-bytes")

    counted = weighed(numbered([user(text), assistant("I see.")]), 3000, counter)

    assert counted < 16 * len(text) + 1_000_000


@pytest.mark.parametrize("name", ["approximate", "tiktoken"])
def test_of_one_huge_text_little_more_is_counted_than_once_by_the_shipped_counters(name):
    text = "They spoke about a trip. " * 40_000

    counted = weighed(numbered([user(text), tool("r " * 9000)]), 3000, COUNTERS[name]())

    assert counted < 2 * len(text) + 1_000_000


def test_of_many_turns_no_more_is_counted_than_the_chunk_takes():
    turns = numbered([user("Hello there"), assistant("Hi " * 20)] * 5_000)

    assert weighed(turns, 3_000) < 10 * 4 * 3_000
    assert weighed(turns, 10_000_000) < 3 * 10_000 * 200


def test_one_exchange_of_thousands_of_turns_is_not_counted_turn_by_turn():
    steps = [called(None, {"text": "x" * 300}), tool("r" * 400)]
    turns = numbered([user("Go on."), *steps * 2_500])
    length = 2_500 * 900

    assert weighed(turns, 3_000) < 40 * length
    assert weighed(turns, 250_000) < 40 * length


@given(
    st.lists(
        st.sampled_from(
            ["a", "\r", "\n", "\r\n", "日", "한", "\u0301", "\u200d", "👩", "🇯", "🇵", "क्"]
        )
    ).map("".join),
    st.integers(0, 40),
)
def test_a_boundary_is_the_last_one_at_or_before_an_index(text, index):
    ends = [match.end() for match in regex.finditer(r"\X", text)]

    assert grapheme_boundary(text, index) == max([0, *(end for end in ends if end <= index)])


def test_a_text_is_cut_between_graphemes():
    family = "👩‍👩‍👧"

    assert head_and_tail(family * 40, 32) == (
        family * 3 + "\n[... 165 characters cut ...]\n" + family * 4
    )


def test_a_chunk_is_in_its_room_by_a_counter_for_which_two_cost_more_than_each():
    squares = FunctionCounter(lambda text: len(text) ** 2, id="squares")
    turns = numbered([user("one"), assistant("1")] * 6)
    room = 3 * tokens_of(turns[:2], squares)

    chunks = chunks_of(turns, room, squares)

    assert [seq for chunk in chunks for seq in chunk.seqs] == list(range(1, 13))
    assert all(lines_tokens(chunk.lines, squares) <= room for chunk in chunks)
