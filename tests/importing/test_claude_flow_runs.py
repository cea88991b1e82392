"""Patterns, sessions and steps of claude-flow: records of their own, imported once."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from hiermem_core import import_memories
from hiermem_core.errors import ConflictError

START = 1796048835000
AT = datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)

LATER = (
    (
        "CREATE TABLE patterns (id TEXT PRIMARY KEY, name TEXT, pattern_type TEXT, condition TEXT,"
        " action TEXT, description TEXT, confidence REAL, success_count INTEGER,"
        " failure_count INTEGER, tags TEXT, metadata TEXT, created_at INTEGER, updated_at INTEGER)"
    ),
    (
        "CREATE TABLE trajectories (id TEXT PRIMARY KEY, session_id TEXT, status TEXT,"
        " verdict TEXT, task TEXT, context TEXT, total_steps INTEGER, started_at INTEGER,"
        " ended_at INTEGER)"
    ),
    (
        "CREATE TABLE trajectory_steps (id INTEGER PRIMARY KEY, trajectory_id TEXT,"
        " step_number INTEGER, action TEXT, observation TEXT, reward REAL, metadata TEXT,"
        " created_at INTEGER)"
    ),
    (
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, state TEXT, status TEXT, project_path TEXT,"
        " created_at INTEGER, updated_at INTEGER)"
    ),
)
PATTERN = "INSERT INTO patterns VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
TRAJECTORY = "INSERT INTO trajectories VALUES (?,?,?,?,?,?,?,?,?)"
STEP = "INSERT INTO trajectory_steps VALUES (?,?,?,?,?,?,?,?)"
SESSION = "INSERT INTO sessions VALUES (?,?,?,?,?,?)"
BANK = (
    "CREATE TABLE task_trajectories (task_id TEXT, agent_id TEXT, query TEXT,"
    " trajectory_json TEXT, started_at TEXT, ended_at TEXT, judge_label TEXT, judge_conf REAL,"
    " matts_run_id TEXT)"
)
TASK = "INSERT INTO task_trajectories VALUES (?,?,?,?,?,?,?,?,?)"


def pattern(pattern_id, name, **facts):
    given = {"confidence": 0.8, "wins": 3, "losses": 1, "tags": '["db"]'} | facts
    return (
        *(pattern_id, name, "fix", "it times out", "retry", None, given["confidence"]),
        *(given["wins"], given["losses"], given["tags"], None, START, START + 1000),
    )


def later(place, *, steps=((7, 2, "leap"), (3, 1, "look")), patterns=()):
    """Write a database as v3 does."""
    return place.database(
        ".swarm/memory.db",
        *LATER,
        rows=[
            (PATTERN, [pattern("p1", "retry"), *patterns]),
            (
                TRAJECTORY,
                [("t1", "s1", "failed", "failure", "mend", '{"n": 1}', 2, START, START + 9000)],
            ),
            (
                STEP,
                [(i, "t1", n, action, '{"ok": true}', 0.5, "{}", START) for i, n, action in steps],
            ),
            (SESSION, [("s1", '{"goal": "ship"}', "active", "/src", START, START + 5000)]),
        ],
    )


def runs_of(tenant):
    sessions = sorted(tenant.sessions(), key=lambda session: session.id)
    return tenant.patterns.list(), sessions, [tenant.session(s.id).steps() for s in sessions]


def test_patterns_trajectories_and_sessions_of_v3_arrive(place):
    later(place)

    report = place.load()

    patterns, sessions, steps = runs_of(place.tenant)
    assert report.by_kind == {"pattern": 1, "session": 2, "step": 2}
    assert (report.imported, report.status, report.exit_code) == (5, "complete", 0)
    (retry,) = patterns
    assert (retry.name, retry.confidence, retry.uses, retry.created_at) == ("retry", 0.8, 4, AT)
    assert retry.data == {"pattern_type": "fix", "condition": "it times out", "action": "retry"}
    assert [(one.id, one.status, one.started_at) for one in sessions] == [
        ("s1", "active", AT),
        ("t1", "failed", AT),
    ]
    assert sessions[0].data == {"state": {"goal": "ship"}, "project_path": "/src"}
    assert sessions[1].data == {
        "session_id": "s1",
        "verdict": "failure",
        "task": "mend",
        "context": {"n": 1},
        "total_steps": 2,
    }
    assert (sessions[1].ended_at - AT).total_seconds() == 9
    assert [(step.step, step.action, step.reward) for step in steps[1]] == [
        (1, "look", 0.5),
        (2, "leap", 0.5),
    ]
    assert {(step.next_state["ok"], step.created_at) for step in steps[1]} == {(True, AT)}


def test_a_pattern_of_a_source_is_found_by_what_it_says(place):
    later(place)
    place.load()
    place.tenant.memory.wait_for_index()

    found = place.tenant.patterns.find("what if it times out")

    assert [hit.pattern.name for hit in found] == ["retry"]
    entry = place.entries()["patterns", "retry"]
    assert (entry.type, entry.tags) == ("procedural", ("db",))
    assert entry.metadata["import"]["format"] == "claude-flow/v3"


def test_runs_are_imported_once_and_a_dry_run_tells_the_same(place):
    later(place)

    rehearsal = place.load(dry_run=True)
    before = runs_of(place.tenant)
    report = place.load()
    stored = runs_of(place.tenant)
    again = place.load()

    assert before == ([], [], [])
    assert (rehearsal.imported, rehearsal.by_kind) == (report.imported, report.by_kind)
    assert again.reasons == {"unchanged": 5}
    assert runs_of(place.tenant) == stored


def test_small_batches_and_steps_before_their_session_give_the_same(place):
    path = later(place)
    place.load()
    stored = runs_of(place.tenant)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE kept AS SELECT * FROM trajectories")
        connection.execute("DROP TABLE trajectories")
        connection.execute(LATER[1])
        connection.execute("INSERT INTO trajectories SELECT * FROM kept")
        connection.execute("DROP TABLE kept")
    other = place.memory.tenant("bob")

    report = import_memories(place.folder, other, batch_size=1)

    assert (report.imported, report.skipped) == (5, 0)
    assert runs_of(other) == stored


def test_a_source_that_grew_has_its_new_steps_appended(place):
    path = later(place)
    place.load()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(STEP, (9, "t1", 3, "land", None, None, None, START))

    report = place.load()

    assert (report.imported, report.reasons) == (1, {"unchanged": 5})
    steps = place.tenant.session("t1").steps()
    assert [(step.step, step.action) for step in steps] == [(1, "look"), (2, "leap"), (3, "land")]


def test_i37_what_was_changed_since_is_a_conflict(place):
    later(place)
    place.load()
    place.tenant.patterns.reinforce("retry", success=False)
    place.tenant.session("t1").end("completed")
    changed = runs_of(place.tenant)

    report = place.load()

    assert runs_of(place.tenant) == changed
    assert report.reasons == {"conflict": 2, "unchanged": 3}
    with pytest.raises(ConflictError):
        place.load(on_conflict="fail")
    assert place.load(on_conflict="overwrite").updated == 2
    assert place.tenant.patterns.get("retry").confidence == 0.8
    assert place.tenant.session("t1").get().status == "failed"


def test_steps_are_not_mixed_into_another_session_of_the_name(place):
    later(place)
    place.tenant.session("t1").log("something else")

    report = place.load()

    assert [step.action for step in place.tenant.session("t1").steps()] == ["something else"]
    assert report.reasons == {"conflict": 3}


def test_a_pattern_whose_name_is_taken_bears_its_id_too(place):
    later(place, patterns=[pattern("p2", "retry", confidence=0.2, tags=None)])
    mine = place.tenant.patterns.learn("retry", {"mine": True})

    report = place.load()
    again = place.load()

    names = {one.name: one.confidence for one in place.tenant.patterns.list()}
    assert names == {"retry": 0.5, "retry#p1": 0.8, "retry#p2": 0.2}
    assert place.tenant.patterns.get("retry") == mine
    assert report.imported == 5 + 1
    assert again.reasons == {"unchanged": 6}


def test_two_patterns_of_a_name_both_arrive(place):
    newer = list(pattern("p2", "retry"))
    newer[3], newer[-1] = "it hangs", START + 9000
    later(place, patterns=[tuple(newer)])

    place.load()
    again = place.load()

    assert {one.name for one in place.tenant.patterns.list()} == {"retry", "retry#p1"}
    assert place.tenant.patterns.get("retry").data["condition"] == "it hangs"
    assert again.reasons == {"unchanged": 6}


@pytest.mark.parametrize(("given", "kept"), [(1.5, 1.0), (-2, 0.0), (None, 0.5), ("x", 0.5)])
def test_a_confidence_out_of_range_is_clamped_with_a_warning(place, given, kept):
    place.database(
        ".swarm/memory.db", *LATER, rows=[(PATTERN, [pattern("p1", "retry", confidence=given)])]
    )

    report = place.load()

    assert place.tenant.patterns.get("retry").confidence == kept
    assert report.warnings == (("confidence_clamped",) if given in {1.5, -2} else ())


def test_counts_beyond_what_a_store_can_count_to_are_cut(place):
    most = 2**63 - 1
    place.database(
        ".swarm/memory.db",
        *LATER,
        rows=[(PATTERN, [pattern("p1", "retry", wins=most, losses=most)])],
    )

    assert place.load().imported == 1
    assert place.tenant.patterns.get("retry").uses == 2**62


def test_trajectories_of_the_bank_are_sessions_with_the_steps_they_list(place):
    steps = [
        {"action": "search", "state": {"q": "x"}, "observation": ["hit"], "reward": 1},
        {"tool": "edit", "thought": "mend it", "result": "done"},
        {"odd": [1]},
    ]
    place.database(
        ".swarm/memory.db",
        BANK,
        rows=[
            (
                TASK,
                [
                    (
                        *("a", "g", "mend", json.dumps(steps), "2026-11-30 14:27:15"),
                        *("2026-11-30 14:30:00", "Failure", 0.9, None),
                    ),
                    ("b", None, "q", '{"raw": 1}', None, None, None, None, None),
                    ("c", None, "q", "no json", None, None, "Success", None, "m"),
                ],
            )
        ],
    )

    report = place.load()
    again = place.load()

    _, sessions, logged = runs_of(place.tenant)
    assert report.by_kind == {"session": 3, "step": 3}
    assert [(one.id, one.status) for one in sessions] == [
        ("a", "failed"),
        ("b", "active"),
        ("c", "completed"),
    ]
    assert sessions[0].data == {
        "agent_id": "g",
        "query": "mend",
        "judge_label": "Failure",
        "judge_conf": 0.9,
    }
    assert sessions[1].data["trajectory"] == {"raw": 1}
    assert sessions[2].data["trajectory"] == "no json"
    assert [(s.action, s.state, s.reward, s.next_state) for s in logged[0]] == [
        ("search", {"q": "x"}, 1.0, ["hit"]),
        ("edit", {"thought": "mend it"}, None, "done"),
        ('{"odd":[1]}', None, None, None),
    ]
    assert {step.created_at for step in logged[0]} == {AT}
    assert again.reasons == {"unchanged": 6}


def test_bad_records_never_stop_the_others(place):
    later(
        place,
        steps=[(1, 1, "x"), (2, 2, "")],
        patterns=[pattern("p2", None)],
    )
    with closing(sqlite3.connect(place.folder / ".swarm/memory.db")) as connection, connection:
        connection.execute(SESSION, (None, "{}", "active", "/src", START, START))
        connection.execute(SESSION, ("s2", b"\xff", "active", "/src", START, START))

    report = place.load()

    assert report.reasons == {"missing_field": 3, "not_text": 1}
    assert report.imported == 4
    assert report.exit_code == 1


def test_a_step_without_its_session_starts_one(place):
    place.database(
        ".swarm/memory.db",
        *LATER,
        rows=[(STEP, [(1, "lost", 1, "look", "said", None, None, START)])],
    )

    report = place.load()

    session = place.tenant.session("lost").get()
    assert (report.imported, session.status, session.started_at) == (1, "active", AT)
    assert place.load().reasons == {"unchanged": 1}


def test_patterns_stay_in_their_namespace_below_whatever_prefix(place):
    later(place)

    place.load(namespace="from/flow")

    assert [one.name for one in place.tenant.patterns.list()] == ["retry"]


def test_i40_runs_of_one_tenant_are_not_anothers(place):
    later(place)
    place.load()
    other = place.memory.tenant("bob")

    assert runs_of(other) == ([], [], [])
    assert import_memories(place.folder, other).imported == 5
    assert runs_of(other) == runs_of(place.tenant)


def test_patterns_of_a_hive_and_of_the_model_bank_are_patterns_too(place):
    place.database(
        ".hive-mind/hive.db",
        "CREATE TABLE neural_patterns (id TEXT, pattern_type TEXT, pattern_data TEXT,"
        " confidence REAL, usage_count INTEGER, created_at TEXT)",
        rows=[
            (
                "INSERT INTO neural_patterns VALUES (?,?,?,?,?,?)",
                [("n1", "routing", '{"to": "queen"}', 0.7, 3, "2026-11-30 14:27:15")],
            )
        ],
    )
    place.database(
        ".swarm/memory.db",
        "CREATE TABLE patterns (id INTEGER, problem TEXT, solution TEXT, rationale TEXT,"
        " confidence REAL, success_rate REAL, domain TEXT, tags TEXT, created_at INTEGER)",
        rows=[
            (
                "INSERT INTO patterns VALUES (?,?,?,?,?,?,?,?,?)",
                [(4, "it hangs", "kill it", None, 0.6, 0.9, "ops", None, START)],
            )
        ],
    )

    report = place.load()

    found = {one.name: (one.data, one.confidence, one.uses) for one in runs_of(place.tenant)[0]}
    assert report.by_kind == {"pattern": 2}
    assert found == {
        "routing/n1": ({"to": "queen"}, 0.7, 3),
        "ops/4": (
            {
                "problem": "it hangs",
                "solution": "kill it",
                "success_rate": 0.9,
                "domain": "ops",
            },
            0.6,
            0,
        ),
    }
    assert place.entries()["patterns", "ops/4"].content == "it hangs\n\nkill it"
    assert place.load().reasons == {"unchanged": 2}
