"""Importing an export into a tenant who has something already."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest
from exporting.conftest import body_of, opened

from hiermem_core import (
    ClosedError,
    ConflictError,
    InvalidInputError,
    events,
)
from hiermem_core.testing import FakeEmbedder, FaultPlan
from hiermem_core.testing.faults import InjectedFault
from hiermem_core.tokens.counters import ApproximateCounter


@pytest.fixture
def bob():
    with opened() as other:
        yield other.tenant("bob")


def everything(tenant):
    infos = tenant.threads()
    turns = [tenant.thread(info.thread_id).turns() for info in infos]
    return list(tenant.memory.search(limit=1000)), infos, turns


def test_an_entry_edited_since_stays_or_is_replaced_or_stops_the_import(bob, export):
    bob.import_export(export)
    bob.memory.update("e1", content="likes coffee")

    skipped = bob.import_export(export)
    assert (skipped.reasons["conflict"], bob.memory.retrieve("e1").content) == (1, "likes coffee")

    with pytest.raises(ConflictError, match="1 records"):
        bob.import_export(export, on_conflict="fail")

    replaced = bob.import_export(export, on_conflict="overwrite")
    entry = bob.memory.retrieve("e1")
    assert (replaced.updated, entry.content, entry.version) == (1, "likes tea", 3)


def test_an_entry_deleted_since_is_imported_again_with_what_was_derived_from_it(bob, export):
    bob.import_export(export)
    bob.memory.delete("e1")

    assert bob.import_export(export).imported == 2
    assert bob.memory.retrieve("e1").content == "likes tea"


def test_a_key_that_another_entry_bears_is_a_conflict(bob, export):
    mine = bob.remember("likes water", namespace="profile/food", key="drink")

    assert bob.import_export(export).reasons["conflict"] == 1
    report = bob.import_export(export, on_conflict="overwrite")

    assert report.updated == 1
    assert bob.memory.retrieve(mine).content == "likes tea"
    assert bob.memory.retrieve("e1") is None


def test_id_and_key_of_two_entries_are_a_conflict_whatever_is_asked(bob, export):
    bob.remember("one", id="e1", namespace="profile/food")
    bob.remember("two", namespace="profile/food", key="drink")

    assert bob.import_export(export, on_conflict="overwrite").reasons["conflict"] == 1


def test_a_dry_run_reports_the_same_and_changes_nothing(bob, export):
    bob.remember("likes water", namespace="profile/food", key="drink")
    before, generation = everything(bob), bob.generation()

    tried = bob.import_export(export, dry_run=True)

    assert (everything(bob), bob.generation()) == (before, generation)
    done = bob.import_export(export)
    assert tried.to_dict() | {"dry_run": False} == done.to_dict()


def test_a_repeated_import_changes_nothing_and_calls_no_embedder(export):
    embedder = FakeEmbedder()
    with opened(embedder=embedder) as other:
        bob = other.tenant("bob")
        bob.import_export(export)
        bob.memory.wait_for_index()
        before, generation, calls = everything(bob), bob.generation(), embedder.calls

        report = bob.import_export(export)

        assert (report.exit_code, report.reasons) == (0, {"unchanged": 6})
        assert (everything(bob), bob.generation(), embedder.calls) == (before, generation, calls)


def test_a_thread_that_grew_at_the_source_is_gone_on_with(bob, alice, export, tmp_path):
    bob.import_export(export)
    alice.thread("chat 1").append([{"role": "user", "content": "and then?", "id": "q2"}])
    alice.export(tmp_path / "later.jsonl")

    report = bob.import_export(tmp_path / "later.jsonl")

    assert report.imported == 1
    assert bob.thread("chat 1").info() == alice.thread("chat 1").info()


def test_a_thread_that_grew_here_stays_as_it_is(bob, export):
    bob.import_export(export)
    bob.thread("chat 1").append([{"role": "user", "content": "mine"}])
    before = everything(bob)

    assert bob.import_export(export).reasons == {"unchanged": 6}
    assert everything(bob) == before


def test_turns_deleted_here_do_not_come_back(bob, export):
    bob.import_export(export)
    bob.thread("chat 1").delete_turns(["q1"])

    assert bob.import_export(export).reasons["thread_continued"] == 1
    assert [turn.id for turn in bob.thread("chat 1").turns()] == ["a1"]


def test_another_thread_of_the_same_name_is_left_alone(bob, export):
    mine = bob.thread("chat 1").append([{"role": "user", "content": "mine"}])

    for choice in ("skip", "overwrite"):
        report = bob.import_export(export, on_conflict=choice)

        assert report.reasons["conflict"] == 3
        assert bob.thread("chat 1").turns() == mine


def test_a_turn_edited_here_is_replaced_only_when_asked(bob, export):
    bob.import_export(export)
    bob.thread("chat 1").edit_turn("a1", "other")

    assert bob.import_export(export).reasons["conflict"] == 1
    assert bob.import_export(export, on_conflict="overwrite").updated == 1
    assert bob.thread("chat 1").turns()[-1].content == "Det regnade"


def test_a_namespace_goes_before_every_other(bob, export):
    bob.import_export(export, namespace="from alice")

    assert bob.memory.list_namespaces() == ["from alice/default", "from alice/profile/food"]


def test_the_one_thread_of_an_export_can_be_renamed(bob, hiermem, export, tmp_path):
    hiermem.tenant("carol").thread("t").append([{"role": "user", "content": "hi"}])
    hiermem.tenant("carol").export(tmp_path / "t.jsonl")

    bob.import_export(tmp_path / "t.jsonl", thread="other")

    assert [info.thread_id for info in bob.threads()] == ["other"]
    with pytest.raises(InvalidInputError, match="one thread"):
        bob.import_export(export, thread="other")


def test_wrong_options_are_told(bob, export):
    with pytest.raises(InvalidInputError, match="on_conflict"):
        bob.import_export(export, on_conflict="maybe")
    for size in (0, 10_001):
        with pytest.raises(InvalidInputError, match="batch_size"):
            bob.import_export(export, batch_size=size)


def test_a_limit_that_is_smaller_here_fails_the_entry_alone(export):
    with opened(metadata_limit=10) as other:
        report = other.tenant("bob").import_export(export)

        assert [item.reason for item in report.items] == ["limit_exceeded"]
        assert report.imported == 5


def test_observers_are_told_of_what_is_imported(export):
    told = []
    with opened(observer=told.append) as other:
        other.tenant("bob").import_export(export)

    stored = [event for event in told if isinstance(event, events.EntryStored)]
    turns = [event for event in told if isinstance(event, events.TurnsAppended)]
    assert len(stored) == 3
    assert [event.thread_id for event in turns] == ["chat 1"]


def test_tenants_do_not_see_what_is_imported_for_another(bob, export, hiermem):
    bob.import_export(export)

    with opened() as other:
        other.tenant("bob").import_export(export)
        assert other.tenant("carol").memory.retrieve("e1") is None
        assert other.tenant("carol").threads() == []
        assert other.tenant("carol").import_export(export).imported == 6
        assert other.tenant("carol").memory.retrieve("e1") == bob.memory.retrieve("e1")


def test_other_counters_count_what_is_imported(export):
    counter = ApproximateCounter()
    with opened(counter=len) as other:
        other.tenant("bob").import_export(export)
        stats = other.tenant("bob").stats()

    assert (stats.uncounted_turns, stats.turns) == (0, 2)
    assert counter.id != stats.counter


def test_two_imports_at_once_store_everything_once(tmp_path, hiermem):
    alice = hiermem.tenant("alice")
    alice.memory.bulk_insert([f"entry {n}" for n in range(300)])
    alice.thread("t").append([{"role": "user", "content": str(n)} for n in range(300)])
    alice.export(tmp_path / "a.jsonl")
    reports = []
    with opened(tmp_path / "bob") as other:
        bob = other.tenant("bob")

        def take():
            reports.append(bob.import_export(tmp_path / "a.jsonl", batch_size=20))

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bob.export(tmp_path / "b.jsonl")

    assert sum(report.imported for report in reports) == 600
    assert sum(report.failed for report in reports) == 0
    assert body_of(tmp_path / "a.jsonl") == body_of(tmp_path / "b.jsonl")


@pytest.mark.parametrize("count", [1, 2, 4, 7])
def test_an_import_that_fails_midway_goes_on_where_it_ended(tmp_path, count):
    with opened() as hiermem:  # closed before commits are counted: its upkeep commits too
        alice = hiermem.tenant("alice")
        alice.memory.bulk_insert([f"entry {n}" for n in range(50)])
        alice.thread("t").append([{"role": "user", "content": str(n)} for n in range(50)])
        alice.export(tmp_path / "a.jsonl")
    with opened(tmp_path / "bob", embedder=None, local_embedder=False) as other:
        bob = other.tenant("bob")
        with pytest.raises(InjectedFault), FaultPlan("rows.before_commit", count=count):
            bob.import_export(tmp_path / "a.jsonl", batch_size=10)

        report = bob.import_export(tmp_path / "a.jsonl", batch_size=10)
        bob.export(tmp_path / "b.jsonl")

        assert report.reasons.get("unchanged", 0) == 10 * (count - 1)
        assert body_of(tmp_path / "a.jsonl") == body_of(tmp_path / "b.jsonl")


KILLED = """
import os, signal, sys
from hiermem_core import HierMem
from hiermem_core.tokens.counters import ApproximateCounter
from hiermem_core.testing import FakeClock, FakeEmbedder

