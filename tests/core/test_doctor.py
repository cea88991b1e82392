"""What doctor says of locations that lack something, and what a repair makes of them."""

from __future__ import annotations

import pytest

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.errors import MissingIdentityError
from hiermem_core.models.results import DoctorReport
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.index_probes import PEARS, ROWS, filled, run_behind

SECONDS = 60


@pytest.fixture
def opened(tmp_path):
    handles = []

    def open_one(**options):
        given = {"embedder": FakeEmbedder(32), "counter": ApproximateCounter()}
        handles.append(HierMem.open(tmp_path / "memory", **given | options))
        return handles[-1]

    yield open_one
    for handle in handles:
        handle.close()


@pytest.mark.parametrize(
    "options", [{"embedder": None, "local_embedder": False}, {"indexing": False}]
)
def test_rows_without_vectors_are_missed_only_where_vectors_are_made(opened, options):
    filled(opened(**options))
    without = opened(**options).doctor()

    hiermem = opened()
    found = hiermem.doctor()
    report = hiermem.doctor(repair=True)

    assert without == DoctorReport()
    assert (found.missing, found.is_sound) == (ROWS, False)
    assert report.repaired
    assert hiermem.doctor() == DoctorReport()
    (hit,) = hiermem.tenant("acme").memory.search_semantic("pear number 7", 1)
    assert hit.content == "pear number 7"


def test_entries_whose_row_is_gone_are_listed_again(opened):
    hiermem = opened()
    memory = hiermem.tenant("acme").memory
    ids = filled(hiermem)
    assert memory.wait_for_index(SECONDS)
    run_behind(hiermem, "DELETE FROM searchable WHERE thread IS NULL AND number % 2 = 1")

    found = hiermem.doctor()
    report = hiermem.doctor(repair=True)

    assert found.unlisted >= PEARS // 2
    assert report.repaired
    assert hiermem.doctor() == DoctorReport()
    for number in (6, 7, 8, 9):
        for mode in ("keyword", "semantic", "hybrid"):
            hits = memory.search(f"pear number {number}", mode=mode)
            assert ids[number] in [hit.id for hit in hits]


def test_a_repair_of_a_thread_lists_it_in_order(opened):
    hiermem = opened()
    filled(hiermem)
    run_behind(hiermem, "DELETE FROM searchable WHERE seq IN (1, 2, 20)")

    report = hiermem.doctor(repair=True)

    places = run_behind(
        hiermem, "SELECT seq, position FROM searchable WHERE seq IS NOT NULL ORDER BY seq"
    )
    assert report.repaired
    assert places == [(n, n) for n in range(1, PEARS // 4 + 1)]


def test_a_look_changes_nothing(opened):
    hiermem = opened()
    filled(hiermem)
    run_behind(hiermem, "DELETE FROM keywords WHERE rowid % 2 = 1")
    run_behind(hiermem, "DELETE FROM vectors")
    before = (run_behind(hiermem, "SELECT * FROM outbox"), hiermem.doctor())

    assert (run_behind(hiermem, "SELECT * FROM outbox"), hiermem.doctor()) == before
    assert not before[1].is_sound


def test_a_repair_is_one_of_a_named_tenant(opened):
    hiermem = opened()
    filled(hiermem)
    run_behind(hiermem, "DELETE FROM keywords WHERE rowid IN (SELECT number FROM searchable)")

    hiermem.doctor(repair=True, tenant="other")

    assert hiermem.doctor(tenant="other").unlisted == 0
    assert hiermem.doctor(tenant="acme").unlisted == PEARS + PEARS // 4
    with pytest.raises(MissingIdentityError):
        hiermem.doctor(tenant="")
