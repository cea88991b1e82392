"""The demo: the main job on a real conversation."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hiermem_core.cli.demo_recall import Question, furthest_back
from hiermem_core.cli.demo_steps import BUDGETS

EXAMPLE = Path(__file__).parents[2] / "examples" / "demo.py"
FACTS = EXAMPLE.with_name("conversation_facts.json")

WITHOUT_FRAMEWORKS = f"""
import runpy, sys
sys.modules["langchain_core"] = sys.modules["llama_index"] = None
runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")
"""


def test_the_demo_runs_on_the_conversation_that_comes_with_it(hiermem):
    run = hiermem("demo")

    assert run.code == 0
    steps = re.findall(r"^(\d)\. \w", run.out, re.MULTILINE)
    assert steps == ["1", "2", "3", "4", "5", "6"]
    assert "failed 0 of" in run.out
    assert "turns_trimmed" in run.out


def test_every_budget_of_the_demo_holds(hiermem):
    value = hiermem("demo", "--json").json

    assert [context["budget"] for context in value["contexts"]] == list(BUDGETS)
    for context in value["contexts"]:
        assert 0 < context["tokens"] <= context["budget"]
        assert context["messages"][-1]["content"].endswith(value["question"])


def test_the_demo_asks_every_question_without_and_with_recall(hiermem):
    questions = json.loads(FACTS.read_text(encoding="utf-8"))

    recall = hiermem("demo", "--json").json["recall"]

    without, with_recall = recall["found"]["window_only"], recall["found"]["with_recall"]
    assert recall["questions"] == len(questions)
    assert recall["evidence"] == sum(len(question["evidence"]) for question in questions)
    assert without["evidence"] < with_recall["evidence"] <= recall["evidence"]
    assert without["some"] < with_recall["some"] <= recall["questions"]
    assert recall["by"] == "keywords"


def test_the_demo_shows_the_question_answered_the_longest_ago_whatever_it_finds(hiermem):
    example = hiermem("demo", "--json").json["example"]

    assert example["question"] == "What is Tobias allergic to?"
    assert example["evidence"] == [2]
    assert example["context"]["tokens"] <= example["context"]["budget"] == 1000
    is_held = "latex" in json.dumps(example["context"]["messages"])
    assert example["held"] == ([2] if is_held else [])


def test_the_rule_that_chooses_the_question_looks_at_its_newest_evidence():
    questions = [
        Question("late", "", frozenset({"a", "d"})),
        Question("early", "", frozenset({"b", "c"})),
    ]

    assert furthest_back(questions, {"a": 1, "b": 2, "c": 3, "d": 4}).text == "early"


def test_without_an_embedder_the_demo_says_how_to_get_one(hiermem):
    assert 'pip install "hiermem-core[embed]"' in hiermem("demo").out


def test_with_an_embedder_the_demo_finds_by_meaning_too(embedder, hiermem):
    value = hiermem("demo", "--json").json

    assert value["recall"]["by"] == "keywords and meaning"
    assert value["import"]["vectors"]["pending"] == 0


def test_the_demo_leaves_nothing_behind(hiermem, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    hiermem("demo")

    assert not (tmp_path / "memory").exists()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_demo_takes_a_conversation_of_ones_own(hiermem, conversation):
    path = conversation(*[{"role": "user", "content": "long " * 5000}] * 2)

    run = hiermem("demo", "--file", path)

    assert run.code == 0
    assert "over_budget" in run.out


def test_a_budget_that_cannot_hold_is_told_and_ends_nothing(hiermem, conversation):
    path = conversation(
        {"role": "system", "content": "rule " * 2000}, {"role": "user", "content": "x"}
    )

    run = hiermem("demo", "--file", path)

    assert run.code == 0
    assert "500: " in run.out
    assert "raise the budget" in run.out


@pytest.mark.parametrize(("content", "code"), [("", 3), ("no JSON\n", 1)])
def test_a_file_without_a_conversation_ends_the_demo_after_its_report(
    hiermem, tmp_path, content, code
):
    (tmp_path / "talk.jsonl").write_text(content)

    run = hiermem("demo", "--file", "talk.jsonl")

    assert run.code == code
    assert run.out.startswith("1. Import talk.jsonl")
    assert "2. Read back" not in run.out


def test_a_missing_conversation_says_how_to_name_one(hiermem, monkeypatch, tmp_path):
    monkeypatch.setattr("hiermem_core.cli.demo._PACKAGE", tmp_path / "lib" / "hiermem_core")

    run = hiermem("demo")

    assert run.code == 2
    assert "name one by --file" in run.err


def test_the_conversation_of_the_wheel_is_found(hiermem, monkeypatch, conversation, tmp_path):
    (tmp_path / "examples").mkdir()
    conversation({"role": "user", "content": "hi"}, name="examples/conversation.jsonl")
    monkeypatch.setattr("hiermem_core.cli.demo._PACKAGE", tmp_path)

    assert "imported 1," in hiermem("demo").out


def test_the_example_runs_in_both_frameworks():
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.count("messages fit 1000 tokens") == 2
    assert run.stdout.count("the exhibition opens on the second of May") == 3
    assert "holds what was said at first" in run.stdout
    assert "recalled for 'What is Tobias allergic to?'" in run.stdout


def test_the_example_runs_without_a_framework_and_says_what_to_install():
    command = [sys.executable, "-c", WITHOUT_FRAMEWORKS]

    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (run.returncode, run.stderr) == (0, "")
    assert 'pip install "hiermem-core[langchain]"' in run.stdout
    assert 'pip install "hiermem-core[llamaindex]"' in run.stdout
