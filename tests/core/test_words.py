"""Keyword text and questions, looked up in a real FTS5 table and by the plain BM25."""

from __future__ import annotations

import math
import sqlite3
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.ranking.questions import named_participant, without_names
from hiermem_core.ranking.words import (
    MAX_QUERY_WORDS,
    bm25,
    is_question,
    keyword_body,
    match_expression,
    plain_words,
    query_words,
    said,
    turn_body,
    turn_embedding_text,
    word_count,
)
from hiermem_core.storage.keyword_tables import TOKENIZER

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=("Cs",)))
PIECES = st.lists(
    st.sampled_from(
        ["世界", "你", "カフェ", "서울", "ภาษา", "Python", "é", "हिन्दी", '"', "*", " ", "AND"]
    )
).map("".join)
PLAIN_TOKENIZER = "porter unicode61 remove_diacritics 2"

each_tokenizer = pytest.mark.parametrize("tokenizer", [TOKENIZER, PLAIN_TOKENIZER])


class Index:
    """Rows of (scope, text) in an FTS5 table."""

    def __init__(self, rows, tokenizer=TOKENIZER):
        self._rows = sqlite3.connect(":memory:")
        self._rows.execute(
            f'CREATE VIRTUAL TABLE words USING fts5(scope, body, tokenize="{tokenizer}")'
        )
        self._rows.executemany(
            "INSERT INTO words VALUES (?, ?)", [(scope, keyword_body(text)) for scope, text in rows]
        )

    def search(self, question, *scope):
        """Return the row numbers, from 0, with their BM25, best first."""
        expression = match_expression(query_words(question), scope)
        if expression is None:
            return {}
        found = self._rows.execute(
            "SELECT rowid - 1, -bm25(words, 0.0, 1.0) FROM words WHERE words MATCH ? ORDER BY rank",
            (expression,),
        )
        return dict(found)


def index_of(*texts, tokenizer=TOKENIZER):
    return Index([("t1", text) for text in texts], tokenizer)


def found_plainly(question, *texts):
    scores = bm25(query_words(question), [plain_words(text) for text in texts])
    return [row for row, score in enumerate(scores) if score > 0]


UNSPACED = [
    ("Python", "私はPythonでADKを使っています"),
    ("ADK", "私はPythonでADKを使っています"),
    ("世界", "你好世界"),
    ("界", "你好世界"),
    ("你", "你好世界"),
    ("好", "你好世界"),
    ("使っています", "私はPythonでADKを使っています"),
    ("파이썬", "저는 파이썬을 좋아해요"),
    ("ภาษา", "ผมเรียนภาษาไทยที่นี่"),
    ("ที่นี่", "ผมเรียนภาษาไทยที่นี่"),
    ("ພາສາ", "ຂ້ອຍຮຽນພາສາລາວ"),
    ("ភាសា", "ខ្ញុំរៀនភាសាខ្មែរ"),
    ("မြန်မာ", "ကျွန်တော်မြန်မာစာသင်တယ်"),
    ("API", "このＡＰＩは便利"),
    ("ガラス", "これはｶﾞﾗｽです"),
    ("が", "か\u3099くせい"),
]


@each_tokenizer
@pytest.mark.parametrize(("word", "text"), UNSPACED)
def test_a36_a_word_inside_an_unspaced_script_is_found(word, text, tokenizer):
    index = index_of("something else 東京 서울 กรุงเทพ", text, tokenizer=tokenizer)

    assert list(index.search(word)) == [1]
    assert found_plainly(word, "something else 東京 서울 กรุงเทพ", text) == [1]


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("café", "at the CAFE"),
        ("cafe", "in the cafe\u0301"),
        ("हिन्दी", "वह हिन्दी बोलती है"),
        ("ΟΔΟΣ", "η οδος"),
        ("straße", "Eine STRAßE"),
        ("case", "snake_case"),
        ("O'Brien", "Mr. O\u2019Brien"),
    ],
)
def test_case_accents_and_signs_do_not_matter(word, text):
    assert list(index_of(text, "else").search(word)) == [0]
    assert found_plainly(word, text, "else") == [0]


