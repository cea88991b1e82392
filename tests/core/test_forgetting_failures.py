"""Forgetting while something fails, holds on, or is killed."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager

import pytest
from core.children import run, run_until_killed, start
from core.forgotten_files import (
    SECONDS,
    SENTINEL,
    fill,
    marks_in,
    opened,
    texts_in,
    vectors_in,
)

from hiermem_core.errors import BackendError
from hiermem_core.testing import FaultPlan, InjectedFault
from hiermem_core.vector_index.ownership import LOCK_NAME, Ownership

OPEN = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder, FaultPlan
def opened(location, **options):
    given = {"backend": "hybrid", "index_threshold": 0} | options
    return HierMem.open(
        location, counter=ApproximateCounter(), embedder=FakeEmbedder(32), **given
    )
"""

FORGET_AND_DIE = (
    OPEN
    + """
tenant = opened(sys.argv[1]).tenant("acme")
with FaultPlan(sys.argv[2], action="kill", count=int(sys.argv[3])):
    tenant.forget(user_id="bob")
"""
)

LOCK_THE_INDEX = """
from pathlib import Path
from hiermem_core.vector_index.ownership import Ownership
ownership = Ownership(Path(sys.argv[1]))
assert ownership.try_own()
print("owned", flush=True)
sys.stdin.readline()
"""

