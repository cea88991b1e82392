"""Imports where the core refuses records: by its redactor, by the tenant's quota."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from importing.test_claude_flow_runs import LATER, PATTERN, SESSION, START, STEP, pattern

from hiermem_core import HierMem, Quota, Reject
from hiermem_core.importing import import_memories
from hiermem_core.testing.contracts.redacting import CARD, files_with, without_cards


def rejecting(text, context):
    return Reject("holds a secret") if "secret" in text else without_cards(text, context)


@pytest.fixture
def opened(tmp_path):
    handles = []

    def open_one(name="memory", **options):
        handles.append(HierMem.open(tmp_path / name, redactor=rejecting, **options))
        return handles[-1].tenant("alice")

    yield open_one
    for handle in handles:
        handle.close()


def entries(*values):
    listed = [
        {"key": f"k{n}", "value": value, "namespace": "n", "timestamp": 1_700_000_000_000 + n}
        for n, value in enumerate(values)
    ]
    return json.dumps({"n": listed})


@pytest.mark.parametrize("backend", ["in_memory", "hybrid"])
def test_i39_of_entries_those_refused_are_failed_with_reasons_and_the_rest_is_stored(
    opened, source, backend
):
    values = ["one", "the secret", f"paid {CARD}", "four", "five", "six"]
    path = source(entries(*values), "memory-store.json")
    alice = opened(quota=Quota(max_entries=3), backend=backend)

    report = import_memories(path, alice)

    failed = [(item.ref, item.outcome, item.reason) for item in report.items]
    assert failed == [
        ("k1", "failed", "rejected_by_redactor"),
        ("n/k4", "failed", "quota_exceeded"),
        ("n/k5", "failed", "quota_exceeded"),
    ]
    assert (report.imported, report.failed, report.exit_code) == (3, 3, 1)
    assert {hit.content for hit in alice.memory.search()} == {"one", "paid [card]", "four"}
    again = import_memories(path, alice)
    assert (again.imported, again.reasons["unchanged"], again.failed) == (0, 3, 3)


@pytest.mark.parametrize("dry_run", [False, True])
def test_i39_of_turns_those_refused_are_failed_with_reasons_and_the_rest_is_stored(
    opened, source, dry_run
):
    contents = ["one", "a secret", f"paid {CARD}", "four"]
    path = source([{"role": "user", "content": content} for content in contents])
    alice = opened()

    report = import_memories(path, alice, dry_run=dry_run)

    assert [(item.ref, item.reason) for item in report.items] == [
        ("line 2", "rejected_by_redactor")
    ]
    assert report.imported == 3
    if not dry_run:
        said = [turn.content for turn in alice.thread("talk").turns()]
        assert said == ["one", "paid [card]", "four"]
        assert import_memories(path, alice, dry_run=True).reasons["unchanged"] == 3


def test_i39_turns_beyond_the_quota_are_failed(opened, source):
    path = source([{"role": "user", "content": "x" * 10} for _ in range(5)])
    alice = opened(quota=Quota(writes_per_minute=3))

    report = import_memories(path, alice)

    assert (report.imported, report.reasons) == (3, {"quota_exceeded": 2})


def test_i39_of_a_database_named_by_a_url_those_refused_are_failed(opened, tmp_path):
    with closing(sqlite3.connect(tmp_path / "chat.db")) as tables, tables:
        tables.execute("CREATE TABLE message_store (id INTEGER, session_id TEXT, message TEXT)")
        said = ["one", "a secret", f"paid {CARD}", "four", "five"]
        dumps = [json.dumps({"type": "human", "data": {"content": one}}) for one in said]
        rows = [(n, "talk", dump) for n, dump in enumerate(dumps)]
        tables.executemany("INSERT INTO message_store VALUES (?, ?, ?)", rows)
    alice = opened(quota=Quota(writes_per_minute=3))

    report = import_memories(f"sqlite:///{tmp_path}/chat.db", alice, format="langchain/sql")

    assert report.reasons == {"rejected_by_redactor": 1, "quota_exceeded": 1}
    turns = alice.thread("talk").turns()
    assert [turn.content for turn in turns] == ["one", "paid [card]", "four"]


def test_i39_of_patterns_sessions_and_steps_those_refused_are_failed(place, tmp_path):
    place.database(
        ".swarm/memory.db",
        *LATER,
        rows=[
            (
                PATTERN,
                [pattern("p1", f"pay {CARD}"), pattern("p2", "a secret"), pattern("p3", "third")],
            ),
            (
                STEP,
                [
                    (n, "t1", n, action, '{"is": "' + CARD + '"}', 0.5, "{}", START)
                    for n, action in enumerate(["look", "tell a secret", f"pay {CARD}"], 1)
                ],
            ),
            (
                SESSION,
                [
                    (name, state, "active", "/src", START, START)
                    for name, state in (("s1", f'{{"{CARD}": "{CARD}"}}'), ("s2", "the secret"))
                ],
            ),
        ],
    )
    with HierMem.open(
        tmp_path / "refusing", redactor=rejecting, quota=Quota(max_entries=1)
    ) as memory:
        alice = memory.tenant("alice")

        report = import_memories(place.folder, alice)

        assert sorted((one.kind, one.reason) for one in report.items) == [
            ("pattern", "quota_exceeded"),
            ("pattern", "rejected_by_redactor"),
            ("session", "rejected_by_redactor"),
            ("step", "rejected_by_redactor"),
        ]
        assert [one.name for one in alice.patterns.list()] == ["pay [card]"]
        assert [step.action for step in alice.session("t1").steps()] == ["look", "pay [card]"]
        assert {one.id for one in alice.sessions()} == {"s1", "t1"}
    assert files_with(tmp_path / "refusing", CARD) == []


def test_an_export_of_before_the_redactor_is_redacted_when_it_is_taken_in(opened, tmp_path):
    with HierMem.open(tmp_path / "before") as before:
        alice = before.tenant("alice")
        alice.remember(f"paid {CARD}", key="k")
        alice.remember("the secret")
        alice.thread("t").append([{"role": "user", "content": f"said {CARD}"}])
        alice.thread("t").append([{"role": "user", "content": "said the secret"}])
        alice.export(tmp_path / "export.jsonl")
    alice = opened("after")

    report = alice.import_export(tmp_path / "export.jsonl")

    assert report.reasons == {"rejected_by_redactor": 2}
    assert [hit.content for hit in alice.memory.search()] == ["paid [card]"]
    assert [turn.content for turn in alice.thread("t").turns()] == ["said [card]"]
    assert alice.import_export(tmp_path / "export.jsonl").imported == 0
    assert files_with(tmp_path / "after", CARD) == []


def test_an_export_is_taken_in_up_to_the_quota(opened, tmp_path):
    with HierMem.open(tmp_path / "before") as before:
        before.tenant("alice").memory.bulk_insert(["one", "two", "three"])
        said = [{"role": "user", "content": "x" * 5} for _ in range(4)]
        before.tenant("alice").thread("t").append(said)
        before.tenant("alice").export(tmp_path / "export.jsonl")
    alice = opened("after", quota=Quota(max_entries=2, max_bytes=28))

    report = alice.import_export(tmp_path / "export.jsonl", batch_size=2)

    assert report.reasons == {"quota_exceeded": 3}
    assert alice.memory.stats().entries == 2
    assert [turn.seq for turn in alice.thread("t").turns()] == [1, 2]
