"""The vector index of a HierMem: opening, working in the background, sharing, closing."""

from __future__ import annotations

import gc
import sys
import threading

import psutil
import pytest
from core.vector_index import (
    EMBEDDER,
    World,
    facts_of,
    generations,
    opened_worlds,
    outbox_rows,
    until,
    vector_for,
)
from sqlalchemy import func, select

from hiermem_core.storage.tables import tenants
from hiermem_core.testing import FakeClock
from hiermem_core.vector_index.indexer import IndexCheck, Indexer, IndexTeller


@pytest.fixture
def worlds(tmp_path):
    with opened_worlds(tmp_path) as make:
        yield make


def test_a_background_drain_ends_with_everything_applied(worlds):
    told = []
    world = worlds(tell=IndexTeller(caught_up=told.append))
    world.store(range(300))
    world.indexer.nudge("acme")
    world.indexer.nudge("acme")

    assert until(lambda: not world.state().pending)
    assert until(lambda: not world.indexer._work.background.is_running)
    assert world.found() == 1
    world.store([300])
    world.indexer.nudge("acme")
    assert until(lambda: told == ["acme"])


def test_nothing_to_do_starts_no_thread_and_imports_nothing(worlds, monkeypatch):
    world = worlds(threshold=100)
    world.store(range(10))
    before = threading.active_count()
    monkeypatch.delitem(sys.modules, "chromadb.api.rust", raising=False)
    world.indexer.nudge("acme")

    assert world.indexer.drain()
    assert threading.active_count() == before
    assert world.nearest(vector_for(1)) is None
    assert world.indexer.health().status == "healthy"
    assert world.indexer.check("acme") == IndexCheck()
    assert world.indexer.repair("acme") == IndexCheck()
    world.indexer.purge()
    world.indexer.close()
    assert "chromadb.api.rust" not in sys.modules
    assert not world.folder.exists()


def test_a_search_has_the_index_opened(worlds):
    world = worlds()
    world.store(range(30))
    world.indexer.drain()
    world.indexer.close()
    again = worlds()
    before = again.nearest(vector_for(1))
    again.indexer.nudge("acme")

    assert before is None
    assert until(lambda: again.indexer.is_usable("acme"))
    assert again.found() == 1
    assert generations(again) == ["gen-1"]


def test_an_orderly_end_is_known_and_trusted(worlds):
    world = worlds()
    world.store(range(30))
    world.indexer.drain()
    open_facts = facts_of(world)
    world.indexer.close()
    world.indexer.close()

    assert not open_facts.is_clean
    assert (open_facts.generation, open_facts.added, open_facts.embedder) == (1, 30, EMBEDDER)
    assert facts_of(world).is_clean
    assert world.indexer.drain()
    assert world.nearest(vector_for(1)) is None


def test_without_a_folder_nothing_is_queued_and_nothing_answers(worlds):
    world = worlds()
    world.indexer = Indexer(world.database, None, threshold=0, clock=FakeClock(), embedder=EMBEDDER)
    world.store(range(10))
    world.remove([1])
    world.indexer.nudge("acme")

    assert outbox_rows(world) == []
    assert world.indexer.drain()
    assert world.pending() == set()
    assert world.nearest(vector_for(1)) is None
    assert world.state().engine == "exact scan"
    assert world.indexer.health().status == "healthy"
    world.indexer.purge()
    world.indexer.drop_tenant("acme")
    world.indexer.close()


def test_a68_another_hiermem_queues_and_the_owner_finds(worlds):
    owner, other = worlds(), worlds()
    owner.store(range(20))
    owner.indexer.drain()
    numbers = other.store(range(20, 70))
    applied = other.indexer.drain()
    other.indexer.nudge("acme")

    assert not applied
    assert other.pending() == set(numbers)
    assert "owns the index; use a Chroma server" in other.state().engine
    assert other.state().last_error is None
    assert other.indexer.health().status == "healthy"
    assert owner.indexer.drain()
    assert owner.found() == 1
    owner.indexer.close()
    other.clock.advance(2)
    other.store([70])
    assert other.indexer.drain()
    assert other.found() == 1


def test_a79_the_canary_is_no_tenants(worlds):
    world = worlds()
    world.store(range(20))
    world.indexer.drain()
    health = [world.indexer.health() for _ in range(3)]

    assert {one.status for one in health} == {"healthy"}
    assert world.state().indexed == 20
    assert world.indexer.check("acme") == IndexCheck()
    with world.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(tenants)).scalar() == 1