@each_tokenizer
@pytest.mark.parametrize(
    "question",
    [
        '"',
        "*",
        "AND",
        "-x",
        "NEAR(",
        "col:x",
        "scope : t2",
        "a NOT b",
        '")',
        "^x",
        "{x}",
        "\\",
        "'",
    ],
)
def test_a37_no_character_of_a_question_is_an_operator(question, tokenizer):
    index = Index([("t1", "x and col near a b scope"), ("t2", "x")], tokenizer)

    found = index.search(question, "t1")

    assert 1 not in found
    assert bool(found) == bool(query_words(question))


@given(ANY_TEXT | PIECES)
def test_a37_any_question_is_looked_up_without_an_error(question):
    index = Index([("t1", question), ("t2", question)])

    found = index.search(question, "t1")

    assert 1 not in found


@given(PIECES)
def test_a_text_is_found_by_its_own_words(text):
    index = index_of(text)
    expected = [0] if query_words(text) else []

    assert list(index.search(text)) == expected
    assert found_plainly(text, text) == expected


@given(ANY_TEXT)
def test_a_body_of_ascii_stays_as_it_is(text):
    ascii_text = text.encode("ascii", "ignore").decode()

    assert keyword_body(ascii_text) == ascii_text


def test_spaced_text_beside_an_unspaced_run_stays_as_it_is():
    assert keyword_body("Über 世界人: naïve") == "Über  世界 界人 人 : naïve"


def test_each_token_of_the_scope_must_match():
    index = Index([("t1 h1", "tea"), ("t1 h2", "tea"), ("t2 h1", "tea"), ("t1", "t2 h1 tea")])

    assert list(index.search("tea", "t1", "h1")) == [0]
    assert sorted(index.search("tea", "t1")) == [0, 1, 3]
    assert sorted(index.search("tea")) == [0, 1, 2, 3]


def test_a_question_does_not_look_into_the_scope():
    assert Index([("t1", "tea")]).search("t1") == {}


def test_without_words_nothing_can_match():
    assert query_words(" ?!… 🙂 \ud800") == []
    assert match_expression([], ["t1"]) is None


def test_words_that_say_nothing_are_left_out():
    question = "When did Caroline\u2019s parents' dog, Rex, and James's cat go to the vet's?"

    assert query_words(question) == [
        "Caroline",
        "parents",
        "dog",
        "Rex",
        "James",
        "cat",
        "go",
        "vet",
    ]


def test_a_question_of_stop_words_keeps_them():
    assert query_words("What was it?") == ["What", "was", "it"]
    assert list(index_of("it was so", "else").search("What was it?")) == [0]


def test_a_word_counts_once_as_first_written():
    assert query_words("Tea, coffee, TEA and tea") == ["Tea", "coffee"]


def test_a_long_question_gives_its_beginning_and_its_end():
    words = [f"w{number}" for number in range(5000)]

    looked_up = query_words(" ".join(words))

    assert looked_up == words[: MAX_QUERY_WORDS // 2] + words[-MAX_QUERY_WORDS // 2 :]


def test_the_plain_bm25_is_the_one_of_fts5():
    texts = ["red tea and red cups", "green tea", "cups of milk", "the river", "a hill", "far away"]
    padded = [f"x {text}" for text in texts]
    index = Index([("x", text) for text in texts], "unicode61")

    expected = index.search("red tea cups")
    scores = bm25(query_words("red tea cups"), [plain_words(text) for text in padded])

    assert {row: score for row, score in enumerate(scores) if score} == pytest.approx(expected)


def test_the_plain_bm25_follows_the_formula():
    documents = [["a", "a", "b"], ["c"], ["c"], ["c"]]
    norm = 1.2 * (1 - 0.75 + 0.75 * 3 / 1.5)

    assert bm25(["a", "A"], documents)[0] == pytest.approx(
        math.log((4 - 1 + 0.5) / 1.5) * 2 * 2.2 / (2 + norm)
    )
    assert bm25(["c"], documents)[1] > 0
    assert bm25(["a"], []) == []
    assert bm25(["a"], [[]]) == [0.0]
    assert bm25([], documents) == [0.0] * 4


def test_the_body_of_a_turn_names_day_author_and_captions():
    moment = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)

    body = turn_body("Look!", author="Melanie", created_at=moment, captions=["a dog", "a cat"])

    assert body == "[8 May 2023] Melanie: Look! [a dog; a cat]"
    assert turn_body("你好", author=None, created_at=date(2024, 12, 31)) == (
        "[31 December 2024]  你好 好 "
    )


