"""What every store of entries with vectors must hold when its vectors are made anew."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import (
    BackendError,
    ConfigurationError,
    ConflictError,
    DimensionMismatchError,
)
from hiermem_core.testing.contracts.entries_base import (
    DIMENSIONS,
    MemoryContract,
    ids_of,
    settle,
)
from hiermem_core.testing.contracts.index_probes import (
    PEARS,
    ROWS,
    filled,
    rows_waiting,
    texts_of,
    vectors_of,
)
from hiermem_core.testing.contracts.samples import said
from hiermem_core.testing.embedders import FakeEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem


class ReindexContract(MemoryContract):
    """Every promise of `HierMem.reindex`."""

    @pytest.fixture
    def other(self) -> FakeEmbedder:
        """Give an embedder of another model, with vectors of another length."""
        return FakeEmbedder(DIMENSIONS + 16, "another")

    def test_a59_a_reindex_that_was_cut_off_goes_on_and_reflects_what_changed(
        self, hiermem: HierMem, other: FakeEmbedder
    ) -> None:
        memory = hiermem.tenant("acme").memory
        ids = filled(hiermem)
        with pytest.raises(StopHere):
            hiermem.reindex(other, progress=stop_at(0.4))
        finished = texts_of(other)
        memory.delete(ids[0])
        memory.update(ids[1], content="plum tart, changed")
        fresh = memory.store("plum jam, new")
        again = FakeEmbedder(other.dimensions, other.model_id)

        report = hiermem.reindex(again)

        settle(memory)
        assert report.rows == ROWS
        assert texts_of(again) & finished <= {"pear number 1"}
        assert len(finished) + len(texts_of(again)) <= ROWS + 3
        assert vectors_of(hiermem) == {(other.model_id, other.dimensions): report.rows}
        assert ids_of(memory.search_semantic("plum jam new", 1)) == [fresh]
        assert ids_of(memory.search_semantic("plum tart changed", 1)) == [ids[1]]
        assert ids[0] not in ids_of(memory.search_semantic("pear number 0", PEARS))
        assert hiermem.doctor().is_sound

    def test_a59_what_is_written_and_deleted_during_a_reindex_is_in_it(
        self, hiermem: HierMem, other: FakeEmbedder
    ) -> None:
        memory, thread = hiermem.tenant("acme").memory, hiermem.tenant("acme").thread("t1")
        ids = filled(hiermem)
        steps = iter(range(1000))

        def meddle(done: int, total: int) -> None:
            del done, total
            step = next(steps)
            if step < 10:
                memory.store(f"plum {step}", key=f"p{step}")
                memory.delete(ids[step])
                memory.update(ids[-1 - step], content=f"quince {step}")
                thread.append(said([f"medlar {step}"]))

        report = hiermem.reindex(other, progress=meddle)

        settle(memory)
        assert report.replaced
        assert set(vectors_of(hiermem)) == {(other.model_id, other.dimensions)}
        for step in range(min(10, next(steps))):
            assert [hit.key for hit in memory.search_semantic(f"plum {step}", 1)] == [f"p{step}"]
            assert ids_of(memory.search_semantic(f"quince {step}", 1)) == [ids[-1 - step]]
            assert memory.retrieve(ids[step]) is None
        stats = memory.stats()
        assert (stats.index.model_id, stats.index.dimension) == ("another", other.dimensions)
        assert stats.index.pending == 0
        assert hiermem.doctor().is_sound

    def test_the_old_vectors_answer_until_the_new_ones_count(
        self, hiermem: HierMem, other: FakeEmbedder
    ) -> None:
        memory = hiermem.tenant("acme").memory
        ids = filled(hiermem)
        answers = []

        def ask(done: int, total: int) -> None:
            del done, total
            answers.append(ids_of(memory.search_semantic("pear number 7", 1)))

        hiermem.reindex(other, progress=ask)

        assert len(answers) > 2
        assert set(map(tuple, answers)) == {(ids[7],)}

    def test_a_reindex_back_to_the_first_embedder_works_like_any_other(
        self, hiermem: HierMem, other: FakeEmbedder, embedder: FakeEmbedder
    ) -> None:
        memory = hiermem.tenant("acme").memory
        ids = filled(hiermem)
        settle(memory)

        reports = [hiermem.reindex(one) for one in (other, embedder, other, embedder)]

        settle(memory)
        assert all(report.replaced for report in reports)
        assert set(vectors_of(hiermem)) == {("fake", DIMENSIONS)}
        assert ids_of(memory.search_semantic("pear number 7", 1)) == [ids[7]]
        assert hiermem.doctor().is_sound

    def test_a_reindex_by_the_same_embedder_makes_only_what_is_missing(
        self, opened: Callable[..., HierMem], embedder: FakeEmbedder
    ) -> None:
        hiermem = opened(indexing=False)
        ids = filled(hiermem)
        assert vectors_of(hiermem) == {}
        seen: list[tuple[int, int]] = []

        first = hiermem.reindex(progress=lambda done, total: seen.append((done, total)))
        before = len(embedder.calls)
        second = hiermem.reindex()

        memory = hiermem.tenant("acme").memory
        settle(memory)
        assert (first.embedded, first.rows, first.replaced) == (ROWS, ROWS, False)
        assert (second.embedded, second.refused) == (0, 0)
        assert texts_of(embedder, before) == set()
        assert seen[-1] == (ROWS, ROWS)
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert ids_of(memory.search_semantic("pear number 7", 1)) == [ids[7]]

    def test_a_hiermem_without_an_embedder_gets_one_by_a_reindex(
        self, opened: Callable[..., HierMem], embedder: FakeEmbedder
    ) -> None:
        hiermem = opened(embedder=None, local_embedder=False)
        ids = filled(hiermem)

        with pytest.raises(ConfigurationError):
            hiermem.reindex()
        hiermem.reindex(embedder)

        memory = hiermem.tenant("acme").memory
        later = memory.store("a plum")
        hiermem.tenant("acme").thread("t1").append(said(["a medlar"]))
        settle(memory)
        assert ids_of(memory.search_semantic("pear number 7", 1)) == [ids[7]]
        assert ids_of(memory.search_semantic("a plum", 1)) == [later]
        assert hiermem.doctor() == hiermem.doctor(repair=True)

    def test_given_vectors_are_replaced_by_another_embedder(
        self, opened: Callable[..., HierMem], other: FakeEmbedder
    ) -> None:
        hiermem = opened(embedder=None, local_embedder=False)
        memory = hiermem.tenant("acme").memory
        stored = memory.store("pear", embedding=[1.0, *[0.0] * (DIMENSIONS - 1)])

        hiermem.reindex(other)

        entry = memory.retrieve(stored, include_embedding=True)
        assert entry is not None
        assert entry.embedding == pytest.approx(other.embed(["pear"])[0], abs=1e-6)

    def test_a_row_the_new_embedder_refuses_waits_and_holds_nobody_up(
        self, hiermem: HierMem
    ) -> None:
        memory = hiermem.tenant("acme").memory
        ids = filled(hiermem)
        picky = FakeEmbedder(DIMENSIONS, "picky", failing={"pear number 3"})

        report = hiermem.reindex(picky)

        assert report.refused == 1
        assert rows_waiting(hiermem) == 1
        assert memory.retrieve(ids[3]) is not None
        assert ids_of(memory.search_semantic("pear number 7", 1)) == [ids[7]]
        picky.failing = ()
        settle(memory)
        assert ids_of(memory.search_semantic("pear number 3", 1)) == [ids[3]]

    def test_a_new_embedder_that_is_down_changes_nothing_until_it_is_up_again(
        self, hiermem: HierMem, other: FakeEmbedder
    ) -> None:
        memory = hiermem.tenant("acme").memory
        ids = filled(hiermem)
        settle(memory)
        before = memory.search_semantic("pear number 7", 5)
        other.failing = lambda text: len(other.calls) > 2

        with pytest.raises(BackendError):
            hiermem.reindex(other)

        assert memory.search_semantic("pear number 7", 5) == before
        other.failing = ()
        assert hiermem.reindex(other).replaced
        assert ids_of(memory.search_semantic("pear number 7", 1)) == [ids[7]]

    def test_vectors_of_another_length_than_declared_are_one_error_and_never_stored(
        self, hiermem: HierMem
    ) -> None:
        filled(hiermem)
        settle(hiermem.tenant("acme").memory)
        before = vectors_of(hiermem)
        liar = Lying(DIMENSIONS + 16, "liar")

        with pytest.raises(DimensionMismatchError):
            hiermem.reindex(liar)

        assert {name for name, _ in vectors_of(hiermem)} <= {"fake", "liar"}
        assert {length for _, length in vectors_of(hiermem)} <= {DIMENSIONS, DIMENSIONS + 16}
        assert vectors_of(hiermem)["fake", DIMENSIONS] == before["fake", DIMENSIONS]

    def test_one_reindex_runs_at_a_time(self, hiermem: HierMem, other: FakeEmbedder) -> None:
        filled(hiermem)
        refused = []

        def again(done: int, total: int) -> None:
            del done, total
            with pytest.raises(ConflictError):
                hiermem.reindex(other)
            refused.append(True)

        hiermem.reindex(other, progress=again)

        assert refused

    def test_a_reindex_has_cached_answers_asked_again(
        self, hiermem: HierMem, other: FakeEmbedder
    ) -> None:
        filled(hiermem)
        memory = hiermem.tenant("acme").memory
        before = memory.generation()

        hiermem.reindex(other)

        assert memory.generation() > before


class StopHere(Exception):  # noqa: N818 - a test's own way to end a reindex
    """Raised by a progress that wants to stop."""


class Lying(FakeEmbedder):
    """An embedder whose later vectors are shorter than it declares."""

    def embed(self, texts: Any) -> list[list[float]]:
        """Return vectors, each too short from the third call on."""
        vectors = super().embed(texts)
        return vectors if len(self.calls) < 3 else [vector[:-1] for vector in vectors]


def stop_at(share: float) -> Callable[[int, int], None]:
    """Return a progress that stops when this share is done."""

    def progress(done: int, total: int) -> None:
        if done >= share * total:
            raise StopHere

    return progress
