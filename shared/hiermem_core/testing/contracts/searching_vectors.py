"""What every search by meaning must hold."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from hiermem_core.testing.contracts.entries_base import (
    DIMENSIONS,
    MemoryContract,
    ids_of,
    settle,
    unit,
)

if TYPE_CHECKING:
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock
    from hiermem_core.testing.embedders import FakeEmbedder

COSINES = (0.95, 0.9, 0.71, 0.7, 0.69, 0.5, 0.1, 0.0, -0.4, -1.0)


class SemanticContract(MemoryContract):
    """Every promise of semantic search."""

    @pytest.mark.parametrize("length", [1.0, 1e-3, 1e3], ids=["unit", "short", "long"])
    def test_a30_scores_are_cosines_and_a_threshold_keeps_the_close(
        self, memory: MemoryService, length: float
    ) -> None:
        for place, cosine in enumerate(reversed(COSINES)):
            vector = [length * number for number in unit(cosine)]
            memory.store(f"entry {place}", id=str(cosine), embedding=vector)
        settle(memory)
        query = {"vector": unit(1.0), "mode": "semantic"}

        hits = memory.search(explain=True, **query)

        assert ids_of(hits) == [str(cosine) for cosine in COSINES]
        assert [hit.score for hit in hits] == pytest.approx(
            [max(0.0, cosine) for cosine in COSINES], abs=1e-5
        )
        assert [hit.explanation["cosine"] for hit in hits] == pytest.approx(COSINES, abs=1e-5)
        close = memory.search(threshold=0.7 - 1e-5, **query)
        assert ids_of(close) == ["0.95", "0.9", "0.71", "0.7"]
        assert ids_of(memory.search(threshold=0.705, limit=2, **query)) == ["0.95", "0.9"]

    def test_a32_nearer_entries_elsewhere_take_no_place(self, memory: MemoryService) -> None:
        near = [
            {"content": f"near {n}", "namespace": "x", "embedding": unit(0.9 + n / 10_000)}
            for n in range(500)
        ]
        memory.bulk_insert(near).raise_for_errors()
        wanted = [
            memory.store(f"far {n}", namespace="y", embedding=unit(0.3 - n / 10)) for n in range(3)
        ]
        settle(memory)

        hits = memory.search(vector=unit(1.0), namespace="y", limit=3)

        assert ids_of(hits) == wanted
        assert len(memory.search(vector=unit(1.0), namespace="x", limit=500)) == 500

    def test_a33_what_remains_after_deletions_is_all_found(self, memory: MemoryService) -> None:
        drafts = [
            {"content": f"fact {n}", "embedding": unit(1 - n / 300), "id": f"{n:03}"}
            for n in range(300)
        ]
        memory.bulk_insert(drafts).raise_for_errors()
        settle(memory)
        memory.bulk_delete(f"{n:03}" for n in range(290))

        at_once = memory.search(vector=unit(1.0), limit=10)
        settle(memory)
        later = memory.search(vector=unit(1.0), limit=10)

        assert ids_of(at_once) == ids_of(later) == [f"{n:03}" for n in range(290, 300)]

    def test_pages_go_through_what_points_away_without_gap_or_repeat(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        for number in range(40):
            cosine = 0.5 - ((number * 17) % 40) / 30
            memory.store(f"entry {number}", embedding=unit(cosine), id=f"{number:02}")
            clock.advance(1)
        settle(memory)
        query = {"vector": unit(1.0), "mode": "semantic"}

        whole = ids_of(memory.search(limit=100, **query))
        pages = [ids_of(memory.search(limit=7, offset=at, **query)) for at in range(0, 42, 7)]

        assert [one for page in pages for one in page] == whole
        assert len(set(whole)) == 40

    def test_equal_scores_stay_in_one_order_whatever_the_index_knows(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        draft = {"content": "alpha beta gamma", "type": "episodic"}
        for _ in range(3):
            memory.bulk_insert([draft] * 7).raise_for_errors()
            memory.bulk_insert([{"content": "delta epsilon", "type": "episodic"}] * 7)
            settle(memory)
            clock.advance(1)
        memory.bulk_insert([draft] * 7).raise_for_errors()

        hits = memory.search("alpha delta", mode="semantic", limit=50)

        keys = [(-hit.score, -hit.updated_at.timestamp(), hit.id) for hit in hits]
        assert keys == sorted(keys)
        assert len({hit.score for hit in hits}) == 2

    def test_what_is_written_is_found_at_once(self, memory: MemoryService) -> None:
        memory.bulk_insert(f"filler {n}" for n in range(30)).raise_for_errors()
        settle(memory)

        for number in range(5):
            entry_id = memory.store(f"lighthouse number{number}")
            hits = memory.search(f"lighthouse number{number}", mode="semantic", limit=1)
            assert ids_of(hits) == [entry_id]
            assert hits[0].score == pytest.approx(1.0, abs=1e-5)

    def test_a61_a_changed_content_is_found_by_its_new_vector_only(
        self, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        entry_id = memory.store("lighthouse on the rock")
        memory.store("something else entirely")
        settle(memory)
        calls = len(embedder.calls)

        memory.update(entry_id, tags=["t"], metadata={"n": 1}, ttl=60)
        assert len(embedder.calls) == calls
        memory.update(entry_id, content="railway station")

        near = memory.search("railway station", mode="semantic", limit=1)
        far = memory.search("lighthouse on the rock", mode="semantic", threshold=0.99)
        assert ids_of(near) == [entry_id]
        assert near[0].score == pytest.approx(1.0, abs=1e-5)
        assert ids_of(far) == []

    def test_a_given_vector_is_dropped_when_the_content_changes_or_none_is_given(
        self, memory: MemoryService
    ) -> None:
        entry_id = memory.store("railway station", embedding=unit(1.0))
        assert memory.search(vector=unit(1.0))[0].score == pytest.approx(1.0, abs=1e-5)

        memory.update(entry_id, embedding=None)

        assert memory.search("railway station", mode="semantic")[0].score == pytest.approx(
            1.0, abs=1e-5
        )
        memory.update(entry_id, embedding=unit(1.0))
        memory.update(entry_id, content="lighthouse")
        assert memory.search("lighthouse", mode="semantic")[0].score == pytest.approx(1, abs=1e-5)

    def test_vectors_of_one_bulk_update_belong_to_their_last_content(
        self, memory: MemoryService
    ) -> None:
        entry_id = memory.store("first content")

        memory.bulk_update(
            [
                (entry_id, {"content": "second content entirely"}),
                (entry_id, {"embedding": None}),
            ]
        )

        settle(memory)
        (hit,) = memory.search("second content entirely", mode="semantic")
        assert hit.score == pytest.approx(1.0, abs=1e-5)

    def test_an_entry_without_a_vector_is_absent_and_blocks_no_other(
        self, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        embedder.failing = {"without one"}
        memory.store("without one")
        others = {memory.store(f"with one {n}") for n in range(12)}

        hits = memory.search("with one", mode="semantic", limit=12)

        assert set(ids_of(hits)) == others
        assert memory.stats().index.indexed == 12

    def test_search_semantic_is_search_in_that_mode(self, memory: MemoryService) -> None:
        for number in range(5):
            memory.store(f"fact number {number}", tags=["even"] if number % 2 else [])
        settle(memory)

        assert memory.search_semantic("fact", 3) == memory.search("fact", mode="semantic", limit=3)
        assert len(memory.search_semantic("fact", tags=["even"])) == 2

    def test_a_question_of_no_direction_is_refused(self, memory: MemoryService) -> None:
        memory.store("one")

        for vector in ([0.0] * DIMENSIONS, [math.nan] * DIMENSIONS, []):
            with pytest.raises(ValueError, match="embedding"):
                memory.search(vector=vector)
