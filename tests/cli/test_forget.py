"""Forgetting for good."""

from __future__ import annotations

import pytest

SENTINEL = "qzx7sentinel"


@pytest.fixture
def stored(hiermem, conversation, remember):
    """Have a thread and two entries, one of bob's."""
    lines = [
        {"role": "user", "content": f"turn {SENTINEL}"},
        {"role": "assistant", "content": "ok"},
    ]
    assert hiermem("import", conversation(*lines)).code == 0
    remember(f"fact {SENTINEL}", "--namespace", "secret", "--user", "bob")
    remember("stays", "--namespace", "open")
    return hiermem


def bytes_of(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        (("--namespace", "secret"), {"entries": 1, "turns": 0, "threads": 0}),
        (("--user", "bob"), {"entries": 1, "turns": 0, "threads": 0}),
        (("--thread", "talk"), {"entries": 0, "turns": 2, "threads": 1}),
        (("--everything",), {"entries": 2, "turns": 2, "threads": 1}),
    ],
)
def test_each_selector_forgets_what_it_says_and_a_dry_run_only_counts(stored, words, counts):
    rehearsal = stored("forget", *words, "--dry-run", "--json").json
    again = stored("forget", *words, "--dry-run", "--json").json
    receipt = stored("forget", *words, "--yes", "--json").json

    assert rehearsal["counts"] == again["counts"] == receipt["counts"]
    assert counts.items() <= receipt["counts"].items()
    assert (rehearsal["complete"], rehearsal["dry_run"]) == (False, True)
    assert receipt["complete"] is True


def test_several_ids_are_forgotten_at_once(stored, remember):
    ids = [remember(f"note {n}", "--namespace", "notes") for n in range(3)]
    words = [word for entry_id in ids for word in ("--id", entry_id)]

    run = stored("forget", *words, "--yes")

    assert run.code == 0
    assert ["entries", "3"] in [line.split() for line in run.out.splitlines()]
    assert "complete: " in run.out
    assert stored("list", "--namespace", "notes").out == ""


def test_what_is_forgotten_is_in_no_file(stored, tmp_path):
    before = bytes_of(tmp_path / "memory")

    assert stored("forget", "--everything", "--yes").code == 0

    assert SENTINEL.encode() in before
    assert SENTINEL.encode() not in bytes_of(tmp_path / "memory")


def test_forgetting_what_is_not_there_is_done_already(stored):
    run = stored("forget", "--thread", "nothing", "--yes")

    assert run.code == 0
    assert "nothing of it was stored" in run.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give exactly one of"),
        (("--thread", "talk", "--user", "bob"), "give exactly one of"),
        (("--thread", "talk", "--everything"), "give exactly one of"),
        (("--namespace", "a//b", "--yes"), "empty segment"),
    ],
)
def test_wrong_words_forget_nothing(stored, words, told):
    run = stored("forget", *words)

    assert run.code == 2
    assert told in run.err
    assert len(stored("list", "--json").json["entries"]) == 2


def test_another_tenants_things_stay(stored):
    assert stored("forget", "--everything", "--yes", "--tenant", "bob").code == 0

    assert len(stored("list", "--json").json["entries"]) == 2
    assert stored("show", "talk").code == 0
