"""What every store of entries with vectors must hold of its embedder."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from hiermem_core.errors import (
    EmbedderMismatchError,
    IndexUnavailableError,
)
from hiermem_core.testing.contracts.entries_base import (
    DIMENSIONS,
    SECONDS,
    MemoryContract,
    ids_of,
    settle,
)
from hiermem_core.testing.contracts.index_probes import vectors_of
from hiermem_core.testing.contracts.samples import said
from hiermem_core.testing.embedders import FakeEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.service.memory_service import MemoryService


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
