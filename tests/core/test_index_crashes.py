"""Processes that are killed, forked or out of disk while they work on the vector index.

The ordinary run kills a few times at a small scale. `TEST_INDEX_KILLS=24 TEST_INDEX_ROWS=20000`
makes it the long one.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from core.children import finish, run, run_until_killed, start
from core.index_processes import WORLD, assert_whole
from core.vector_index import World, opened_database, until, vector_for

from hiermem_core.vector_index import store as index_store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills and forks")

KILLS = int(os.environ.get("TEST_INDEX_KILLS", "4"))
ROWS = int(os.environ.get("TEST_INDEX_ROWS", "1500"))

STORE_AND_DIE = (
    WORLD
    + """
point, count = sys.argv[2], int(sys.argv[3])
with opened_database(folder) as database:
    world = World(database, folder)
    world.store(range(40))
    world.indexer.drain()
    with FaultPlan(point, action="kill", count=count):
        numbers = world.store(range(40, 60))
        print(*numbers, flush=True)
        world.indexer.drain()
        world.remove(numbers[:5])
        world.indexer.drain()
        world.indexer.purge()
"""
)

WRITE_UNTIL_KILLED = (
    WORLD
    + """
from hiermem_core.vector_index import chroma
chroma.SYNC_THRESHOLD, seed = int(sys.argv[2]), int(sys.argv[3])
with opened_database(folder) as database:
    world = World(database, folder)
    while True:
        numbers = world.store(range(seed, seed + 100))
        world.remove(numbers[:10])
        world.indexer.drain()
        seed += 100
        print(numbers[-1], flush=True)
"""
)

OWN_UNTIL_KILLED = (
    WORLD
    + """
with opened_database(folder) as database:
    world = World(database, folder)
    world.store(range(20))
    print(world.indexer.drain(), flush=True)
    sys.stdin.readline()
"""
)

LEAVE_OPEN = (
    WORLD
    + """
context = opened_database(folder)
database = context.__enter__()
world = World(database, folder)
world.store(range(int(sys.argv[2])))
if sys.argv[3] == "drained":
    world.indexer.drain()
else:
    world.indexer.nudge("acme")
    assert until(lambda: world.indexer._work.store.is_building)