def test_a80_a_failing_index_says_so_and_recovers(worlds, tmp_path):
    world = worlds()
    world.folder.write_text("no folder")
    world.store(range(20))
    drained = world.indexer.drain()
    broken = (world.state(), world.indexer.health())
    world.folder.unlink()

    assert not drained
    assert "cannot be written" in broken[0].last_error
    assert broken[0].engine == f"exact scan: {broken[0].last_error}"
    assert broken[1].status == "unhealthy"
    assert world.indexer.drain()
    assert world.state().last_error is None
    assert world.indexer.health().status == "healthy"
    assert world.found() == 1


def test_a63_background_work_waits_longer_after_each_failure(worlds):
    world = worlds()
    world.folder.write_text("no folder")
    world.store(range(20))
    work = world.indexer._work
    tries = []
    for _ in range(8):
        world.indexer.nudge("acme")
        until(lambda: not work.background.is_running)
        tries.append(work._troubles)
        world.clock.advance(2)
    world.folder.unlink()
    world.clock.advance(600)
    world.indexer.nudge("acme")

    assert tries == [1, 2, 2, 2, 3, 3, 3, 3]
    assert until(lambda: world.indexer.is_usable("acme"))
    assert world.found() == 1


def test_a_drain_with_a_timeout_ends_in_time_and_with_whole_batches(worlds):
    world = worlds()
    world.store(range(20))
    world.indexer.drain()
    world.store(range(20, 40))
    in_time = world.indexer.drain(timeout=0)
    later = world.indexer.drain(timeout=30)

    assert not in_time
    assert later
    assert world.found() == 1


def test_a_first_drain_with_a_timeout_leaves_the_building_to_the_background(worlds):
    world = worlds()
    world.store(range(2_000))
    world.indexer.drain(timeout=0)

    assert world.indexer.drain(timeout=60)
    assert world.indexer.check("acme") == IndexCheck()


def test_only_the_tenant_asked_for_is_drained(worlds):
    world = worlds()
    world.store(range(5))
    world.indexer.drain()
    world.store(range(5, 10))
    world.store(range(5), "other")

    assert world.indexer.drain("other")
    assert world.state("other").pending == 0
    assert world.state().pending == 5


def test_e13_closing_twice_and_from_two_threads_while_it_works(worlds):
    world = worlds()
    world.store(range(3_000))
    world.indexer.nudge("acme")
    until(lambda: world.indexer._work.store.is_building)
    closers = [threading.Thread(target=world.indexer.close) for _ in range(2)]
    for one in closers:
        one.start()
    for one in closers:
        one.join()
    world.indexer.close()

    assert not world.indexer._work.background.is_running
    assert world.state().pending == 3_000
    again = worlds()
    assert again.indexer.drain()
    assert again.indexer.check("acme") == IndexCheck()


def test_closing_in_no_time_leaves_the_end_to_the_running_batch(worlds):
    world = worlds()
    world.store(range(2_000))
    world.indexer.nudge("acme")
    until(lambda: world.indexer._work.store.is_building)
    world.indexer.close(timeout=0)

    assert until(lambda: not world.indexer._work.background.is_running)
    assert not world.indexer._work.store.ownership.is_held
    again = worlds()
    assert again.indexer.drain()


def test_an_index_nobody_holds_any_more_is_closed(worlds, tmp_path):
    database = worlds().database
    world = World(database, tmp_path)
    world.store(range(20))
    world.indexer.drain()
    del world
    gc.collect()
    again = World(database, tmp_path)

    assert until(again.indexer._work.store.ownership.try_own)
    assert until(lambda: facts_of(again).is_clean)
    again.indexer.close()


def test_e12_twenty_opens_and_closes_leave_no_file_and_no_thread(worlds):
    process = psutil.Process()

    def open_and_close():
        world = worlds()
        world.store([0])
        world.indexer.nudge("acme")
        until(lambda: world.indexer.is_usable("acme"))
        world.indexer.close()

    open_and_close()
    before = (process.num_fds(), process.num_threads())
    for _ in range(20):
        open_and_close()

    assert until(lambda: process.num_fds() <= before[0] + 2)
    assert until(lambda: process.num_threads() <= before[1] + 2)


def test_threads_write_search_and_drain_at_once(worlds):
    world = worlds()
    world.store(range(50))
    world.indexer.drain()
    wrong = []

    def work(part):
        for seed in range(part * 1_000, part * 1_000 + 15):
            (number,) = world.store([seed])
            world.indexer.nudge("acme")
            pending = world.pending()
            answer = world.nearest(vector_for(seed), 3)
            if number not in pending and number not in (answer or []):
                wrong.append(number)
            if seed % 5 == 0:
                world.indexer.drain(timeout=5)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(1, 5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert wrong == []
    assert world.indexer.drain()
    assert world.indexer.check("acme") == IndexCheck()
    assert world.found() == 1