fakes = {"clock": FakeClock(), "counter": ApproximateCounter(), "embedder": FakeEmbedder()}
seen = 0

def tell(done, total):
    global seen
    seen += 1
    if seen == 4:  # after the header and three batches
        os.kill(os.getpid(), signal.SIGKILL)

with HierMem.open(sys.argv[1], **fakes) as memory:
    memory.tenant("bob").import_export(sys.argv[2], batch_size=10, progress=tell)
"""


def test_an_import_that_is_killed_goes_on_where_it_ended(tmp_path, hiermem):
    alice = hiermem.tenant("alice")
    alice.memory.bulk_insert([f"entry {n}" for n in range(100)])
    alice.export(tmp_path / "a.jsonl")
    command = [sys.executable, "-c", KILLED, tmp_path / "bob", tmp_path / "a.jsonl"]
    ended = subprocess.run(command, check=False)

    with opened(tmp_path / "bob") as other:
        report = other.tenant("bob").import_export(tmp_path / "a.jsonl", batch_size=10)
        other.tenant("bob").export(tmp_path / "b.jsonl")

    assert ended.returncode == -signal.SIGKILL
    assert (report.imported, report.reasons) == (70, {"unchanged": 30})
    assert body_of(tmp_path / "a.jsonl") == body_of(tmp_path / "b.jsonl")


def test_a_closed_memory_neither_exports_nor_imports(export):
    memory = opened()
    tenant = memory.tenant("bob")
    memory.close()

    with pytest.raises(ClosedError):
        tenant.export(export.with_name("b.jsonl"))
    with pytest.raises(ClosedError):
        tenant.import_export(export)


def test_reports_say_what_they_hold(bob, export):
    report = bob.import_export(export)

    assert str(report).splitlines()[0].endswith("alice.jsonl: export of tenant alice")
    assert str(report).endswith("imported 6, updated 0, skipped 0, failed 0 of 6")
    assert report.to_dict()["by_kind"] == {"entry": {"imported": 3}, "turn": {"imported": 3}}
    assert str(bob.import_export(export)).endswith("of 6 (unchanged 6)")
