"""Reindexing in processes that are killed, and beside others."""

from __future__ import annotations

import pytest
from core.children import run_until_killed
from core.memory_backends import OPTIONS

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.errors import EmbedderMismatchError
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.index_probes import ROWS, filled, texts_of, vectors_of

SECONDS = 60

REINDEX_AND_DIE = """
import json, os, signal
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.index_probes import ROWS, texts_of
location, options, share = sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3])
hiermem = HierMem.open(location, embedder=FakeEmbedder(32), counter=ApproximateCounter(), **options)
other = FakeEmbedder(48, "another")

def die(done, total):
    if done >= share * total:
        print(json.dumps(sorted(texts_of(other))), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

hiermem.reindex(other, progress=die)
"""

SWAP_AND_DIE = """
import json
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder, FaultPlan
location, options, point = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
hiermem = HierMem.open(location, embedder=FakeEmbedder(32), counter=ApproximateCounter(), **options)
staged = hiermem._services.reindexing._parts.staged
swap = staged.swap

def swap_and_die(*arguments, **options):
    with FaultPlan(point, action="kill"):
        return swap(*arguments, **options)

staged.swap = swap_and_die
hiermem.reindex(FakeEmbedder(48, "another"))
"""

persistent = pytest.mark.parametrize("backend", ["sqlite", "chroma_indexed", "hybrid"])


@pytest.fixture
def opened(tmp_path):
    handles = []

    def open_one(backend, embedder, **options):
        handle = HierMem.open(
            tmp_path / "memory",
            embedder=embedder,
            counter=ApproximateCounter(),
            **OPTIONS[backend],
            **options,
        )
        handles.append(handle)
        return handle

    yield open_one
    for handle in handles:
        handle.close()


def options_of(backend):
    import json

    return json.dumps(OPTIONS[backend])


@persistent
def test_a59_a_reindex_killed_at_forty_percent_is_finished_by_the_next(opened, tmp_path, backend):
    import json

    with opened(backend, FakeEmbedder(32)) as hiermem:
        ids = filled(hiermem)
        hiermem.tenant("acme").memory.wait_for_index(SECONDS)
    printed = run_until_killed(REINDEX_AND_DIE, tmp_path / "memory", options_of(backend), 0.4)
    finished = set(json.loads(printed))
    hiermem = opened(backend, FakeEmbedder(32))
    memory, other = hiermem.tenant("acme").memory, FakeEmbedder(48, "another")
    memory.delete(ids[0])
    memory.update(ids[1], content="quince")
    memory.store("plum")
    with_old = vectors_of(hiermem)

    report = hiermem.reindex(other)

    assert with_old["another", 48] > 0.3 * ROWS
    assert len(finished) >= 0.4 * ROWS
    assert texts_of(other) & finished == set()
    assert report.replaced
    assert (report.rows, report.refused) == (ROWS, 0)
    assert vectors_of(hiermem) == {("another", 48): ROWS}
    assert memory.wait_for_index(SECONDS)
    assert hiermem.doctor() == type(hiermem.doctor())()


@persistent
@pytest.mark.parametrize("point", ["rows.before_commit", "rows.after_commit"])
def test_a59_a_reindex_killed_while_it_swaps_has_swapped_or_not(opened, tmp_path, backend, point):
    has_swapped = point == "rows.after_commit"
    with opened(backend, FakeEmbedder(32)) as hiermem:
        filled(hiermem)
        hiermem.tenant("acme").memory.wait_for_index(SECONDS)
    run_until_killed(SWAP_AND_DIE, tmp_path / "memory", options_of(backend), point)
    now, not_now = FakeEmbedder(48, "another"), FakeEmbedder(32)
    if not has_swapped:
        now, not_now = not_now, now

    with pytest.raises(EmbedderMismatchError):
        opened(backend, not_now)
    hiermem = opened(backend, now)

    assert vectors_of(hiermem)[now.model_id, now.dimensions] == ROWS
    found = hiermem.doctor()
    assert (found.missing, found.stale) == (0, ROWS if has_swapped else 0)
    report = hiermem.reindex(FakeEmbedder(48, "another"))
    assert report.replaced is not has_swapped
    assert report.embedded == 0
    assert vectors_of(hiermem) == {("another", 48): ROWS}


@persistent
def test_a59_another_hiermem_that_has_the_old_embedder_never_mixes_vectors(opened, backend):
    first, old = FakeEmbedder(32), FakeEmbedder(32)
    mine, theirs = opened(backend, first), opened(backend, old)
    filled(mine)
    theirs.tenant("acme").remember("plum")

    mine.reindex(FakeEmbedder(32, "another"))

    memory = theirs.tenant("acme").memory
    before = vectors_of(mine)
    with pytest.raises(EmbedderMismatchError):
        memory.store("quince")
    if backend != "sqlite":
        with pytest.raises(EmbedderMismatchError):
            memory.search_semantic("plum")
    theirs.tenant("acme").thread("t1").append([{"role": "user", "content": "medlar"}])
    assert vectors_of(mine) == before == {("another", 32): ROWS + 1}
    assert mine.tenant("acme").memory.wait_for_index(SECONDS)
    assert mine.doctor() == type(mine.doctor())()


def test_a_degraded_hiermem_works_again_when_another_has_reindexed(opened):
    filled(opened("hybrid", FakeEmbedder(32)))
    late = opened("hybrid", FakeEmbedder(48, "another"), on_embedder_change="degrade")
    stored = late.tenant("acme").remember("plum")
    degraded = late.health().status

    opened("hybrid", FakeEmbedder(32)).reindex(FakeEmbedder(48, "another"))

    memory = late.tenant("acme").memory
    assert degraded == "degraded"
    assert memory.wait_for_index(SECONDS)
    assert [hit.id for hit in memory.search_semantic("plum", 1)] == [stored]
    assert late.health().status == "healthy"


def test_two_reindexes_of_two_hiermems_end_with_one_embedder(opened):
    mine, theirs = opened("hybrid", FakeEmbedder(32)), opened("hybrid", FakeEmbedder(32))
    filled(mine)
    begun = []

    def meddle(done, total):
        if not begun:
            begun.append(theirs.reindex(FakeEmbedder(64, "third")))

    from hiermem_core.errors import ConflictError

    with pytest.raises(ConflictError):
        mine.reindex(FakeEmbedder(48, "another"), progress=meddle)

    assert vectors_of(mine) == {("third", 64): ROWS}
    assert begun[0].replaced
    assert mine.reindex(FakeEmbedder(48, "another")).replaced
    assert vectors_of(mine) == {("another", 48): ROWS}


def test_a_cut_off_reindex_to_another_embedder_leaves_nothing_when_a_third_is_chosen(opened):
    hiermem = opened("hybrid", FakeEmbedder(32))
    filled(hiermem)

    def stop(done, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        hiermem.reindex(FakeEmbedder(48, "another"), progress=stop)
    begun = hiermem.doctor()
    hiermem.reindex(FakeEmbedder(64, "third"))

    assert begun.stale == 0
    assert vectors_of(hiermem) == {("third", 64): ROWS}
    assert hiermem.doctor().is_sound
