"""What every search by words, and by words and meaning together, must hold."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hiermem_core.testing.contracts.entries_base import MemoryContract, ids_of, settle, unit

if TYPE_CHECKING:
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock
    from hiermem_core.testing.embedders import FakeEmbedder

OPERATORS = (
    *('"', "*", "AND", "OR NOT", "-x", "NEAR(", "col:x", "scope : t1", "^a", "a*", '"a" "b', "()"),
    *(
        "%",
        "_",
        "'; DROP TABLE keywords; --",
        "{a b}",
        "a+b",
        "\\",
        "\u202e",
        "👩‍👩‍👧",
        "(((((((",
        "a" * 900,
    ),
)
"""Texts that query languages would take for more than text."""


class KeywordContract(MemoryContract):
    """Every promise of keyword search."""

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("私はPythonでADKを使っています", "Python"),
            ("私はPythonでADKを使っています", "使って"),
            ("你好世界", "世界"),
            ("你好世界", "你"),
            ("สวัสดีชาวโลก", "ชาวโลก"),
            ("Größe und Maß", "größe"),
            ("The Café is OPEN", "open cafe"),
            ("tel. 555-0199", "0199"),
        ],
    )
    def test_a36_words_are_found_inside_unspaced_scripts_and_in_any_case(
        self, memory: MemoryService, content: str, text: str
    ) -> None:
        entry_id = memory.store(content)
        memory.store("quite another thing")

        assert ids_of(memory.search(text, mode="keyword")) == [entry_id]

    def test_a37_no_character_of_a_question_is_an_operator(self, memory: MemoryService) -> None:
        plain = memory.store("alpha harbour")
        memory.store("and or not near col scope t1 b")

        for text in OPERATORS:
            memory.search(text, mode="keyword")
            assert plain in ids_of(memory.search(f"harbour {text}", mode="keyword"))

    def test_a37_a_word_that_looks_like_an_operator_is_found_as_a_word(
        self, memory: MemoryService
    ) -> None:
        near = memory.store("a NEAR miss")
        memory.store("far away")

        assert ids_of(memory.search("NEAR", mode="keyword")) == [near]
        assert ids_of(memory.search("miss AND far", mode="keyword")) != []

    def test_tags_are_words_too_and_follow_an_update(self, memory: MemoryService) -> None:
        entry_id = memory.store("alpha", tags=["lighthouse"])
        assert ids_of(memory.search("lighthouse", mode="keyword")) == [entry_id]

        memory.update(entry_id, content="beta", tags=["pier"])

        assert ids_of(memory.search("lighthouse alpha", mode="keyword")) == []
        assert ids_of(memory.search("pier", mode="keyword")) == [entry_id]
        assert ids_of(memory.search("beta", mode="keyword")) == [entry_id]

    def test_what_is_written_is_found_at_once(self, memory: MemoryService) -> None:
        for number in range(5):
            entry_id = memory.store(f"word{number}")
            assert ids_of(memory.search(f"word{number}", mode="keyword")) == [entry_id]

    def test_the_score_is_the_share_of_bm25(self, memory: MemoryService) -> None:
        for number in range(9):
            memory.store(f"filler {number} {'more ' * number}")
        memory.store("a lighthouse, a lighthouse")
        memory.store("a lighthouse that stands alone on a rock in the sea")

        hits = memory.search("lighthouse", mode="keyword", explain=True)

        values = [hit.explanation["bm25"] for hit in hits]
        assert [hit.score for hit in hits] == pytest.approx([b / (1 + b) for b in values])
        assert values == sorted(values, reverse=True)
        assert len(values) == 2
        assert values[-1] > 0


class HybridContract(MemoryContract):
    """Every promise of search by words and meaning together."""

    def test_a38_an_old_entry_that_leads_both_indexes_is_first_with_score_one(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        old = memory.store("the lighthouse of Alexandria")
        clock.advance(86_400)
        for number in range(20):
            memory.store(f"quite another matter, number {number}")
        settle(memory)

        for fusion in ("scores", "rrf"):
            hits = memory.search("lighthouse Alexandria", mode="hybrid", fusion=fusion, limit=5)
            assert hits[0].id == old
            assert hits[0].score == pytest.approx(1.0)
            assert len(hits) == 5

    def test_either_leg_alone_finds_an_entry(self, memory: MemoryService) -> None:
        by_word = memory.store("zebra", embedding=unit(-1.0))
        by_vector = memory.store("words apart", embedding=unit(0.9))
        settle(memory)

        hits = memory.search("zebra", vector=unit(1.0), mode="hybrid")

        assert set(ids_of(hits)) == {by_word, by_vector}

    def test_an_entry_without_a_vector_is_found_by_its_words(
        self, memory: MemoryService, embedder: FakeEmbedder
    ) -> None:
        embedder.failing = {"a lonely zebra"}
        entry_id = memory.store("a lonely zebra")
        memory.store("something else")

        assert ids_of(memory.search("zebra", mode="hybrid"))[0] == entry_id

    @pytest.mark.parametrize("fusion", ["scores", "rrf"])
    def test_pages_beyond_what_the_ranking_looks_at_have_no_gap_or_repeat(
        self, memory: MemoryService, fusion: str
    ) -> None:
        drafts = [
            {
                "content": f"harbour {'word ' * (n % 7)} {n}" if n % 3 else f"sea {n}",
                "embedding": unit(((n * 37) % 400) / 200 - 1),
            }
            for n in range(400)
        ]
        memory.bulk_insert(drafts).raise_for_errors()
        settle(memory)
        query = {"mode": "hybrid", "vector": unit(1.0), "fusion": fusion}

        whole = ids_of(memory.search("harbour", limit=400, **query))
        pages = [
            ids_of(memory.search("harbour", limit=90, offset=at, **query))
            for at in range(0, 450, 90)
        ]

        assert [one for page in pages for one in page] == whole
        assert len(set(whole)) == 400
