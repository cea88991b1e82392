"""The vector index of a HierMem: generations, repairs, and leaving no byte behind."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest
from core.vector_index import (
    EMBEDDER,
    World,
    facts_of,
    generations,
    opened_database,
    opened_worlds,
    outbox_rows,
    until,
    vector_for,
)
from sqlalchemy import insert, select, update

from hiermem_core.errors import IndexUnavailableError
from hiermem_core.storage.tables import tenants, vectors
from hiermem_core.testing import FaultPlan, InjectedFault
from hiermem_core.vector_index.chroma import ChromaIndex, collection_name
from hiermem_core.vector_index.connecting import embedded
from hiermem_core.vector_index.indexer import IndexCheck


@pytest.fixture
def worlds(tmp_path):
    with opened_worlds(tmp_path) as make:
        yield make


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
    assert again.indexer.check("acme") == IndexCheck()
    assert generations(again) == ["gen-2"]
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


def test_leftover_generations_of_another_time_are_removed(worlds):
    world = worlds()
    stale = ChromaIndex(embedded(world.folder / "gen-7"))
    stale.add("hm_x", [1], np.ones((1, 4), "f4"))
    stale.close()
    world.store(range(10))

    assert world.indexer.drain()
    assert generations(world) == ["gen-8"]
    assert world.found() == 1
