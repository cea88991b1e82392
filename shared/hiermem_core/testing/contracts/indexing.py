"""What every store of entries with vectors must hold of waiting, failing and repaired rows."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hiermem_core.models import events as told
from hiermem_core.models.results import FailedRow
from hiermem_core.testing.contracts.entries_base import (
    SECONDS,
    MemoryContract,
    ids_of,
    modes_of,
    settle,
)
from hiermem_core.testing.contracts.index_probes import (
    PEARS,
    add_stray_keywords,
    chroma_of,
    filled,
    index_folder_of,
    run_behind,
)
from hiermem_core.testing.contracts.samples import said
from hiermem_core.vector_index.retrying import MOST_ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock
    from hiermem_core.testing.embedders import FakeEmbedder

POISON = "a pear nobody embeds"


class WaitingContract(MemoryContract):
    """Every promise about rows whose embedding fails."""

    def test_a65_a_row_that_is_always_rejected_stops_after_five_attempts_and_stays_readable(
        self,
        hiermem: HierMem,
        memory: MemoryService,
        embedder: FakeEmbedder,
        clock: FakeClock,
        events: list[Event],
    ) -> None:
        embedder.failing = {POISON}
        stored = memory.store(POISON)

        for _ in range(MOST_ATTEMPTS * 2):
            clock.advance(1_000)
            memory.search_semantic("anything")

        alone = [call for call in embedder.calls if POISON in call]
        assert len(alone) <= 2 * (MOST_ATTEMPTS + 1)  # together with others, then alone
        assert (memory.stats().index.failed, memory.stats().index.pending) == (1, 0)
        assert memory.retrieve(stored) is not None
        assert hiermem.doctor().failures == (FailedRow("acme", stored, "ValueError"),)
        assert [one.count for one in events if isinstance(one, told.IndexFailed)] == [1]
        assert memory.wait_for_index(SECONDS)

    def test_a65_one_bad_row_delays_no_other(
        self, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        embedder.failing = {POISON}

        result = memory.bulk_insert([*(f"plum {n}" for n in range(40)), POISON])

        assert result.pending == (result.ids[-1],)
        assert ids_of(memory.search_semantic("plum 7", 1)) == [result.ids[7]]
        assert memory.stats().index.indexed == 40

    def test_a65_a_retry_waits_for_its_pause_on_the_clock(
        self, memory: MemoryService, embedder: FakeEmbedder, clock: FakeClock
    ) -> None:
        embedder.failing = {POISON}
        memory.store(POISON)
        memory.search_semantic("one")
        calls = len([call for call in embedder.calls if POISON in call])

        memory.search_semantic("two")
        unchanged = len([call for call in embedder.calls if POISON in call])
        clock.advance(5)
        memory.search_semantic("three")

        assert unchanged == calls
        assert len([call for call in embedder.calls if POISON in call]) > calls

    def test_an_embedder_that_is_down_costs_no_row_its_attempts(
        self, hiermem: HierMem, memory: MemoryService, embedder: FakeEmbedder, clock: FakeClock
    ) -> None:
        memory.store("first")
        embedder.failing = lambda text: True
        ids = [memory.store(f"plum {number}") for number in range(20)]

        for _ in range(MOST_ATTEMPTS * 2):
            clock.advance(1_000)
            assert not memory.wait_for_index(SECONDS)

        health = hiermem.health()
        assert (health.status, health.index_lag) == ("degraded", 20)
        assert health.embedder is not None
        assert health.embedder.status == "unhealthy"
        assert memory.stats().index.failed == 0
        embedder.failing = ()
        settle(memory)
        assert ids_of(memory.search_semantic("plum 7", 1)) == [ids[7]]
        assert hiermem.health().status == "healthy"

    def test_doctor_tries_failed_rows_anew(
        self, hiermem: HierMem, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        embedder.failing = {POISON}
        stored = memory.store(POISON)
        assert memory.wait_for_index(SECONDS)
        before = hiermem.doctor(repair=True)
        embedder.failing = ()

        report = hiermem.doctor(repair=True)

        assert (before.failed, before.repaired) == (1, False)
        assert (report.failed, report.repaired) == (1, True)
        assert hiermem.doctor() == type(report)()
        assert ids_of(memory.search_semantic(POISON, 1)) == [stored]

    def test_doctor_of_one_tenant_leaves_the_others(
        self, hiermem: HierMem, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        embedder.failing = {POISON}
        other = hiermem.tenant("other").memory
        for one in (memory, other):
            one.store(POISON)
            assert one.wait_for_index(SECONDS)
        embedder.failing = ()

        hiermem.doctor(repair=True, tenant="acme")

        assert memory.stats().index.failed == 0
        assert other.stats().index.failed == 1
        assert hiermem.doctor(tenant="nobody").is_sound

    def test_a_location_that_is_whole_is_sound(self, hiermem: HierMem) -> None:
        fresh = hiermem.doctor()
        filled(hiermem)
        waiting = hiermem.doctor()
        settle(hiermem.tenant("acme").memory)
        settle(hiermem.tenant("other").memory)

        assert fresh == type(fresh)()
        assert waiting.is_sound
        assert hiermem.doctor() == type(fresh)()


class IndexContract(MemoryContract):
    """Every promise about rows and vectors that disagree, for stores in a database."""

    def test_a64_a_vector_without_its_row_is_never_returned_and_repaired(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        ids = filled(hiermem)
        settle(memory)
        run_behind(hiermem, "DELETE FROM memory_entries WHERE id IN (?, ?)", ids[7], ids[8])

        before = memory.search_semantic("pear number 7", PEARS // 4)
        found = hiermem.doctor()
        report = hiermem.doctor(repair=True)

        assert len(before) == PEARS // 4
        assert not {ids[7], ids[8]} & set(ids_of(before))
        assert (found.orphans, found.is_sound) == (2, False)
        assert report.repaired
        assert hiermem.doctor() == type(report)()
        assert not {ids[7], ids[8]} & set(ids_of(memory.search_semantic("pear number 7", PEARS)))
        assert len(memory.search_semantic("pear", PEARS)) == PEARS - 2

    def test_a64_a_row_that_is_gone_altogether_leaves_nothing_behind(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        ids = filled(hiermem)
        settle(memory)
        (number,) = run_behind(hiermem, "SELECT number FROM memory_entries WHERE id = ?", ids[7])[0]
        for table in ("memory_entries", "searchable"):
            run_behind(hiermem, f"DELETE FROM {table} WHERE number = ?", number)  # noqa: S608 - two names

        before = ids_of(memory.search_semantic("pear number 7", 5))
        report = hiermem.doctor(repair=True)

        assert ids[7] not in before
        assert len(before) == 5
        assert (report.orphans, report.unlisted, report.repaired) == (1, 1, True)
        assert hiermem.doctor() == type(report)()

    def test_a64_vectors_removed_behind_the_store_are_made_again(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        ids = filled(hiermem)
        settle(memory)
        run_behind(hiermem, "DELETE FROM vectors WHERE tenant = 'acme'")

        found = hiermem.doctor()
        report = hiermem.doctor(repair=True)

        assert found.missing == PEARS + PEARS // 4
        assert report.repaired
        assert hiermem.doctor() == type(report)()
        assert memory.stats().index.indexed == PEARS + PEARS // 4
        for number in (0, 7, PEARS - 1):
            hits = memory.search_semantic(f"pear number {number}", 1)
            assert ids_of(hits) == [ids[number]]

    def test_entries_removed_from_the_keyword_index_are_listed_again(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        ids = filled(hiermem)
        run_behind(hiermem, "DELETE FROM keywords WHERE rowid % 2 = 1")
        add_stray_keywords(hiermem, 99_999)

        found = hiermem.doctor()
        report = hiermem.doctor(repair=True)

        assert found.unlisted >= (PEARS + PEARS // 2) // 2
        assert report.repaired
        assert hiermem.doctor().is_sound
        by_words = memory.search("number", mode="keyword", limit=1000) if words(memory) else ids
        assert len(by_words) == PEARS

    def test_turns_that_recall_does_not_know_are_listed_again(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        thread = hiermem.tenant("acme").thread("t1")
        thread.append(said(f"cherry {number}" for number in range(30)))
        settle(memory)
        run_behind(hiermem, "DELETE FROM searchable WHERE seq BETWEEN 5 AND 9")

        found = hiermem.doctor()
        report = hiermem.doctor(repair=True)

        assert found.unlisted == 5 + 5  # the turns, and their keyword rows
        assert report.repaired
        assert hiermem.doctor() == type(report)()
        assert memory.stats().index.indexed == 30
        hits = hiermem.tenant("acme").recall("cherry 7", limit=1)
        assert [hit.content for hit in hits] == ["cherry 7"]

    def test_vectors_that_count_no_more_are_stale_and_removed(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        filled(hiermem)
        settle(memory)
        run_behind(
            hiermem,
            "INSERT INTO vectors (tenant, row, embedder, dimension, embedding, norm, is_whole) "
            "SELECT tenant, row, 'old (3)', 3, embedding, 1.0, is_whole FROM vectors LIMIT 10",
        )

        found = hiermem.doctor()
        report = hiermem.doctor(repair=True)

        assert found.stale == 10
        assert report.repaired
        assert hiermem.doctor().is_sound


class VectorIndexContract(MemoryContract):
    """Every promise about a vector index that fails or disagrees; every tenant is in it."""

    def test_a63_a_vector_index_that_is_down_loses_nothing_and_catches_up(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        folder = index_folder_of(hiermem)
        folder.write_text("no folder")

        ids = [memory.store(f"plum {number}") for number in range(20)]

        caught_up = memory.wait_for_index(SECONDS)
        health, report = hiermem.health(), hiermem.doctor()
        assert not caught_up
        assert len(set(ids)) == 20
        assert (health.status, health.rows.status) == ("degraded", "healthy")
        assert health.index is not None
        assert health.index.message
        assert health.index_lag == 20
        assert report.unchecked
        assert report.pending == 20
        for mode in {"keyword", "semantic"} & set(modes_of(memory)):
            assert ids[7] in ids_of(memory.search("plum 7", mode=mode))
        folder.unlink()
        settle(memory)
        hits = memory.search_semantic("plum 7", 1, explain=True)
        assert ids_of(hits) == [ids[7]]
        assert "approximate" in hits[0].explanation["plan"]
        assert hiermem.health().status == "healthy"

    def test_a80_a_vector_index_that_fails_is_degraded_with_its_error(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        memory.store("plum")
        settle(memory)
        index, _ = chroma_of(hiermem, "acme")
        index.close()

        health, mine = hiermem.health(), memory.health()

        assert (health.status, mine.status) == ("degraded", "degraded")
        assert health.index is not None
        assert (health.index.status, health.rows.status) == ("unhealthy", "healthy")
        assert health.last_error == health.index.message != ""
        assert memory.search_semantic("plum", 1)

    def test_a63_a_repair_of_an_index_that_is_down_says_so(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        index_folder_of(hiermem).write_text("no folder")
        memory.store("plum")

        report = hiermem.doctor(repair=True)

        assert not report.repaired
        assert report.unchecked is not None

    def test_a64_an_index_that_disagrees_is_made_equal(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        ids = filled(hiermem)
        settle(memory)
        index, name = chroma_of(hiermem, "acme")
        numbers = index.numbers(name).tolist()
        index.remove(name, numbers[:20])
        index.add(name, [10**9], [[1.0] * 32])

        found = hiermem.doctor()
        report = hiermem.doctor(repair=True)

        assert (found.missing, found.orphans) == (20, 1)
        assert report.repaired
        assert hiermem.doctor() == type(report)()
        assert index.count(name) == len(numbers)
        for number in range(20):
            assert ids_of(memory.search_semantic(f"pear number {number}", 1)) == [ids[number]]

    def test_a64_a_vector_in_the_index_without_a_row_is_never_returned(
        self, hiermem: HierMem, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        filled(hiermem)
        settle(memory)
        index, name = chroma_of(hiermem, "acme")
        index.add(name, range(10**9, 10**9 + 30), embedder.embed(["pear number 7"]) * 30)

        hits = memory.search_semantic("pear number 7", 10, explain=True)

        assert "approximate" in hits[0].explanation["plan"]
        assert len(set(ids_of(hits))) == 10
        assert hits[0].content == "pear number 7"

    @pytest.mark.parametrize("backend", ["sqlite", "in_memory"])
    def test_what_is_written_with_another_backend_is_in_the_index_later(
        self, opened: Callable[..., HierMem], backend: str
    ) -> None:
        with opened() as first:
            filled(first)
            settle(first.tenant("acme").memory)
        with opened(backend=backend) as second:
            second.tenant("acme").remember("a plum")
            second.tenant("acme").thread("t1").append(said(["a medlar"]))
            settle(second.tenant("acme").memory)
            assert second.tenant("acme").memory.stats().index.pending == 0

        third = opened()

        memory = third.tenant("acme").memory
        wanted = {"a plum", "a medlar"} if backend == "sqlite" else {"a medlar"}
        assert wanted <= {hit.content for hit in third.tenant("acme").recall("a plum medlar")}
        settle(memory)
        assert third.doctor() == type(third.doctor())()


def words(memory: MemoryService) -> bool:
    """Tell whether the backend searches by words."""
    return "keyword" in modes_of(memory)