HOLD_A_SNAPSHOT = """
import sqlite3
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM memory_entries").fetchall()
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


@contextmanager
def child_that(script, *arguments):
    """Run a child that says when it is ready, and ends with the block."""
    child = start(script, *arguments)
    try:
        assert child.stdout.readline().strip()
        yield
    finally:
        child.communicate("\n", timeout=SECONDS)


def assert_it_is_not_read(tenant):
    for mode in ("keyword", "semantic", "hybrid"):
        found = tenant.memory.search(f"note {SENTINEL}", mode=mode, limit=50)
        assert all(hit.user_id == "eve" for hit in found), mode
    assert len(tenant.memory.search(user_id="bob")) == 0
    assert all(SENTINEL not in hit.content for hit in tenant.recall(f"note {SENTINEL}"))


@contextmanager
def locked_by_another_process(location):
    with child_that(LOCK_THE_INDEX, location / "chroma"):
        yield


@contextmanager
def replaced_by_a_file(location):
    folder, aside = location / "chroma", location.with_name("aside")
    folder.rename(aside)
    folder.write_bytes(b"no folder")
    yield
    folder.unlink()
    aside.rename(folder)


@pytest.mark.parametrize("trouble", [locked_by_another_process, replaced_by_a_file])
def test_a53_a_failing_index_leaves_an_incomplete_receipt_and_a_repeat_completes(
    location, trouble, caplog
):
    with opened(location) as hiermem:
        fill(hiermem)
    with trouble(location), opened(location, exact_limit=0) as hiermem:
        tenant = hiermem.tenant("acme")

        receipt = tenant.forget(user_id="bob")
        assert_it_is_not_read(tenant)
        again = tenant.forget(user_id="bob")

    assert (receipt.failed, receipt.complete) == ((("index", "IndexUnavailableError"),), False)
    assert receipt.remaining == receipt.counts["vectors"] == 7
    assert receipt.vacuumed
    assert (again.counts["entries"], again.complete) == (0, False)
    assert again.remaining > 0
    assert texts_in(location, SENTINEL) == []
    assert SENTINEL not in caplog.text
    with opened(location, index_threshold=None) as hiermem:
        tenant = hiermem.tenant("acme")
        last = tenant.forget(user_id="bob")
        marks = marks_in(hiermem)
        assert_it_is_not_read(tenant)

    assert last.complete
    assert marks == []
    assert (texts_in(location, SENTINEL), vectors_in(location)) == ([], [])


def test_opening_again_completes_what_a_failing_index_left(location):
    with opened(location) as hiermem:
        fill(hiermem)
    with locked_by_another_process(location):
        with opened(location) as hiermem:
            hiermem.tenant("acme").forget(user_id="bob")
            marks = marks_in(hiermem)
        left = vectors_in(location)

    with opened(location) as hiermem:
        done = marks_in(hiermem)

    assert len(marks) == 1
    assert any(name.startswith("chroma/") for name in left)
    assert (done, vectors_in(location)) == ([], [])


def test_an_index_that_was_away_is_built_anew_when_it_comes_back(location):
    with opened(location) as hiermem:
        fill(hiermem)
    folder, aside = location / "chroma", location.with_name("aside")
    folder.rename(aside)
    with opened(location, backend="sqlite") as hiermem:
        receipt = hiermem.tenant("acme").forget(user_id="bob")
    assert receipt.complete
    if folder.exists():
        (folder / LOCK_NAME).unlink(missing_ok=True)
        folder.rmdir()
    aside.rename(folder)

    with opened(location, exact_limit=0) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.remember("one more", user_id="eve")
        assert tenant.memory.wait_for_index(SECONDS)
        found = len(tenant.memory.search_semantic("ordinary note", 50))

    assert found == 11
    assert vectors_in(location) == []


def test_a_process_without_an_index_removes_the_files_of_one_that_was_used_before(location):
    with opened(location) as hiermem:
        fill(hiermem)
    with opened(location, backend="sqlite") as hiermem:
        receipt = hiermem.tenant("acme").forget(user_id="bob")
    at_once = vectors_in(location)
    with opened(location, exact_limit=0) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.remember("one more", user_id="eve")
        assert tenant.memory.wait_for_index(SECONDS)
        found = tenant.memory.search_semantic("ordinary note", 50)

    assert receipt.complete
    assert at_once == []
    assert len(found) == 11


def test_a_process_without_an_index_leaves_one_that_is_in_use_alone(location):
    with opened(location) as owner:
        tenant = fill(owner)
        with opened(location, backend="sqlite") as other:
            receipt = other.tenant("acme").forget(user_id="bob")
        assert_it_is_not_read(tenant)
        last = tenant.forget(user_id="bob")

    assert receipt.failed == (("index", "IndexUnavailableError"),)
    assert not receipt.complete
    assert last.complete
    assert vectors_in(location) == []


def test_a_reader_of_an_old_snapshot_delays_the_cleaning_and_nothing_else(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = fill(hiermem)
        with child_that(HOLD_A_SNAPSHOT, location / "memory.db"):
            receipt = tenant.forget(user_id="bob")
            tenant.remember("others write meanwhile")
            left = texts_in(location, SENTINEL)
            assert len(tenant.memory.search(user_id="bob")) == 0
        again = tenant.forget(user_id="bob")

    assert receipt.failed == (("files", "BackendUnavailableError"),)
    assert (receipt.vacuumed, receipt.complete) == (False, False)
    assert receipt.remaining == sum(receipt.counts.values())
    assert left
    assert again.complete
    assert texts_in(location, SENTINEL) == []


def test_opening_does_not_wait_long_for_a_reader_of_an_old_snapshot(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = fill(hiermem)
        with child_that(HOLD_A_SNAPSHOT, location / "memory.db"):
            tenant.forget(user_id="bob")
            with opened(location, backend="sqlite", busy_seconds=30.0) as another:
                still = marks_in(another)
        with opened(location, backend="sqlite") as another:
            done = marks_in(another)

    assert len(still) == 1
    assert done == []
    assert texts_in(location, SENTINEL) == []


def test_a_database_that_cannot_be_written_forgets_nothing(location):
    with opened(location, backend="sqlite") as hiermem:
        tenant = fill(hiermem)
        with closing(sqlite3.connect(location / "memory.db", isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            with pytest.raises(BackendError):
                tenant.forget(user_id="bob")
        assert len(tenant.memory.search(user_id="bob")) == 5
        assert marks_in(hiermem) == []


def test_a_forget_that_fails_before_its_commit_forgets_nothing(location):
    with opened(location, backend="in_memory") as hiermem:
        tenant = fill(hiermem)
        with FaultPlan("rows.before_commit"), pytest.raises(InjectedFault):
            tenant.forget(user_id="bob")

        assert len(tenant.memory.search(user_id="bob")) == 5
        assert len(tenant.thread("t1").turns()) == 3
        assert marks_in(hiermem) == []


KILLS = [
    ("rows.after_commit", 1),
    ("rows.before_commit", 2),
    ("rows.after_commit", 2),
    ("index.before_swap", 1),
    ("index.after_swap", 1),
    ("rows.before_commit", 3),
    ("rows.after_commit", 3),
    ("rows.after_commit", 4),
]


@pytest.mark.parametrize(("point", "count"), KILLS)
def test_a_killed_forget_is_completed_by_the_next_opening(location, point, count):
    with opened(location) as hiermem:
        fill(hiermem)
    run_until_killed(FORGET_AND_DIE, location, point, count)
    left = texts_in(location, SENTINEL) + vectors_in(location)

    with opened(location) as hiermem:
        tenant = hiermem.tenant("acme")
        marks = marks_in(hiermem)
        assert_it_is_not_read(tenant)
        turns = [turn.content for turn in tenant.thread("t1").turns()]
        ordinary = len(tenant.memory.search(user_id="eve", limit=50))

    assert left or count > 2
    assert marks == []
    assert (texts_in(location, SENTINEL), vectors_in(location)) == ([], [])
    assert turns == ["Why do you ask?", "Never mind."]
    assert ordinary == 10


def test_a_forget_killed_before_its_commit_has_forgotten_nothing(location):
    with opened(location, backend="sqlite") as hiermem:
        fill(hiermem)
    run_until_killed(FORGET_AND_DIE, location, "rows.before_commit", 1)

    with opened(location, backend="sqlite") as hiermem:
        assert len(hiermem.tenant("acme").memory.search(user_id="bob")) == 5
        assert marks_in(hiermem) == []


def test_two_processes_forget_and_write_at_once(location):
    script = (
        OPEN
        + """
