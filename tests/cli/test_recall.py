"""Recalling entries and turns."""

from __future__ import annotations

import subprocess
import sys

import pytest

ITEMS = [
    {"role": "user", "content": "The lighthouse keeper is called Ove", "name": "Mara"},
    {"role": "assistant", "content": "Noted."},
]

WITHOUT_EMBED = """
import os, sys
sys.modules["onnxruntime"] = None
os.environ.pop("HIERMEM_LOCAL_EMBEDDER", None)
from hiermem_core.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def stored(hiermem, conversation, remember):
    """Have a thread `talk`, a thread `other`, and two entries."""
    assert hiermem("import", conversation(*ITEMS)).code == 0
    other = [{"role": "user", "content": "Another lighthouse stands in Malmö"}]
    assert hiermem("import", conversation(*other, name="other.jsonl")).code == 0
    remember("The lighthouse is closed on Mondays", "--namespace", "facts/opening")
    remember("Lighthouse visits take an hour", "--namespace", "plans", "--tag", "long")
    return hiermem


def hits(run):
    return {
        hit["thread_id"] if hit["kind"] == "turn" else hit["namespace"] for hit in run.json["hits"]
    }


def test_recall_finds_entries_and_turns_of_every_thread(stored):
    run = stored("recall", "lighthouse", "--json")

    assert hits(run) == {"talk", "other", "facts/opening", "plans"}
    assert run.json["threads"] == "all"
    assert all(0 <= hit["score"] <= 1 for hit in run.json["hits"])


def test_search_is_the_same_command(stored):
    assert stored("search", "lighthouse").out == stored("recall", "lighthouse").out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--thread", "talk"), {"talk", "facts/opening", "plans"}),
        (("--thread", "talk", "--threads", "all"), {"talk", "other", "facts/opening", "plans"}),
        (("--threads", "none"), {"facts/opening", "plans"}),
        (("--namespace", "facts"), {"facts/opening"}),
        (("--tag", "long"), {"plans"}),
        (("--namespace", "facts", "--threads", "all"), {"facts/opening", "talk", "other"}),
        (("--namespace", "facts", "--thread", "talk"), {"facts/opening", "talk"}),
    ],
)
def test_threads_and_restrictions_choose_what_is_recalled(stored, words, found):
    assert hits(stored("recall", "lighthouse", *words, "--json")) == found


def test_hits_read_as_a_line_about_each_and_its_content(stored):
    out = stored("recall", "lighthouse keeper", "--limit", "1").out

    line, content = out.splitlines()
    assert line.startswith(("1.00", "0."))
    assert "thread talk #1 user, Mara, " in line
    assert content == "  The lighthouse keeper is called Ove"


def test_explain_says_how_a_hit_came_by_its_score(stored):
    run = stored("recall", "lighthouse keeper", "--explain", "--limit", "1")

    assert "\nwhy: keyword 0." in run.out
    assert "plan keyword index" in run.out
    explained = stored("recall", "lighthouse keeper", "--explain", "--json").json["hits"][0]
    assert explained["explanation"]["bm25"] > 0


def test_nothing_found_is_no_error(stored):
    run = stored("recall", "zeppelin")

    assert (run.code, run.out, run.err) == (0, "", "nothing was found\n")
    assert stored("recall", "zeppelin", "--json").json["hits"] == []


def test_a_mistyped_namespace_names_the_right_one(stored):
    run = stored("recall", "lighthouse", "--namespace", "facts/openin")

    assert "unknown_namespace" in run.err
    assert "did you mean facts/opening" in run.err
    warnings = stored("recall", "x", "--namespace", "facts/openin", "--json").json["warnings"]
    assert [warning["code"] for warning in warnings] == ["unknown_namespace"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("x", "--thread", "nothing"), 1, "thread 'nothing' not found"),
        (("x", "--threads", "some"), 2, "must be this, all or none"),
        (("x", "--threads", "this"), 2, "add --thread NAME"),
        (("x", "--type", "odd"), 2, "use one of episodic"),
        (("x" * 40_000,), 2, "exceeds the limit of 32768"),
    ],
)
def test_wrong_words_end_in_one_line(stored, words, code, told):
    run = stored("recall", *words)

    assert (run.code, run.out) == (code, "")
    assert told in run.err


@pytest.mark.parametrize("question", ['"', "*", "AND", "-- NEAR(", "col:x", "日本 größe", ""])
def test_a_question_is_plain_text(stored, question):
    assert stored("recall", "--json", "--", question).code == 0


def test_a_context_shows_what_it_recalled(stored, conversation):
    filler = [{"role": role, "content": "so " * 40} for role in ("user", "assistant")] * 5
    stored("import", conversation(*ITEMS, *filler, name="long.jsonl"))

    words = ("context", "long", "--budget", "250", "--question", "Who keeps the lighthouse?")
    run, value = stored(*words), stored(*words, "--json").json

    assert "recalled, best first:\n" in run.out
    assert "thread long #1 user, Mara, " in run.out
    assert "Mara: The lighthouse keeper is called Ove" in run.out
    assert value["sections"]["recall"] > 0
    assert "The lighthouse keeper is called Ove" in [hit["content"] for hit in value["hits"]]
    assert sum(value["sections"].values()) == value["tokens"] <= 250


def test_a_context_recalls_other_threads_or_nothing_when_told(stored):
    words = ("context", "talk", "--question", "Where is another lighthouse?", "--json")

    everywhere = stored(*words, "--threads", "all").json
    nothing = stored(*words, "--no-recall").json

    assert "other" in {hit.get("thread_id") for hit in everywhere["hits"]}
    assert nothing["hits"] == []
    assert "recall" not in nothing["sections"]


def test_without_the_extra_it_says_how_to_find_by_meaning(stored):
    for words in (("recall", "lighthouse"), ("stats",), ("context", "talk")):
        command = [sys.executable, "-c", WITHOUT_EMBED, *words]
        run = subprocess.run(command, capture_output=True, text=True, check=False)

        assert run.returncode == 0
        assert run.stdout
        assert 'pip install "hiermem-core[embed]"' in run.stderr


def test_by_meaning_it_finds_what_shares_no_word(embedder, hiermem, remember):
    remember("The cat sleeps on the sofa")
    remember("Invoices are due within thirty days")

    value = hiermem("recall", "When must bills be paid?", "--limit", "1", "--json").json

    assert value["hits"][0]["content"] == "Invoices are due within thirty days"
    assert "embed" not in hiermem("recall", "bills").err