print("done", flush=True)
"""
)

FULL_DISK = (
    WORLD
    + """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with opened_database(folder) as database:
    world = World(database, folder)
    world.store(range(1500))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    assert not world.indexer.drain()
    state = world.state()
    assert state.engine.startswith("exact scan: "), state
    assert world.indexer.health().status == "unhealthy"
    assert not list((folder / "chroma").glob("gen-*"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert world.indexer.drain()
    assert world.found() == 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    world.indexer._work.store.index.has_failed = False
    for begin in range(2000, 4000, 500):
        try:
            world.store(range(begin, begin + 500))
        except Exception as error:  # the rows' disk is full, too
            assert "hiermem_core" in type(error).__module__, error
        world.indexer.drain()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    world.store(range(9000, 9010))
    assert world.indexer.drain()
    assert world.found() == 1
    assert world.state().last_error is None
    world.indexer.close()
"""
)


@pytest.mark.parametrize(
    ("point", "count", "removed"),
    [
        ("index.before_apply", 1, 0),
        ("index.after_apply", 1, 0),
        ("rows.before_commit", 2, 0),
        ("rows.after_commit", 2, 0),
        ("index.before_apply", 2, 5),
        ("index.after_apply", 2, 5),
        ("index.before_swap", 1, 5),
        ("index.after_swap", 1, 5),
    ],
)
def test_a62_a_kill_at_a_named_point_loses_nothing(tmp_path, point, count, removed):
    stored = run_until_killed(STORE_AND_DIE, tmp_path, point, count).split()
    living = assert_whole(tmp_path)

    assert len(living) == 60 - removed
    assert {int(number) for number in stored[removed:]} <= set(living)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return a location with an index of many rows, for copies."""
    folder = tmp_path_factory.mktemp("large")
    with opened_database(folder) as database:
        world = World(database, folder)
        for begin in range(0, ROWS, 5_000):
            world.store(range(begin, min(ROWS, begin + 5_000)))
        world.indexer.drain()
        world.indexer.close()
    return folder


@pytest.mark.parametrize("kill", range(KILLS))
def test_a48_a_kill_at_any_moment_loses_nothing(tmp_path, large, kill, monkeypatch):
    verdicts = []
    look = index_store.IndexStore._verdict

    def note(self, *arguments):
        verdicts.append(look(self, *arguments))
        return verdicts[-1]

    monkeypatch.setattr(index_store.IndexStore, "_verdict", note)
    dice = random.Random(kill)
    folder = tmp_path / "location"
    shutil.copytree(large, folder)
    child = start(WRITE_UNTIL_KILLED, folder, 200 if ROWS < 20_000 else 1_000, ROWS + 1)
    child.stdout.readline()
    if kill % 2:
        _wait_for_rewriting(folder / "chroma", dice.uniform(0, 0.02))
    else:
        until(lambda: child.poll() is not None, dice.uniform(0, 1))
    child.send_signal(signal.SIGKILL)
    stored = [int(number) for number in child.stdout.read().split()]
    finish(child)
    living = assert_whole(folder, least=0.98, every=1 + ROWS // 500)

    assert set(stored) <= set(living)


def _wait_for_rewriting(folder, seconds):
    """Return when Chroma has begun to rewrite a file, some moments later."""

    def times():
        return {path: path.stat().st_mtime_ns for path in folder.glob("gen-*/*/*")}

    before = times()
    deadline = time.monotonic() + 10
    while times() == before and time.monotonic() < deadline:
        pass
    until(lambda: False, seconds)


def test_a68_after_the_owner_is_killed_the_next_owns(tmp_path):
    child = start(OWN_UNTIL_KILLED, tmp_path)
    drained = child.stdout.readline().strip()
    with opened_database(tmp_path) as database:
        world = World(database, tmp_path)
        numbers = world.store(range(20, 70))
        applied = world.indexer.drain()
        engine = world.state().engine
        child.send_signal(signal.SIGKILL)
        finish(child)
        world.clock.advance(2)
        after = world.indexer.drain()
        found = world.found()
        pending = world.pending()
        world.indexer.close()

    assert drained == "True"
    assert not applied
    assert engine.startswith(f"exact scan: another process (pid {child.pid}) owns the index")
    assert after
    assert len(numbers) == 50
    assert not pending
    assert found == 1


def test_a_process_that_ends_without_closing_closes_the_index_in_silence(tmp_path):
    status, printed, complaints = finish(start(LEAVE_OPEN, tmp_path, 50, "drained"))
    with opened_database(tmp_path) as database:
        world = World(database, tmp_path)
        with database.read() as connection:
            facts = index_store.read_facts(connection)
        world.indexer.close()

    assert (status, printed, complaints) == (0, "done\n", "")
    assert facts.is_clean
    assert_whole(tmp_path)


def test_a_process_that_ends_while_the_index_is_built_ends_soon_and_in_silence(tmp_path):
    child = start(LEAVE_OPEN, tmp_path, 20_000, "undone")
    child.stdout.readline()
    began = time.monotonic()
    status, _, complaints = finish(child)

    assert (status, complaints) == (0, "")
    assert time.monotonic() - began < 5
    assert not list((tmp_path / "chroma").glob("gen-*"))


def test_a_full_disk_loses_nothing_and_ends_with_it(tmp_path):
    run(FULL_DISK, tmp_path)

    assert_whole(tmp_path)


def test_a_kill_during_a_look_keeps_the_next_process_out_until_the_look_ends(tmp_path):
    run_until_killed(STORE_AND_DIE, tmp_path, "index.after_apply", 1)
    child = start(OWN_UNTIL_KILLED.replace("world.store(range(20))", "pass"), tmp_path)
    until(lambda: bool(_children_of(child.pid)))
    child.send_signal(signal.SIGKILL)
    finish(child)
    living = None
    with opened_database(tmp_path) as database:
        world = World(database, tmp_path)
        assert until(world.indexer._work.store.ownership.try_own)
        assert until(world.indexer.drain)
        world.indexer.close()
        living = world.living()

    assert len(living) == 60
    assert_whole(tmp_path)


def _children_of(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return path.read_text().split() if path.exists() else []


def test_vectors_survive_as_they_were(tmp_path):
    run_until_killed(STORE_AND_DIE, tmp_path, "index.after_apply", 2)
    living = assert_whole(tmp_path)

    assert all(
        np.array_equal(np.frombuffer(blob, "<f4"), vector_for(number - 1))
        for number, blob in living.items()
    )
