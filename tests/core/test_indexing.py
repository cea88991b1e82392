"""The vector index of a HierMem: what is queued, applied and answered."""

from __future__ import annotations

import numpy as np
import pytest
from core.vector_index import opened_worlds, outbox_rows, until, vector_for
from sqlalchemy import select

from hiermem_core.storage.tables import outbox
from hiermem_core.testing import FaultPlan, InjectedFault
from hiermem_core.vector_index.indexer import IndexCheck, IndexTeller


@pytest.fixture
def worlds(tmp_path):
    with opened_worlds(tmp_path) as make:
        yield make


def test_a_tenant_is_indexed_with_all_it_has_once_it_passes_the_threshold(worlds):
    world = worlds(threshold=20)
    below = world.store(range(20))
    none_yet = outbox_rows(world)
    above = world.store(range(20, 22))
    world.store(range(5), "other")

    assert none_yet == []
    assert outbox_rows(world) == [("add", number) for number in below + above]
    assert world.indexer.drain()
    assert world.state().engine == "chroma, 22 of 22 vectors"
    assert world.state("other").engine == "exact scan"


def test_counting_up_to_the_threshold_heeds_other_processes(worlds):
    mine, other = worlds(threshold=300), worlds(threshold=10**9)
    mine.store([0])
    other.store(range(1, 400))
    for seed in range(400, 670):
        mine.store([seed])

    assert mine.state().pending == 670


def test_a_threshold_passed_in_a_transaction_that_fails_is_not_passed(worlds):
    world = worlds(threshold=3)
    with pytest.raises(InjectedFault), FaultPlan("rows.before_commit"):
        world.store(range(4))
    world.store(range(3))
    before = world.state().pending
    world.store(range(3, 4))

    assert before == 0
    assert world.state().pending == 4


def test_every_committed_vector_is_pending_or_found(worlds):
    world = worlds()
    first = world.store(range(50))
    pending_at_first = world.pending()
    world.indexer.drain()
    second = world.store(range(50, 60))

    assert pending_at_first == set(first)
    assert world.pending() == set(second)
    assert world.nearest(vector_for(3), 1) == [first[3]]
    assert world.found() == 50 / 60
    assert world.indexer.drain()
    assert world.found() == 1


def test_removed_vectors_leave_the_index(worlds):
    world = worlds()
    numbers = world.store(range(30))
    world.indexer.drain()
    unapplied = world.store(range(30, 40))
    world.remove([*numbers[:5], *unapplied[:5]])
    queued = outbox_rows(world, "add")

    assert queued == [("add", number) for number in unapplied[5:]]
    assert world.indexer.drain()
    assert world.indexer.check("acme") == IndexCheck()
    assert world.found() == 1
    assert numbers[2] not in world.nearest(vector_for(2), 30)


def test_a_vector_removed_while_it_is_being_added_ends_up_removed(worlds):
    world = worlds()
    world.store(range(10))
    world.indexer.drain()
    (number,) = world.store([10])
    with pytest.raises(InjectedFault), FaultPlan("index.after_apply"):
        world.indexer.drain()
    world.remove([number])

    assert world.indexer.drain()
    assert world.indexer.check("acme") == IndexCheck()


@pytest.mark.parametrize("point", ["index.before_apply", "index.after_apply"])
def test_a62_a_failure_around_applying_loses_nothing(worlds, point):
    world = worlds()
    world.store(range(5))
    world.indexer.drain()
    world.store(range(5, 25))
    with pytest.raises(InjectedFault), FaultPlan(point):
        world.indexer.drain()
    half_done = world.state().pending

    assert half_done == 20
    assert world.indexer.drain()
    assert world.indexer.check("acme") == IndexCheck()
    assert world.found() == 1


def test_too_many_pending_vectors_are_answered_by_the_scan(worlds):
    world = worlds(most_pending=10)
    world.store(range(20))
    world.indexer.drain()
    world.store(range(20, 31))
    pending = world.pending()
    answer = world.nearest(vector_for(1))

    assert len(pending) == 11
    assert answer is None
    assert world.state().engine == "exact scan: too much is pending"
    assert world.indexer.drain()
    assert world.indexer.is_usable("acme")


def test_a_vector_that_is_refused_is_tried_five_times_and_delays_no_other(worlds):
    told = []
    world = worlds(tell=IndexTeller(failed=lambda *what: told.append(what)))
    world.store(range(20))
    world.indexer.drain()
    bad = world.store([20], vector=lambda seed: np.full(16, np.nan, "<f4"))
    short = world.store([21], vector=lambda seed: vector_for(seed, 4))
    world.store(range(22, 40))

    assert world.indexer.drain()
    assert (world.state().pending, world.state().failed) == (0, 2)
    assert world.pending() == {*bad, *short}
    assert sum(count for _, count in told) == 2
    assert world.found() == 38 / 40
    with world.database.read() as connection:
        failures = world.indexer.failures(connection, "acme")
    assert [(one.number, one.attempts) for one in failures] == [(*bad, 5), (*short, 5)]
    assert all(one.error for one in failures)
    world.remove([*bad, *short])
    assert world.indexer.drain()
    assert world.state().failed == 0


def test_a_refused_vector_waits_longer_and_longer_for_the_background(worlds):
    world = worlds()
    world.store(range(5))
    world.indexer.drain()
    world.store([5], vector=lambda seed: np.full(16, np.inf, "<f4"))
    attempts = []
    for _ in range(4):
        world.indexer.nudge("acme")
        until(lambda: not world.indexer._work.background.is_running)
        with world.database.read() as connection:
            row = connection.execute(select(outbox.c.attempts, outbox.c.due_at)).one()
        attempts.append((row.attempts, row.due_at))
        world.clock.advance(1.5)

    assert [tries for tries, _ in attempts] == [1, 2, 2, 2]
    assert attempts[1][1] - attempts[0][1] == 5_500


def test_a_refused_vector_does_not_keep_an_index_from_being_built(worlds):
    world = worlds()
    bad = world.store([0], vector=lambda seed: np.full(16, np.nan, "<f4"))
    world.store(range(1, 30))

    assert world.indexer.drain()
    assert world.state().failed == 1
    assert world.pending() == set(bad)
    assert world.found() == 29 / 30


def test_a_question_of_another_length_is_no_trouble_of_the_index(worlds):
    world = worlds()
    world.store(range(20))
    world.indexer.drain()

    assert world.indexer.nearest("acme", np.ones(3, "f4"), 2) is None
    assert world.found() == 1
