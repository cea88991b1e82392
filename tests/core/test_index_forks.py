"""The vector index in processes that fork."""

from __future__ import annotations

import os

import pytest
from core.children import run
from core.index_processes import WORLD, assert_whole

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")

FORK = (
    WORLD
    + """
with opened_database(folder) as database:
    world = World(database, folder)
    world.store(range(50))
    world.indexer.drain()
    print("ready", flush=True)
    child = os.fork()
    if child == 0:
        assert world.nearest(vector_for(1)) is None
        assert not world.indexer.is_usable("acme")
        world.indexer.nudge("acme")
        (number,) = world.store([50])
        assert world.pending() == {number}
        assert not world.indexer.drain()
        assert "does not survive a fork" in world.state().engine
        world.indexer.health()
        world.indexer.drop_tenant("other")
        elsewhere = folder / "elsewhere"
        with opened_database(elsewhere) as another:
            mine = World(another, elsewhere)
            mine.store(range(5))
            assert not mine.indexer.drain()
            assert mine.pending() == set(mine.living())
            assert "does not survive a fork" in mine.state().engine
            assert mine.indexer.health().status == "healthy"
            assert not mine.indexer._work.store.ownership.is_held
            mine.indexer.close()
        world.indexer.close()
        sys.exit(7)  # takes everything down, as a worker of a server does
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 7, status
    assert world.indexer.drain()
    assert world.found() == 1
    world.indexer.close()
"""
)

FORK_BEFORE_USE = (
    WORLD
    + """
child = os.fork()
with opened_database(folder) as database:
    if child == 0:
        world = World(database, folder)
        world.store(range(50))
        assert world.indexer.drain() and world.found() == 1
        world.indexer.close()
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    world = World(database, folder)
    world.store(range(50, 60))
    assert world.indexer.drain() and world.found() == 1
    world.indexer.close()
"""
)

FORK_WHILE_OPENING = (
    WORLD
    + """
with opened_database(folder) as database:
    world = World(database, folder)
    world.store(range(200))
    world.indexer.nudge("acme")
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            import chromadb
            world.store([900])
            sys.exit(0)
        children.append(child)
        until(lambda: world.indexer.is_usable("acme"), 0.2)
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert world.indexer.drain()
    assert world.found() == 1
    world.indexer.close()
"""
)


def test_a_forked_child_works_without_the_index_and_ends(tmp_path):
    run(FORK, tmp_path)
    living = assert_whole(tmp_path)

    assert len(living) == 51


def test_a_child_forked_before_any_use_may_own_the_index(tmp_path):
    run(FORK_BEFORE_USE, tmp_path)

    assert len(assert_whole(tmp_path)) == 60


def test_forks_while_the_index_is_opened_leave_no_lock_behind(tmp_path):
    run(FORK_WHILE_OPENING, tmp_path)

    assert len(assert_whole(tmp_path)) == 203
