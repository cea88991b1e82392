"""What every search of entries must hold, in whatever mode."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from itertools import count, product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.errors import InvalidFilterError, InvalidInputError, UnsupportedSearchError
from hiermem_core.models.events import SearchServed
from hiermem_core.models.queries import MemoryQuery
from hiermem_core.testing.contracts.counters import shared
from hiermem_core.testing.contracts.entries_base import (
    TEXT_MODES,
    MemoryContract,
    found,
    ids_of,
    modes_of,
    read,
    settle,
)
from hiermem_core.testing.contracts.probes import reads_of

if TYPE_CHECKING:
    from hiermem_core import HierMem
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock

TEXT = "harbour"
"""Content, key, tag and query at once, so that every mode finds what bears it."""

RESTRICTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "namespace": ({"namespace": "in/side"}, {"namespace": "in"}),
    "type": ({"type": "procedural"}, {"type": "procedural"}),
    "tags": ({"tags": [TEXT, "a", "b"]}, {"tags": ["b", "a"]}),
    "source": ({"source": "tool"}, {"source": "tool"}),
    "min_trust": ({"trust": 0.9}, {"min_trust": 0.9}),
    "user_id": ({"user_id": "u"}, {"user_id": "u"}),
    "filter": ({"metadata": {"n": 3}}, {"filter": {"n": {"$gt": 2}}}),
}
"""What the wanted entries bear and the others do not, and the query for it."""

_names = count()


class SearchContract(MemoryContract):
    """Every promise of a search that holds in all modes a backend has."""

    def test_a_mode_that_is_missing_raises_and_never_answers_with_nothing(
        self, memory: MemoryService
    ) -> None:
        memory.store(TEXT, key=TEXT, tags=[TEXT])

        for mode in TEXT_MODES:
            if mode in modes_of(memory):
                assert len(memory.search(TEXT, mode=mode)) == 1
                continue
            with pytest.raises(UnsupportedSearchError) as missing:
                memory.search(TEXT, mode=mode)
            assert (missing.value.mode, missing.value.backend) == (mode, memory.stats().backend)
        if "semantic" not in modes_of(memory):
            with pytest.raises(UnsupportedSearchError):
                memory.search(vector=[1.0] * 32)
            with pytest.raises(UnsupportedSearchError):
                memory.search_semantic(TEXT)

    def test_without_a_mode_the_best_one_answers(
        self, memory: MemoryService, events: list[Event]
    ) -> None:
        memory.store(TEXT)

        memory.search(TEXT)
        memory.search()

        best = next(mode for mode in ("hybrid", "semantic", "keyword") if mode in modes_of(memory))
        served = [event.mode for event in events if isinstance(event, SearchServed)]
        assert served == [best, "listing"]

    def test_without_a_text_the_newest_change_comes_first(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        for name in "abcd":
            memory.store(f"one {name}", id=name)
            clock.advance(1)
        memory.store("one f", id="f")
        memory.store("one e", id="e")
        clock.advance(1)

        memory.update("b", user_id="u")

        hits = memory.search()
        assert ids_of(hits) == ["b", "e", "f", "d", "c", "a"]
        assert {hit.score for hit in hits} == {1.0}

    def test_a31_a_threshold_of_zero_keeps_all_and_is_replaced_by_no_default(
        self, memory: MemoryService
    ) -> None:
        for number in range(15):
            memory.store(f"{TEXT} number {number}", key=f"{TEXT}{number}", tags=[TEXT])
        settle(memory)

        for mode in set(modes_of(memory)) - {"exact"}:
            every = memory.search(TEXT, mode=mode, limit=100)
            assert len(every) == 15
            assert memory.search(TEXT, mode=mode, threshold=0, limit=100) == every
            assert memory.search(TEXT, mode=mode, threshold=0) == memory.search(TEXT, mode=mode)
            assert len(memory.search(TEXT, mode=mode, threshold=0)) == 10

    def test_a_threshold_keeps_the_scores_that_reach_it(self, memory: MemoryService) -> None:
        for number in range(10):
            text = " ".join([TEXT, *(f"word{n}" for n in range(number))])
            memory.store(text, key=f"{TEXT}{number}", tags=[TEXT])
        settle(memory)

        for mode in modes_of(memory):
            every = memory.search(TEXT, mode=mode, limit=100)
            for hit in every:
                kept = memory.search(TEXT, mode=mode, limit=100, threshold=hit.score)
                assert ids_of(kept) == [one.id for one in every if one.score >= hit.score]
            assert len(memory.search(TEXT, mode=mode, threshold=1.1)) == 0

    @pytest.mark.parametrize("name", RESTRICTIONS)
    def test_every_restriction_applies_before_the_limit_in_every_mode(
        self, memory: MemoryService, name: str
    ) -> None:
        facts, query = RESTRICTIONS[name]
        drafts = [
            {"content": f"{TEXT} {n}", "key": TEXT, "tags": [TEXT], "type": "episodic"}
            | {"namespace": f"out{n}"}
            for n in range(30)
        ]
        memory.bulk_insert(drafts).raise_for_errors()
        plain = {"type": "episodic", "namespace": "in", "tags": [TEXT], "key": TEXT}
        wanted = {
            memory.store({"content": f"{TEXT} {'and more ' * 20} {n}", **plain, **facts, **place})
            for n, place in enumerate([{"namespace": "in/side"}, {"namespace": "in/side/2"}])
        }
        settle(memory)

        for mode in modes_of(memory):
            hits = memory.search(TEXT, mode=mode, limit=2, **query)
            assert set(ids_of(hits)) == wanted
            assert len(memory.search(TEXT, mode=mode, limit=1, **query)) == 1
        assert found(memory, **query) == wanted

    def test_several_restrictions_mean_and(self, memory: MemoryService) -> None:
        both = memory.store("one", tags=["a"], user_id="u")
        memory.store("two", tags=["a"])
        memory.store("three", user_id="u")

        assert found(memory, tags=["a"], user_id="u") == {both}

    def test_a34_all_tags_must_be_there(self, memory: MemoryService) -> None:
        memory.store("first", tags=["a"])
        second = memory.store("second", tags=["a", "b"])
        memory.store("third", tags=["b", "ab", "A"])

        assert found(memory, tags=["a", "b"]) == {second}
        assert found(memory, tags=["a", "b"], mode="tag") == {second}
        assert ids_of(memory.search("a", mode="tag", tags=["b"])) == [second]
        assert found(memory, tags=["a", "b", "c"]) == set()

    def test_a35_a_prefix_is_meant_literally(self, memory: MemoryService) -> None:
        keys = ["a_b", "axb", "a%", "a_", "A_b", "äx", "'; --", "a*b", "[a-z]", "\\a"]
        for key in keys:
            memory.store(f"one {key}", key=key)
        memory.store("without a key")

        for prefix in ("a_", "a%", "A", "", "a", "ä", "'", "a*", "[a", "\\", "b"):
            hits = memory.search(prefix, mode="prefix", limit=100)
            assert {hit.key for hit in hits} == {key for key in keys if key.startswith(prefix)}

    def test_exact_search_compares_keys_code_point_by_code_point(
        self, memory: MemoryService
    ) -> None:
        one = memory.store("one", key="a_b")
        memory.store("two", key="a_bc")
        memory.store("three", key="A_B")
        other = memory.store("four", key="a_b", namespace="elsewhere")

        assert set(ids_of(memory.search("a_b", mode="exact"))) == {one, other}
        assert ids_of(memory.search("a_b", mode="exact", namespace="default")) == [one]
        assert ids_of(memory.search("a_b", mode="exact", key="a_bc")) == []
        assert ids_of(memory.search("a", mode="prefix", key="a_bc", namespace="default")) != [one]
        with pytest.raises(InvalidInputError):
            memory.search(mode="exact")

    @pytest.mark.parametrize("fusion", ["scores", "rrf"])
    def test_a39_equal_scores_are_paged_in_one_order_without_gap_or_repeat(
        self, memory: MemoryService, fusion: str
    ) -> None:
        drafts = [
            {"content": TEXT, "type": "episodic", "tags": [TEXT], "key": f"{TEXT} {n}"}
            for n in range(25)
        ]
        memory.bulk_insert(drafts).raise_for_errors()
        settle(memory)

        for mode in set(modes_of(memory)) - {"exact"}:
            query = {"mode": mode, "fusion": fusion}
            pages = [
                memory.search(TEXT, limit=10, offset=offset, **query) for offset in (0, 10, 20, 30)
            ]
            whole = memory.search(TEXT, limit=100, **query)
            paged = [one for page in pages for one in ids_of(page)]
            assert [len(page) for page in pages] == [10, 10, 5, 0]
            assert paged == ids_of(whole)
            assert len(set(paged)) == 25
            if fusion == "scores":
                assert paged == sorted(paged)

    def test_pages_of_unequal_scores_have_no_gap_or_repeat(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        for number in range(60):
            memory.store(f"{TEXT * (number % 2)} {'word ' * (number % 9)} {number}", tags=[TEXT])
            clock.advance(number % 3)
        settle(memory)

        for mode in set(modes_of(memory)) - {"exact", "prefix"}:
            whole = ids_of(memory.search(TEXT, mode=mode, limit=100))
            pages = [
                ids_of(memory.search(TEXT, mode=mode, limit=7, offset=at)) for at in range(0, 63, 7)
            ]
            assert [one for page in pages for one in page] == whole
            assert len(whole) == 60

    def test_the_order_is_score_then_newest_change_then_id(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        for number in range(40):
            words = [TEXT, *["word"] * (number % 4)]
            memory.store(" ".join(words), type="episodic", tags=[TEXT], key=f"{TEXT} {number}")
            clock.advance(number % 2)
        settle(memory)

        for mode in set(modes_of(memory)) - {"exact"}:
            hits = memory.search(TEXT, mode=mode, limit=100)
            keys = [(-hit.score, -hit.updated_at.timestamp(), hit.id) for hit in hits if hit.score]
            assert keys == sorted(keys)
            assert all(0.0 <= hit.score <= 1.0 for hit in hits)
            assert len(hits) == 40

    def test_a40_a_page_that_is_none_is_refused(self, memory: MemoryService) -> None:
        memory.store(TEXT)

        figures: tuple[Any, ...] = (-1, 1.0, True, "1", None)
        for name, figure, text in product(("limit", "offset"), figures, (None, TEXT)):
            with pytest.raises(InvalidInputError) as refused:
                memory.search(text, **{name: figure})
            assert refused.value.name == name

    def test_a_limit_of_zero_is_honoured(self, memory: MemoryService) -> None:
        memory.store(TEXT, key=TEXT, tags=[TEXT])

        for mode in (None, *modes_of(memory)):
            assert len(memory.search(TEXT, mode=mode, limit=0)) == 0
        assert len(memory.search(limit=0)) == 0

    def test_a41_a_type_restricts_every_mode(self, memory: MemoryService) -> None:
        types = ("episodic", "semantic", "procedural", "working")
        for number, kind in enumerate(types):
            memory.store(TEXT, type=kind, key=TEXT, tags=[TEXT], namespace=f"n{number}")
        settle(memory)

        for mode in modes_of(memory):
            for kind in types:
                hits = memory.search(TEXT, mode=mode, type=kind)
                assert [hit.type for hit in hits] == [kind]

    def test_a_blank_text_matches_nothing(self, memory: MemoryService) -> None:
        memory.store("one")

        for mode in (None, *(set(modes_of(memory)) & {"keyword", "semantic", "hybrid"})):
            for blank in ("", " ", "\n\t\u2003"):
                assert len(memory.search(blank, mode=mode)) == 0

    def test_a_bad_query_is_refused_before_anything_is_read_or_written(
        self, hiermem: HierMem, memory: MemoryService
    ) -> None:
        memory.store(TEXT)

        queries: tuple[dict[str, Any], ...] = (
            {"filter": {"f": {"$near": 1}}},
            {"filter": {"$or": []}},
            {"namespace": "a//b"},
            {"limit": -1},
            {"mode": "fuzzy"},
        )
        for query in queries:
            with reads_of(hiermem) as reads, pytest.raises(InvalidInputError):
                memory.search(TEXT, **query)
            assert (reads.rows, reads.steps) == (0, 0)
        assert issubclass(InvalidFilterError, InvalidInputError)

    def test_a_query_is_given_as_a_value_or_by_its_fields(self, memory: MemoryService) -> None:
        memory.store(TEXT, tags=["a"])
        memory.store(f"{TEXT} too", tags=["b"])
        query = MemoryQuery(text=TEXT, tags=["a"], limit=5)

        by_value = memory.search(query)

        assert by_value == memory.search(TEXT, tags=["a"], limit=5)
        assert memory.search(query, tags=["b"]) == memory.search(TEXT, tags=["b"], limit=5)
        assert [hit.content for hit in by_value] == [TEXT]

    def test_a_hit_is_the_entry_and_tells_why_only_when_asked(self, memory: MemoryService) -> None:
        entry_id = memory.store(TEXT, key=TEXT, tags=[TEXT], metadata={"n": 1}, ttl=60, user_id="u")
        settle(memory)
        entry = read(memory, entry_id)

        for mode in modes_of(memory):
            (hit,) = memory.search(TEXT, mode=mode)
            assert {name: getattr(hit, name) for name in entry.__dataclass_fields__} == {
                name: getattr(entry, name) for name in entry.__dataclass_fields__
            }
            assert hit.explanation == {}
            if mode in {"keyword", "semantic", "hybrid"}:
                (told,) = memory.search(TEXT, mode=mode, explain=True)
                assert told.explanation["plan"]
                assert told.score == hit.score

    @shared
    @given(
        tags=st.lists(st.sets(st.sampled_from("abc")), min_size=1, max_size=12),
        wanted=st.sets(st.sampled_from("abc")),
        limit=st.integers(0, 12),
    )
    def test_a_search_returns_as_many_as_match_up_to_the_limit(
        self,
        hiermem: HierMem,
        tags: list[set[str]],
        wanted: set[str],
        limit: int,
    ) -> None:
        memory = hiermem.tenant(f"limit {next(_names)}").memory
        memory.bulk_insert(
            {"content": f"{TEXT} {n}", "tags": sorted(some), "id": str(n)}
            for n, some in enumerate(tags)
        )
        matching = {str(n) for n, some in enumerate(tags) if wanted <= some}

        for mode in (None, *(set(modes_of(memory)) & {"keyword", "semantic", "hybrid"})):
            text = None if mode is None else TEXT
            hits = memory.search(text, mode=mode, tags=sorted(wanted), limit=limit)
            assert len(hits) == min(limit, len(matching))
            assert set(ids_of(hits)) <= matching
