"""Notes on the command line: printing, learning and clearing them."""

from __future__ import annotations

import sys

import pytest

from hiermem_core import HierMem
from hiermem_core.displays.note_wording import ranges_of
from hiermem_core.testing.contracts.samples import asked_and_answered

MODELS = """
from hiermem_core.testing import ScriptedModel

GOOD = '{"summary": "They plan a trip.", "facts": [{"text": "Ada flies", "seqs": [1, 2]}]}'
good = ScriptedModel([GOOD])
failing = ScriptedModel([RuntimeError("no network")])
"""


@pytest.fixture
def models(tmp_path, environment, monkeypatch):
    """Put a module with chat models where the commands run."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_models", raising=False)
    (tmp_path / "my_models.py").write_text(MODELS, encoding="utf-8")
    yield
    sys.modules.pop("my_models", None)


@pytest.fixture
def threads(tmp_path, environment):
    """Store a thread that is due for two tenants, and one that is not."""
    with HierMem.open(tmp_path / "memory") as hiermem:
        for tenant in ("alice", "bob"):
            hiermem.tenant(tenant).thread("trip").append(asked_and_answered("abc"))
        hiermem.tenant("alice").thread("short").append(asked_and_answered("a"))


def test_learning_brings_the_notes_of_every_due_thread_up_to_date(hiermem, models, threads):
    before = hiermem("health", "--json").json["queue_depth"]
    run = hiermem("learn", "--model", "my_models:good")
    notes = hiermem("notes", "trip", "--json")
    again = hiermem("learn", "--model", "my_models:good")

    assert before == 0  # without a chat model nothing is ever due
    assert run.code == 0
    assert [line.split() for line in run.out.splitlines()[1:]] == [
        ["alice", "trip", "6", "1"],
        ["bob", "trip", "6", "1"],
    ]
    assert notes.json == {
        "tenant": "alice",
        "thread": "trip",
        "covered": 6,
        "newest": 6,
        "summary": "They plan a trip.",
        "facts": [{"text": "Ada flies", "turns": [1, 2], "confirmed": 2}],
    }
    assert (again.code, again.out, again.err) == (0, "", "no thread is due\n")


def test_learning_of_one_tenant_leaves_the_others_due(hiermem, models, threads, monkeypatch):
    monkeypatch.setenv("HIERMEM_CHAT_MODEL", "my_models:good")

    run = hiermem("learn", "--tenant", "bob", "--json")

    assert run.json["due"] == 1
    assert [event["tenant_id"] for event in run.json["learned"]] == ["bob"]
    assert "has no notes" in hiermem("notes", "trip").err


def test_what_fails_is_told_and_stays_due(hiermem, models, threads):
    failed = hiermem("learn", "--model", "my_models:failing")
    learned = hiermem("learn", "--model", "my_models:good", "--json")

    assert failed.code == 1
    assert "thread trip of alice stays due: RuntimeError (call)" in failed.out
    assert "2 updates failed; nothing is lost" in failed.out
    assert learned.json["due"] == 2


@pytest.mark.parametrize(
    "path", ["nowhere:model", "my_models:none", "my_models", ":", "json:dumps:x"]
)
def test_a_path_that_leads_nowhere_is_wrong_use(hiermem, models, threads, path):
    run = hiermem("learn", "--model", path)

    assert run.code == 2
    assert "leads nowhere" in run.err


def test_no_model_at_all_is_wrong_use(hiermem, threads):
    run = hiermem("learn")

    assert run.code == 2
    assert "HIERMEM_CHAT_MODEL" in run.err


def test_notes_read_as_text_and_stand_in_the_context(hiermem, models, threads):
    hiermem("learn", "--model", "my_models:good")

    notes = hiermem("notes", "trip")
    context = hiermem("context", "trip", "--no-recall")

    assert notes.out.splitlines()[0] == "the notes cover turns up to 6 of 6"
    assert "They plan a trip." in notes.out
    assert "Ada flies  1-2" in notes.out
    assert "They plan a trip." in context.out


@pytest.mark.parametrize(
    ("seqs", "told"),
    [((), ""), ((4,), "4"), ((1, 2, 3), "1-3"), ((1, 3, 4, 9), "1, 3-4, 9"), ((2, 4), "2, 4")],
)
def test_the_turns_of_a_fact_read_as_ranges(seqs, told):
    assert ranges_of(seqs) == told


def test_reset_clears_the_notes_and_keeps_the_turns(hiermem, models, threads):
    hiermem("learn", "--model", "my_models:good")

    run = hiermem("reset", "trip", "--yes")
    notes = hiermem("notes", "trip", "--json").json
    again = hiermem("learn", "--model", "my_models:good", "--json").json

    assert run.out == "thread trip: cleared: 1 summary, 1 fact; its turns stay\n"
    assert (notes["covered"], notes["summary"], notes["facts"]) == (6, "", [])
    assert len(hiermem("show", "trip", "--json").json["turns"]) == 6
    assert again["due"] == 0


@pytest.mark.parametrize("words", [("notes",), ("reset", "--yes"), ("reset", "--dry-run")])
def test_a_thread_that_is_not_there_is_told(hiermem, threads, words):
    assert hiermem(*words, "nowhere").code == 1