with opened(sys.argv[1], backend="sqlite") as hiermem:
    tenant = hiermem.tenant("acme")
    print("ready", flush=True)
    for number in range(10):
        tenant.remember(f"kept {number} in the child", user_id="eve")
        tenant.remember(f"note zqxjkv {number}", user_id=f"child {number}")
        tenant.forget(user_id=f"child {number}")
"""
    )
    with opened(location, backend="sqlite", busy_seconds=30.0) as hiermem:
        tenant = hiermem.tenant("acme")
        child = start(script, location)
        assert child.stdout.readline().strip() == "ready"
        for number in range(10):
            tenant.remember(f"kept {number} in the parent", user_id="eve")
            tenant.remember(f"note {SENTINEL} {number}", user_id=f"parent {number}")
            tenant.forget(user_id=f"parent {number}")
        _, complaints = child.communicate(timeout=SECONDS)
        last = tenant.forget(ids=["none"])
        found = tenant.memory.search(limit=100)
        marks = marks_in(hiermem)

    assert child.returncode == 0, complaints
    assert last.complete
    assert marks == []
    assert {hit.user_id for hit in found} == {"eve"}
    assert len(found) == 20
    assert texts_in(location, SENTINEL) == []


def test_forgetting_leaves_the_index_and_its_folder_to_their_owner(location):
    with opened(location) as hiermem:
        fill(hiermem).forget(user_id="bob")
        second = Ownership(location / "chroma")
        is_owned = second.try_own()
    again = run(
        OPEN + 'print(len(opened(sys.argv[1]).tenant("acme").memory.search(limit=50)))', location
    )

    assert not is_owned
    assert int(again) == 10
