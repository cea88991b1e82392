"""The vector index of a HierMem: what is queued, applied, answered, mended and told."""

from __future__ import annotations

import gc
import shutil
import sys
import threading

import numpy as np
import psutil
import pytest
from core.vector_index import EMBEDDER, World, opened_database, until, vector_for
from sqlalchemy import func, insert, select, update

from hiermem_core.backends.chroma import ChromaIndex, collection_name, embedded
from hiermem_core.backends.index_facts import read_facts
from hiermem_core.backends.indexing import IndexCheck, Indexer, IndexTeller
from hiermem_core.errors import IndexUnavailableError
from hiermem_core.storage.tables import outbox, tenants, vectors
from hiermem_core.testing import FakeClock, FaultPlan, InjectedFault

pytest.importorskip("chromadb")


@pytest.fixture
def database(tmp_path):
    with opened_database(tmp_path) as opened:
        yield opened


@pytest.fixture
def worlds(database, tmp_path):
    made = []

    def make(**options):
        made.append(World(database, tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        one.indexer.close()


def facts_of(world):
    with world.database.read() as connection:
        return read_facts(connection)


def generations(world):
    return sorted(path.name for path in world.folder.glob("gen-*"))


def outbox_rows(world, change=None):
    query = select(outbox.c.change, outbox.c.number)
    if change is not None:
        query = query.where(outbox.c.change == change)
    with world.database.read() as connection:
        return sorted(tuple(row) for row in connection.execute(query))


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


@pytest.mark.parametrize("point", ["index.before_swap", "index.after_swap"])
def test_a_failure_around_the_swap_leaves_one_generation_that_answers(worlds, point):
    world = worlds()
    world.store(range(20))
    world.indexer.drain()
    with pytest.raises(InjectedFault), FaultPlan(point):
        world.indexer.purge()

    assert world.found() == 1
    assert world.indexer.drain()
    world.indexer.close()
    again = worlds()
    again.store([20])
    assert again.indexer.drain()
    assert again.found() == 1
    assert len(generations(again)) == 1


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


def test_without_a_folder_nothing_is_queued_and_nothing_answers(database, tmp_path):
    world = World(database, tmp_path)
    world.indexer = Indexer(database, None, threshold=0, clock=FakeClock(), embedder=EMBEDDER)
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


def test_the_files_removed_under_a_running_index_come_back(worlds):
    world = worlds()
    world.store(range(30))
    world.indexer.drain()
    shutil.rmtree(world.folder)
    world.store(range(30, 35))

    assert world.indexer.drain()
    assert world.found() == 1
    assert world.state().last_error is None
    assert generations(world) != ["gen-1"]


@pytest.mark.parametrize("harm", ["gone", "no_segment", "empty", "other_stamp"])
def test_files_that_are_not_as_they_were_left_are_built_anew(worlds, harm):
    world = worlds()
    world.store(range(1_100))
    world.indexer.drain()
    world.store(range(1_100, 2_200))
    world.indexer.drain()
    world.indexer.close()
    folder = world.folder / "gen-1"
    if harm == "gone":
        shutil.rmtree(folder)
    elif harm == "no_segment":
        shutil.rmtree(next(path for path in folder.iterdir() if path.is_dir()))
    elif harm == "empty":
        (folder / "chroma.sqlite3").write_bytes(b"")
        (folder / "stamp").unlink()
    else:
        (folder / "stamp").write_text("0123456789abcdef")
    again = worlds()
    again.indexer.nudge("acme")

    assert until(lambda: again.indexer.is_usable("acme"))
    assert generations(again) == ["gen-2"]
    assert again.indexer.check("acme") == IndexCheck()
    assert again.nearest(vector_for(2_000), 1) == [2_001]


def test_a_database_brought_back_from_a_copy_does_not_trust_a_later_index(worlds, tmp_path):
    world = worlds()
    world.store(range(10))
    world.indexer.drain()
    world.indexer.close()
    copy = tmp_path / "copy"
    copy.mkdir()
    with opened_database(copy) as old:
        world.database._engine.dispose()
        shutil.copy(tmp_path / "memory.db", copy / "memory.db")
        later = worlds()
        later.store(range(10, 20))
        later.indexer.drain()
        later.indexer.close()
        restored = World(old, tmp_path)
        restored.store(range(500, 505))
        restored.indexer.drain()
        found, listed = restored.found(), generations(restored)
        restored.indexer.close()

    assert found == 1
    assert listed == ["gen-2"]


def test_a_copied_location_keeps_its_index(worlds, tmp_path):
    world = worlds()
    world.store(range(1_200))
    world.indexer.drain()
    world.indexer.close()
    world.database._engine.dispose()
    target = tmp_path / "copy"
    target.mkdir()
    shutil.copy(tmp_path / "memory.db", target / "memory.db")
    shutil.copytree(world.folder, target / "chroma", copy_function=shutil.copy)
    with opened_database(target) as copied:
        there = World(copied, target)
        there.store([1_200])
        there.indexer.drain()
        listed, found = generations(there), there.nearest(vector_for(7), 1)
        there.indexer.close()

    assert listed == ["gen-1"]
    assert found == [8]


def test_another_embedder_has_the_index_built_from_its_vectors(worlds):
    world = worlds()
    old = world.store(range(20))
    world.indexer.drain()
    with world.database.write() as connection:
        rows = connection.execute(select(vectors)).mappings().all()
        fresh = [
            {**row, "number": row["number"] + 100, "embedder": "new (8)", "dimension": 8}
            | {"embedding": vector_for(row["number"], 8).tobytes()}
            for row in rows
        ]
        connection.execute(insert(vectors), fresh)
    world.indexer.set_embedder("new (8)")
    before = world.indexer.nearest("acme", vector_for(3), 1, embedder="new (8)")
    world.indexer.nudge("acme")
    world.store([50], embedder="new (8)", vector=lambda seed: vector_for(seed, 8))

    assert before is None
    assert world.indexer.drain()
    assert world.nearest(vector_for(5, 8), 1, embedder="new (8)") == [105]
    assert world.nearest(vector_for(5, 8), 1, embedder=EMBEDDER) is None
    assert set(world.nearest(vector_for(5, 8), 50)).isdisjoint(old)
    assert len(generations(world)) == 1


def test_an_index_whose_embedder_is_not_named_yet_uses_the_last(worlds):
    world = worlds()
    world.store(range(10))
    world.indexer.drain()
    world.indexer.close()
    again = worlds(embedder="")
    again.store([10])

    assert again.indexer.drain()
    assert again.found() == 1


def test_a64_an_index_that_lacks_vectors_and_holds_orphans_is_repaired(worlds):
    world = worlds()
    numbers = world.store(range(40))
    world.indexer.drain()
    index = world.indexer._work.store.index
    name = collection_name("acme", EMBEDDER)
    index.remove(name, numbers[:7])
    index.add(name, [901, 902], np.stack([vector_for(901), vector_for(902)]))
    seen = world.indexer.check("acme")
    mended = world.indexer.repair("acme")

    assert seen == IndexCheck(tuple(numbers[:7]), (901, 902))
    assert mended == seen
    assert world.indexer.check("acme") == IndexCheck()
    assert world.state().indexed == index.count(name) == 40
    assert world.found() == 1


def test_a_repair_tries_failed_changes_anew(worlds):
    world = worlds()
    world.store(range(10))
    world.indexer.drain()
    (number,) = world.store([10], vector=lambda seed: np.full(16, np.nan, "<f4"))
    world.indexer.drain()
    with world.database.write() as connection:
        good = {"embedding": vector_for(10).tobytes()}
        connection.execute(update(vectors).where(vectors.c.number == number).values(good))
    failed = world.state().failed
    world.indexer.repair("acme")

    assert failed == 1
    assert world.state().failed == 0
    assert world.found() == 1


def test_a_repair_builds_anew_what_no_longer_finds_itself(worlds, tmp_path):
    world = worlds()
    numbers = world.store(range(40))
    world.indexer.drain()
    with world.database.write() as connection:
        for number in numbers:  # as if another's vectors stood in the files
            other = {"embedding": vector_for(number + 1_000).tobytes()}
            connection.execute(update(vectors).where(vectors.c.number == number).values(other))
    before = world.found()
    world.indexer.repair("acme")

    assert before < 0.5
    assert world.found() == 1
    assert generations(world) == ["gen-2"]


def test_a_dropped_tenant_is_not_answered_and_others_are(worlds):
    world = worlds()
    world.store(range(20))
    world.store(range(20), "other")
    world.indexer.drain()
    world.store(range(20, 25))
    world.indexer.drop_tenant("acme")

    assert world.nearest(vector_for(1)) is None
    assert outbox_rows(world) == []
    assert world.found("other") == 1
    assert world.state().engine == "exact scan"
    index = world.indexer._work.store.index
    assert index.collections == {collection_name("other", EMBEDDER)}


def test_a_tenant_dropped_by_another_process_leaves_at_the_next_opening(worlds):
    world = worlds()
    world.store(range(20))
    world.store(range(20), "other")
    world.indexer.drain()
    with world.database.write() as connection:
        gone = update(tenants).where(tenants.c.tenant == "acme").values(is_indexed=False)
        connection.execute(gone)
    world.indexer.close()
    again = worlds()
    again.store([20], "other")
    again.indexer.drain()

    assert again.indexer._work.store.index.collections == {collection_name("other", EMBEDDER)}


def test_a53_a_purge_leaves_no_byte_of_removed_vectors(worlds):
    world = worlds()
    secret = np.arange(100, 116, dtype="<f4") * 1.25
    world.store(range(1_100))
    (number,) = world.store([5_000], vector=lambda seed: secret)
    world.indexer.drain()
    world.store(range(1_101, 2_300))
    world.indexer.drain()
    needle = (secret / np.linalg.norm(secret)).astype("<f4").tobytes()[:32]
    plain = secret.tobytes()[:32]

    def holds():
        files = [path.read_bytes() for path in world.folder.rglob("*") if path.is_file()]
        return any(needle in text or plain in text for text in files)

    before = holds()
    world.remove([number])
    world.indexer.drain()
    world.indexer.purge()

    assert before
    assert not holds()
    assert generations(world) == ["gen-2"]
    assert world.indexer.check("acme") == IndexCheck()


def test_a53_a_purge_that_is_not_possible_says_so(worlds):
    owner, other = worlds(), worlds()
    owner.store(range(5))
    owner.indexer.drain()

    with pytest.raises(IndexUnavailableError, match="owns the index"):
        other.indexer.purge()


def test_removing_much_makes_the_index_smaller(worlds):
    world = worlds()
    for begin in range(0, 2_400, 800):
        numbers = world.store(range(begin, begin + 800))
        world.indexer.drain()
        world.remove(numbers[: 800 - 5])
        world.indexer.drain()
    added = facts_of(world).added
    world.store([9_000])
    world.indexer.nudge("acme")

    assert added == 2_400
    assert until(lambda: facts_of(world).added == 16)
    assert until(lambda: not world.indexer._work.background.is_running)
    assert generations(world) == ["gen-2"]
    assert world.found() == 1


def test_writes_and_searches_go_on_while_the_index_is_built_anew(worlds):
    world = worlds()
    world.store(range(600))
    world.indexer.drain()
    seen = []
    builder = threading.Thread(target=world.indexer.purge)
    builder.start()
    seeds = iter(range(600, 10_000))
    removed = []
    while builder.is_alive() or len(seen) < 3:
        numbers = world.store([next(seeds), next(seeds)])
        world.remove(numbers[:1])
        removed += numbers[:1]
        seen.append(world.nearest(vector_for(3), 1))
    builder.join()

    assert world.indexer.drain()
    assert [4] in seen
    assert all(one in (None, [4]) for one in seen)
    assert world.indexer.check("acme") == IndexCheck()
    assert world.found() == 1


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


def test_a_question_of_another_length_is_no_trouble_of_the_index(worlds):
    world = worlds()
    world.store(range(20))
    world.indexer.drain()

    assert world.indexer.nearest("acme", np.ones(3, "f4"), 2) is None
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

    assert not world.indexer.drain(timeout=0)
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


def test_an_index_nobody_holds_any_more_is_closed(database, tmp_path):
    world = World(database, tmp_path)
    world.store(range(20))
    world.indexer.drain()
    del world
    gc.collect()
    again = World(database, tmp_path)

    assert until(again.indexer._work.store.ownership.try_own)
    assert until(lambda: facts_of(again).is_clean)
    again.indexer.close()


def test_e12_twenty_opens_and_closes_leave_no_file_and_no_thread(database, tmp_path):
    process = psutil.Process()

    def open_and_close():
        world = World(database, tmp_path)
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


def test_leftover_generations_of_another_time_are_removed(worlds):
    world = worlds()
    stale = ChromaIndex(embedded(world.folder / "gen-7"))
    stale.add("hm_x", [1], np.ones((1, 4), "f4"))
    stale.close()
    world.store(range(10))

    assert world.indexer.drain()
    assert generations(world) == ["gen-8"]
    assert world.found() == 1
