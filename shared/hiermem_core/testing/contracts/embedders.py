"""What every store of entries with vectors must hold of its embedder."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from hiermem_core.errors import (
    BackendError,
    DimensionMismatchError,
    EmbedderMismatchError,
    IndexUnavailableError,
)
from hiermem_core.testing.contracts.entries_base import (
    DIMENSIONS,
    SECONDS,
    MemoryContract,
    ids_of,
    modes_of,
    settle,
    unit,
)
from hiermem_core.testing.contracts.entries_probes import Reentering, Uneven
from hiermem_core.testing.contracts.index_probes import vectors_of
from hiermem_core.testing.contracts.samples import said
from hiermem_core.testing.embedders import FakeEmbedder
from hiermem_core.vector_index.retrying import MOST_ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock


class EmbedderContract(MemoryContract):
    """Every promise about whose vectors are stored and compared."""

    @pytest.fixture
    def other(self) -> FakeEmbedder:
        """Give an embedder of another model, with vectors of another length."""
        return FakeEmbedder(DIMENSIONS + 16, "another")

    def test_a58_another_embedder_of_equal_dimension_is_refused_at_open_by_both_names(
        self, opened: Callable[..., HierMem]
    ) -> None:
        with opened() as first:
            first.tenant("acme").remember("one")
        foreign = FakeEmbedder(DIMENSIONS, "another")

        with pytest.raises(EmbedderMismatchError) as mismatch:
            opened(embedder=foreign)

        assert mismatch.value.stored == f"fake ({DIMENSIONS})"
        assert mismatch.value.given == f"another ({DIMENSIONS})"
        assert foreign.calls == []

    @pytest.mark.parametrize("use", ["store", "search", "turn"])
    def test_a58_equal_names_and_other_vectors_are_refused_at_first_use(
        self, opened: Callable[..., HierMem], use: str
    ) -> None:
        with opened() as first:
            first.tenant("acme").remember("one")
            first.tenant("acme").thread("t1").append(said(["two"]))
            settle(first.tenant("acme").memory)
        hiermem = opened(embedder=FakeEmbedder(DIMENSIONS, seed=7))
        tenant, before = hiermem.tenant("acme"), vectors_of(hiermem)
        tenant.thread("t1").append(said(["three"]))

        uses: dict[str, Callable[[], object]] = {
            "store": lambda: tenant.remember("four"),
            "search": lambda: tenant.memory.search_semantic("one"),
            "turn": lambda: tenant.memory.wait_for_index(SECONDS),
        }

        with pytest.raises(EmbedderMismatchError):
            uses[use]()

        assert vectors_of(hiermem) == before

    @pytest.mark.parametrize(
        "foreign",
        [FakeEmbedder(DIMENSIONS, "another"), FakeEmbedder(DIMENSIONS, seed=7)],
        ids=["another name", "other vectors"],
    )
    def test_a_degraded_location_makes_no_vector_and_a_reindex_is_the_way_out(
        self, opened: Callable[..., HierMem], foreign: FakeEmbedder
    ) -> None:
        with opened() as first:
            first.tenant("acme").thread("t1").append(said(["a turn about plums"]))
            settle(first.tenant("acme").memory)
        hiermem = opened(embedder=foreign, on_embedder_change="degrade")
        memory, before = hiermem.tenant("acme").memory, vectors_of(hiermem)
        stored = memory.store("a note about pears")

        with pytest.raises(IndexUnavailableError):
            memory.search_semantic("pears")
        assert not memory.wait_for_index(SECONDS)
        assert vectors_of(hiermem) == before
        assert memory.stats().index.pending >= 1
        assert hiermem.health().status == "degraded"
        report = hiermem.reindex()

        settle(memory)
        assert report.replaced
        assert ids_of(memory.search_semantic("pears")) == [stored]
        assert memory.search("pears").warnings == ()
        assert hiermem.health().status == "healthy"
        assert hiermem.doctor().is_sound

    def test_hybrid_search_of_a_degraded_location_answers_by_words_and_says_so(
        self, opened: Callable[..., HierMem], other: FakeEmbedder
    ) -> None:
        with opened() as first:
            first.tenant("acme").remember("one")
        memory = opened(embedder=other, on_embedder_change="degrade").tenant("acme").memory
        if "hybrid" not in memory.stats().engines:
            with pytest.raises(IndexUnavailableError):
                memory.search("pears")
            return
        stored = memory.store("a note about pears")

        result = memory.search("pears", mode="hybrid")

        assert ids_of(result) == [stored]
        assert [warning.code for warning in result.warnings] == ["index_rebuilding"]

    def test_a60_a_million_characters_are_stored_whole_and_embedded_in_part(
        self, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        text = "x" * 1_000_000

        stored = memory.store(text)

        entry = memory.retrieve(stored)
        assert entry is not None
        assert entry.content == text
        assert max(len(one) for call in embedder.calls for one in call) <= embedder.max_characters
        stats = memory.stats().index
        assert (stats.indexed, stats.shortened) == (1, 1)
        assert ids_of(memory.search_semantic("x" * embedder.max_characters, 1)) == [stored]

    def test_a61_an_update_that_leaves_the_content_leaves_the_vector(
        self, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        stored = memory.store("a pear", key="k")
        before = memory.retrieve(stored, include_embedding=True)
        calls = len(embedder.calls)

        memory.update(stored, tags=["fruit"], metadata={"n": 1}, ttl=60)
        memory.update(stored, content="a pear")
        memory.store("a pear", key="k", tags=["more"])

        after = memory.retrieve(stored, include_embedding=True)
        assert before is not None
        assert after is not None
        assert len(embedder.calls) == calls
        assert after.embedding == before.embedding
        assert memory.search_semantic("a pear", 1)[0].score == pytest.approx(1.0, abs=1e-5)

    @pytest.mark.parametrize("works", [True, False], ids=["embedded", "rejected"])
    def test_a61_changed_content_is_never_matched_by_its_old_vector(
        self, memory: MemoryService, embedder: FakeEmbedder, *, works: bool
    ) -> None:
        stored = memory.store("a pear")
        settle(memory)
        embedder.failing = () if works else {"a walnut"}

        memory.update(stored, content="a walnut")

        assert ids_of(memory.search_semantic("a pear", threshold=0.99)) == []
        embedder.failing = ()
        settle(memory)
        assert ids_of(memory.search_semantic("a pear", threshold=0.99)) == []
        assert ids_of(memory.search_semantic("a walnut", threshold=0.99)) == [stored]

    def test_a70_a_writer_finishes_while_the_embedder_blocks_another(
        self, hiermem: HierMem, embedder: FakeEmbedder
    ) -> None:
        memory, thread = hiermem.tenant("acme").memory, hiermem.tenant("acme").thread("t1")
        first, second = memory.store("one"), memory.store("two")
        embedder.gate = threading.Event()
        blocked = threading.Thread(target=memory.store, args=("three",))
        blocked.start()
        assert embedder.waiting.wait(SECONDS)

        memory.update(first, tags=["t"])
        memory.store("four", embedding=[1.0] * DIMENSIONS)
        thread.append(said(["five"]))
        gone = memory.delete(second)

        assert blocked.is_alive()
        assert gone
        assert memory.stats().entries == 2
        embedder.gate.set()
        blocked.join(SECONDS)
        assert memory.stats().entries == 3

    def test_only_a_search_by_meaning_calls_the_embedder(
        self, hiermem: HierMem, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        memory.store("a pear", key="pear", tags=["fruit"])
        hiermem.tenant("acme").thread("t1").append(said(["a plum"]))
        calls = len(embedder.calls)

        memory.search()
        memory.search(filter={"n": 1})
        memory.search("  ")
        for mode in {"exact", "prefix", "tag", "keyword"} & set(modes_of(memory)):
            memory.search("pear", mode=mode)

        assert len(embedder.calls) == calls
        memory.search_semantic("pear")
        assert "a plum" in "".join(text for call in embedder.calls[calls:] for text in call)

    def test_a_search_that_compares_no_vectors_works_with_another_embedder(
        self, opened: Callable[..., HierMem]
    ) -> None:
        with opened() as first:
            stored = first.tenant("acme").memory.store("a pear", key="pear")
            first.tenant("acme").thread("t1").append(said(["a plum"]))
        memory = opened(embedder=FakeEmbedder(DIMENSIONS, seed=7)).tenant("acme").memory

        assert set(ids_of(memory.search())) <= {stored}
        assert set(ids_of(memory.search("pear", mode="exact"))) <= {stored}
        with pytest.raises(EmbedderMismatchError):
            memory.search_semantic("pear")

    def test_a_search_does_not_wait_for_another_that_embeds(
        self, hiermem: HierMem, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        stored = memory.store("a pear", embedding=unit(1.0))
        hiermem.tenant("acme").thread("t1").append(said(["a plum"]))
        embedder.gate = threading.Event()
        other = threading.Thread(target=memory.search_semantic, args=("pear",))
        other.start()
        assert embedder.waiting.wait(SECONDS)
        calls = len(embedder.calls)

        hits = memory.search(vector=unit(1.0), mode="semantic", limit=1)

        assert ids_of(hits) == [stored]
        assert len(embedder.calls) == calls
        embedder.gate.set()
        other.join(SECONDS)

    def test_a_vector_of_a_wrong_length_is_a_failed_attempt_of_its_row(
        self, opened: Callable[..., HierMem], clock: FakeClock
    ) -> None:
        embedder = Uneven(DIMENSIONS)
        hiermem = opened(embedder=embedder)
        tenant, memory = hiermem.tenant("acme"), hiermem.tenant("acme").memory
        stored = memory.store("a pear")
        tenant.thread("t1").append(said(["a plum", "a quince"]))
        embedder.is_uneven = lambda text: text.endswith("a plum")

        for _ in range(MOST_ATTEMPTS * 2):
            clock.advance(1_000)
            assert ids_of(memory.search_semantic("a pear", 1)) == [stored]

        stats = memory.stats().index
        assert (stats.indexed, stats.failed) == (2, 1)
        assert [one.error for one in hiermem.doctor().failures] == ["DimensionMismatchError"]

    @pytest.mark.parametrize("when", ["probes", "text", "question"])
    def test_a_wrong_length_is_told_by_health_and_hybrid_search_goes_on(
        self, opened: Callable[..., HierMem], when: str
    ) -> None:
        embedder = Uneven(DIMENSIONS)
        hiermem = opened(embedder=embedder)
        memory = hiermem.tenant("acme").memory
        if when != "probes":
            memory.store("a pear")
        embedder.is_uneven = lambda _: True

        if when == "question":
            with pytest.raises(BackendError):
                memory.search_semantic("a pear")
            if "hybrid" in memory.stats().engines:
                (warning,) = memory.search("a pear", mode="hybrid").warnings
                assert warning.code == "semantic_unavailable"
        else:
            with pytest.raises(DimensionMismatchError):
                memory.store("a plum")

        health = hiermem.health()
        assert health.status == "degraded"
        assert health.embedder is not None
        assert health.embedder.status == "unhealthy"
        assert str(DIMENSIONS + 1) in str(health.last_error)
        embedder.is_uneven = lambda _: False
        memory.store("a plum")
        assert hiermem.health().status == "healthy"

    def test_an_embedder_that_fails_at_its_first_use_leaves_rows_waiting(
        self, hiermem: HierMem, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        embedder.failing = lambda _: True

        stored = memory.store("a pear")
        result = memory.search() if "keyword" not in modes_of(memory) else memory.search("pear")

        assert ids_of(result) == [stored]
        assert hiermem.health().status == "degraded"
        assert "ValueError" in str(hiermem.health().last_error)
        embedder.failing = ()
        settle(memory)
        assert ids_of(memory.search_semantic("a pear")) == [stored]

    def test_other_vectors_than_the_stored_ones_are_told_by_health(
        self, opened: Callable[..., HierMem]
    ) -> None:
        with opened() as first:
            first.tenant("acme").remember("one")
        hiermem = opened(embedder=FakeEmbedder(DIMENSIONS, seed=7))

        with pytest.raises(EmbedderMismatchError) as mismatch:
            hiermem.tenant("acme").remember("two")

        health = hiermem.health()
        assert (health.status, health.last_error) == ("degraded", str(mismatch.value))

    @pytest.mark.parametrize("call", ["wait", "search"])
    def test_an_embedder_that_calls_back_does_not_wait_for_itself(
        self, opened: Callable[..., HierMem], call: str
    ) -> None:
        embedder = Reentering(DIMENSIONS)
        tenant = opened(embedder=embedder).tenant("acme")
        memory = tenant.memory
        answers: list[object] = []
        stored = memory.store("a pear")
        tenant.thread("t1").append(said(["a plum"]))
        calls: dict[str, Callable[[], object]] = {
            "wait": memory.wait_for_index,
            "search": lambda: memory.search_semantic("pear"),
        }
        embedder.action = lambda: answers.append(calls[call]())

        settle(memory)

        assert len(answers) == 1
        assert call != "wait" or answers == [False]
        assert ids_of(memory.search_semantic("pear")) == [stored]
