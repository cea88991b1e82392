"""Patterns, sessions and steps in exports and backups."""

from __future__ import annotations

import json

import pytest
from exporting.conftest import BACKENDS, body_of, opened

from hiermem_core import restore_backup
from hiermem_core.errors import ConflictError


def run(tenant):
    """Give a tenant a pattern, and a session with two steps."""
    tenant.patterns.learn("retry", {"then": ["wait", None]}, text="Wait, then try.", user_id="u")
    tenant.patterns.reinforce("retry", success=True)
    session = tenant.session("s1")
    session.start({"task": "größe"}, user_id="u")
    session.log("look", state={}, reward=0.0, next_state=False)
    session.log("leap")
    session.end("failed")
    tenant.session("empty").start()


def runs_of(tenant):
    """Return the patterns, sessions and steps of a tenant."""
    sessions = tenant.sessions()
    steps = [tenant.session(session.id).steps() for session in sessions]
    return tenant.patterns.list(), sessions, steps


@pytest.fixture
def alice(hiermem):
    tenant = hiermem.tenant("alice")
    run(tenant)
    return tenant


@pytest.fixture
def export(alice, tmp_path):
    alice.export(tmp_path / "alice.jsonl")
    return tmp_path / "alice.jsonl"


@pytest.mark.parametrize("backend", BACKENDS)
def test_i53_patterns_sessions_and_steps_come_back_on_every_backend(export, alice, backend):
    with opened(backend=backend) as other:
        bob = other.tenant("bob")

        report = bob.import_export(export)
        again = bob.import_export(export)

        assert runs_of(bob) == runs_of(alice)
        assert {kind: dict(n) for kind, n in report.counts.items()} == {
            "pattern": {"imported": 1},
            "session": {"imported": 2},
            "step": {"imported": 2},
        }
        assert again.reasons == {"unchanged": 5}
        assert (again.status, again.exit_code) == ("complete", 0)
        assert bob.session("s1").log("look again").step == 3
        assert runs_of(other.tenant("alice")) == ([], [], [])


def test_the_lines_of_runs_can_be_read_by_anyone(export):
    lines = [json.loads(line) for line in export.read_text().splitlines()]

    assert [line["kind"] for line in lines] == [
        *("header", "entry", "session", "session", "step", "step", "end")
    ]
    assert lines[1]["pattern"]["confidence"] == 0.55
    assert {name: lines[4].get(name) for name in ("step", "action", "state", "reward")} == {
        "step": 1,
        "action": "look",
        "state": {},
        "reward": 0.0,
    }
    assert lines[4]["next_state"] is False
    assert "state" not in lines[5]
    counts = {name: lines[-1][name] for name in ("entries", "patterns", "sessions", "steps")}
    assert counts == {"entries": 1, "patterns": 1, "sessions": 2, "steps": 2}


def test_a_rehearsed_import_tells_the_same_and_stores_nothing(export):
    with opened() as other:
        bob = other.tenant("bob")

        rehearsal = bob.import_export(export, dry_run=True)

        assert runs_of(bob) == ([], [], [])
        assert rehearsal.counts == bob.import_export(export).counts


def test_what_was_changed_since_is_a_conflict_that_can_be_overwritten(export, alice):
    before = runs_of(alice)
    alice.patterns.reinforce("retry", success=False)
    alice.session("s1").start({"task": "other"})
    changed = runs_of(alice)

    report = alice.import_export(export)

    assert runs_of(alice) == changed
    assert report.reasons == {"conflict": 2, "unchanged": 3}
    with pytest.raises(ConflictError):
        alice.import_export(export, on_conflict="fail")
    overwritten = alice.import_export(export, on_conflict="overwrite")
    assert overwritten.updated == 2
    assert runs_of(alice) == before


def test_a_session_of_other_steps_stays_as_it_is(export):
    with opened() as other:
        bob = other.tenant("bob")
        bob.session("s1").log("something else")

        report = bob.import_export(export)

        assert [step.action for step in bob.session("s1").steps()] == ["something else"]
        assert report.reasons == {"conflict": 3}
        assert report.counts["session"] == {"skipped": 1, "imported": 1}


def test_an_import_goes_on_in_a_session_that_lacks_steps(export, alice):
    with opened() as other:
        bob = other.tenant("bob")
        bob.import_export(export, batch_size=1)
        with other._services.database.write() as connection:
            connection.exec_driver_sql("DELETE FROM trajectories WHERE step = 2")

        report = bob.import_export(export)

        assert report.imported == 1
        assert runs_of(bob) == runs_of(alice)


def test_patterns_stay_in_their_namespace_below_whatever_prefix(export):
    with opened() as other:
        bob = other.tenant("bob")

        bob.import_export(export, namespace="from/alice")

        assert [one.name for one in bob.patterns.list()] == ["retry"]


def test_a_backup_holds_patterns_sessions_and_steps(tmp_path):
    with opened(tmp_path / "memory") as memory:
        run(memory.tenant("alice"))
        before = runs_of(memory.tenant("alice"))
        memory.tenant("alice").export(tmp_path / "before.jsonl")
        report = memory.backup(tmp_path / "backup")
        memory.tenant("alice").forget(everything=True)

    restore_backup(tmp_path / "backup", tmp_path / "memory", replace=True)

    with opened(tmp_path / "memory") as memory:
        assert runs_of(memory.tenant("alice")) == before
        memory.tenant("alice").export(tmp_path / "after.jsonl")
    assert body_of(tmp_path / "before.jsonl") == body_of(tmp_path / "after.jsonl")
    assert {name: report.counts[name] for name in ("patterns", "sessions", "steps")} == {
        "patterns": 1,
        "sessions": 2,
        "steps": 2,
    }
