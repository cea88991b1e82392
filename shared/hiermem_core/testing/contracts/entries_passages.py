"""What every store of entries must hold of passages: several vectors of one entry."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hiermem_core.errors import InvalidInputError, LimitExceededError
from hiermem_core.testing.contracts.entries_base import (
    DIMENSIONS,
    MemoryContract,
    ids_of,
    modes_of,
    read,
    settle,
    unit,
)
from hiermem_core.testing.contracts.index_probes import texts_of
from hiermem_core.testing.embedders import FakeEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.service.memory_service import MemoryService

FRUIT = ("ripe pears", "green apples", "sour cherries")


class PassageContract(MemoryContract):
    """Every promise about entries that are found by several texts, or by none."""

    def test_the_best_passage_is_the_score(self, memory: MemoryService) -> None:
        fruit = memory.store("a basket", passages=FRUIT)
        plain = memory.store("ripe cars")
        settle(memory)

        for text in FRUIT:
            (first, second) = memory.search_semantic(text, 10)
            assert (first.id, second.id) == (fruit, plain)
            assert first.score == pytest.approx(1.0, abs=1e-5)
            assert second.score < 0.9
        assert read(memory, fruit).passages == FRUIT
        assert read(memory, plain).passages is None

    def test_an_entry_is_found_once_and_takes_no_other_entrys_place(
        self, memory: MemoryService
    ) -> None:
        near = [f"pear {n}" for n in range(40)]
        basket = memory.store("a basket", passages=near)
        others = {memory.store(f"pear of {n}") for n in range(6)}
        settle(memory)

        hits = memory.search_semantic("pear", 7)
        page = memory.search_semantic("pear", 3, offset=3)

        assert {*ids_of(hits)} == {basket, *others}
        assert ids_of(page) == ids_of(hits)[3:6]
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        restricted = memory.search_semantic("pear", 7, filter={"$not": {"a": 1}})
        assert ids_of(restricted) == ids_of(hits)

    def test_an_entry_without_a_passage_is_never_found_by_meaning_and_waits_for_nothing(
        self, hiermem: HierMem, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        memory.store("pears")
        silent = memory.store("apples", passages=[], key="k")
        settle(memory)
        assert texts_of(embedder) == {"pears"}

        assert silent not in ids_of(memory.search_semantic("apples", 10))
        assert silent in ids_of(memory.search())
        assert memory.stats().index.pending == 0
        assert hiermem.doctor().is_sound
        hiermem.reindex(FakeEmbedder(DIMENSIONS, "other"))
        assert silent not in ids_of(memory.search_semantic("apples", 10))
        assert hiermem.doctor(repair=True).is_sound

    def test_passages_are_embedded_again_only_where_they_change(
        self, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        entry_id = memory.store("a basket", passages=FRUIT, key="k")
        settle(memory)
        before = len(embedder.calls)

        memory.update(entry_id, content="a bowl")
        memory.store("a jar", passages=FRUIT, key="k")
        settle(memory)
        assert texts_of(embedder, before) == set()

        memory.update(entry_id, passages=["plums", "figs"])
        settle(memory)
        assert texts_of(embedder, before) == {"plums", "figs"}
        assert memory.search_semantic("figs", 1)[0].score == pytest.approx(1.0, abs=1e-5)
        assert memory.search_semantic("ripe pears", 1)[0].score < 0.9

        memory.update(entry_id, passages=None)
        settle(memory)
        assert memory.search_semantic("a jar", 1)[0].score == pytest.approx(1.0, abs=1e-5)
        assert memory.search_semantic("figs", 1)[0].score < 0.9

    def test_an_entry_waits_whole_where_the_embedder_fails_at_one_passage(
        self, opened: Callable[..., HierMem]
    ) -> None:
        failing = {"green apples"}
        hiermem = opened(embedder=FakeEmbedder(DIMENSIONS, failing=failing))
        memory = hiermem.tenant("acme").memory

        entry_id = memory.store("a basket", passages=FRUIT)
        assert memory.search_semantic("ripe pears", 5) == memory.search_semantic("figs", 5)
        failing.clear()
        settle(memory)

        assert ids_of(memory.search_semantic("ripe pears", 5)) == [entry_id]
        assert hiermem.doctor().is_sound

    def test_vectors_are_given_one_a_passage_and_read_back(self, memory: MemoryService) -> None:
        rows = [unit(1.0), unit(0.6)]

        entry_id = memory.store("a basket", passages=["a", "b"], embedding=rows)
        settle(memory)

        entry = memory.retrieve(entry_id, include_embedding=True)
        assert entry is not None
        assert np.allclose(np.asarray(entry.embedding), rows)
        assert memory.search(vector=unit(0.6), limit=1)[0].score == pytest.approx(1.0, abs=1e-5)
        assert memory.store(entry) == entry_id
        again = memory.retrieve(entry_id, include_embedding=True)
        assert again is not None
        assert again.embedding == entry.embedding

    @pytest.mark.parametrize(
        "fields",
        [
            {"passages": ["a", "b"], "embedding": unit(1.0)},
            {"passages": ["a", "b"], "embedding": [unit(1.0)]},
            {"embedding": [unit(1.0), unit(0.5)]},
            {"passages": ["a"], "embedding": [[0.0] * DIMENSIONS]},
            {"passages": ["a", " "]},
            {"passages": "a"},
            {"passages": [1]},
        ],
    )
    def test_passages_that_cannot_be_stored_are_refused(
        self, memory: MemoryService, fields: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidInputError):
            memory.store("a basket", **fields)

        entry_id = memory.store("a bowl")
        with pytest.raises(InvalidInputError):
            memory.update(entry_id, **fields)
        assert ids_of(memory.search()) == [entry_id]

    def test_more_than_a_thousand_passages_are_refused(self, memory: MemoryService) -> None:
        with pytest.raises(LimitExceededError):
            memory.store("a basket", passages=["a"] * 1001)

    def test_hybrid_search_takes_the_best_passage_of_what_words_found(
        self, memory: MemoryService
    ) -> None:
        if "hybrid" not in modes_of(memory):
            return
        passages = ("sour cherries", "cars", "a basket of ripe pears")
        memory.store("lighthouse", passages=passages)
        memory.bulk_insert([f"a basket of ripe pears {n}" for n in range(300)])
        settle(memory)

        text = "lighthouse a basket of ripe pears"
        hits = memory.search(text, limit=10, explain=True)

        (found,) = [hit for hit in hits if hit.content == "lighthouse"]
        near = {hit.id: hit.score for hit in memory.search_semantic(text, 400)}
        assert found.explanation["cosine"] == pytest.approx(near[found.id], abs=1e-5)

    def test_a_reindex_makes_a_vector_for_each_passage(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        entry_id = memory.store("a basket", passages=FRUIT)
        memory.store("pears")
        settle(memory)
        other = FakeEmbedder(DIMENSIONS, "other", seed=3)

        report = hiermem.reindex(other)
        settle(memory)

        assert (report.rows, report.embedded) == (2, 2)
        assert texts_of(other) >= {*FRUIT, "pears"}
        for text in FRUIT:
            assert memory.search_semantic(text, 1)[0].id == entry_id
        assert memory.stats().index.indexed == 2
        assert hiermem.doctor().is_sound

    def test_nothing_is_left_of_a_deleted_entry(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        entry_id = memory.store("a basket", passages=FRUIT)
        settle(memory)

        memory.delete(entry_id)
        settle(memory)

        assert not memory.search_semantic("ripe pears", 5)
        assert memory.stats().index.indexed == 0
        assert hiermem.doctor().is_sound