def test_what_is_embedded_ends_with_the_turn_itself():
    previous = said("Where were you?", author="Caroline")

    text = turn_embedding_text("At home", author="Mel", previous=previous, captions=["a house"])

    assert text == "Caroline: Where were you?\nMel: At home [a house]"
    assert turn_embedding_text("At home", author=None, previous=None) == "At home"


@pytest.mark.parametrize("word", ["word ", "語", "🙂", "é"])
def test_a_long_previous_turn_leaves_room_for_the_turn(word):
    text = turn_embedding_text("At home", author="Mel", previous=word * 5000 + "the end")

    previous, _, spoken = text.partition("\n")
    assert spoken == "Mel: At home"
    assert previous.endswith("the end")
    assert len(previous.encode()) <= 200
    assert "\ufffd" not in previous


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("  !? ", 0),
        ("It is 5 o'clock", 5),
        ("你好世界", 2),
        ("我用Python", 2),
        ("ที่นี่", 1),
        ("हिन्दी में", 2),
    ],
)
def test_words_are_counted_in_any_script(text, words):
    assert word_count(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "Why?",
        "I am fine. And you?",
        "Really?! ",
        'He said "why?"',
        "What? 🙂",
        "你呢\uff1f",
        "لماذا؟",
    ],
)
def test_a_turn_that_ends_by_asking_is_a_question(text):
    assert is_question(text)


@pytest.mark.parametrize(
    "text", ["", "Why? I wonder.", "Why? Go on", "Fine.", "Really? Yes! 🙂", "?a"]
)
def test_other_turns_are_no_questions(text):
    assert not is_question(text)


def test_long_runs_of_signs_cost_no_time():
    assert not is_question("?" * 200_000 + "a")
    assert not is_question("? " * 100_000 + "a")
    assert query_words("'s" * 100_000 + '"' * 100_000)


PEOPLE = ["Caroline", "Melanie Stone", "Will", "민수", "user", "", " "]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did caroline's mother paint?", "Caroline"),
        ("Does Melanie run?", "Melanie Stone"),
        ("Does MELANIE STONE run?", "Melanie Stone"),
        ("Caroline and Melanie?", None),
        ("Will Caroline come?", None),
        ("will Caroline come?", "Caroline"),
        ("민수는 어디에 있어요?", "민수"),
        ("Carolines?", None),
        ("What did the user say?", "user"),
        ("Who?", None),
    ],
)
def test_a_participant_is_named_alone(question, named):
    assert named_participant(question, PEOPLE) == named


def test_names_of_participants_are_left_out():
    question = "What did Caroline\u2019s friend paint for Melanie Stone in Paris?"

    kept = without_names(question, participants=PEOPLE, is_common=lambda _: True)

    assert kept == "What did friend paint for in Paris?"


def test_where_no_participant_is_named_common_capitalised_words_are_left_out():
    common = {"Caroline", "What"}

    kept = without_names(
        "What did Caroline's friend paint in Paris?",
        participants=["user"],
        is_common=common.__contains__,
    )

    assert kept == "What did friend paint in Paris?"


def test_a_question_of_names_stays_as_it_is():
    assert without_names("Caroline?", participants=PEOPLE) == "Caroline?"
    assert without_names("Why me?") == "Why me?"


@given(ANY_TEXT, st.lists(ANY_TEXT, max_size=4))
def test_any_text_may_be_a_question_or_a_name(question, names):
    kept = without_names(question, participants=names)

    assert kept or not question.strip()
    assert named_participant(question, names) in {None, *names}
