"""Listing patterns and sessions, and printing steps."""

from __future__ import annotations

import pytest

from hiermem_core import HierMem


@pytest.fixture
def stored(hiermem, environment):
    """Have two patterns, and two sessions of which one has steps."""
    with HierMem.open() as memory:
        tenant = memory.tenant("alice")
        tenant.patterns.learn("retry", {"when": "a call times out"}, confidence=0.9)
        tenant.patterns.learn("split", {"when": "a file is large"})
        session = tenant.session("s1")
        session.log("search \x1b[31m", state="where?", reward=0.5, next_state={"hits": 2})
        session.log("open")
        session.end("failed")
        tenant.session("s2").start()
    return hiermem


def test_patterns_are_listed_the_most_confident_first(stored):
    run = stored("patterns")

    assert run.code == 0
    assert [line.split()[:3] for line in run.out.splitlines()] == [
        ["pattern", "confidence", "uses"],
        ["retry", "0.90", "0"],
        ["split", "0.50", "0"],
    ]
    assert [one["name"] for one in stored("patterns", "--json").json["patterns"]] == [
        "retry",
        "split",
    ]


def test_patterns_answer_a_question(stored):
    found = stored("patterns", "large file", "--json").json["patterns"]

    assert [one["name"] for one in found] == ["split"]
    assert found[0]["score"] > 0
    assert stored("patterns", "--min-confidence", "0.8", "--limit", "9", "--json").json["patterns"][
        0
    ]["data"] == {"when": "a call times out"}


def test_sessions_are_listed_and_the_steps_of_one_printed(stored):
    listed = stored("sessions", "--json").json["sessions"]
    failed = stored("sessions", "--status", "failed")
    steps = stored("sessions", "s1")

    assert {one["id"]: one["status"] for one in listed} == {"s1": "failed", "s2": "active"}
    assert "s1" in failed.out
    assert "s2" not in failed.out
    lines = steps.out.splitlines()
    assert lines[0].startswith("#1 ")
    assert lines[0].endswith("Z, reward 0.5")
    assert lines[1:4] == ["  saw where?", "  did search \\x1b[31m", '  got {"hits":2}']
    assert lines[5] == "  did open"
    assert [one["step"] for one in stored("sessions", "s1", "--json").json["steps"]] == [1, 2]


def test_what_is_not_there_is_said(hiermem, stored):
    assert stored("sessions", "none").code == 1
    assert stored("sessions", "--status", "done").code == 2
    assert stored("sessions", "s1", "--status", "failed").code == 2
    assert stored("patterns", "--min-confidence", "2").code == 2
    assert "no steps" in stored("sessions", "s2").err
    assert "no such patterns" in hiermem("patterns", "--tenant", "bob").err
    assert "no such sessions" in hiermem("sessions", "--tenant", "bob").err
    assert hiermem("sessions", "--tenant", "bob", "--quiet").err == ""
