"""What every store of entries must hold of entries that say the same."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.testing.contracts.entries_base import (
    MemoryContract,
    everything,
    found,
    ids_of,
    read,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock

SAME = "The harbour is closed on Sundays"

DIFFERENT: tuple[dict[str, Any], ...] = (
    {"namespace": "other"},
    {"tags": ["t"]},
    {"metadata": {"n": 1}},
    {"user_id": "u"},
    {"content": SAME.upper()},
    {"content": SAME + "."},
    {"key": "k"},
    {"id": "mine"},
)


class DuplicateContract(MemoryContract):
    """Every promise of entries that are stored more than once."""

    def test_a56_one_sentence_of_thirteen_threads_is_one_entry(self, memory: MemoryService) -> None:
        start = Barrier(13)

        def store(_: int) -> str:
            start.wait()
            return memory.store(SAME)

        with ThreadPoolExecutor(13) as workers:
            ids = set(workers.map(store, range(13)))

        (entry,) = everything(memory)
        assert ids == {entry.id}
        assert entry.times_stored == 13

    @pytest.mark.parametrize("kind", ["semantic", "procedural"])
    def test_spaces_and_composed_letters_make_no_difference(
        self, memory: MemoryService, kind: str
    ) -> None:
        first = memory.store("Größe  is\tfine", type=kind, metadata={"a": 1, "b": 2}, tags=["t"])

        again = memory.store(
            " Gro\u0308ße is\nfine ", type=kind, metadata={"a": 1, "b": 2}, tags=["t"]
        )

        assert again == first
        assert read(memory, first).content == "Größe  is\tfine"
        assert read(memory, first).times_stored == 2

    def test_metadata_in_another_order_is_equal(self, memory: MemoryService) -> None:
        first = memory.store(SAME, metadata={"a": 1, "b": {"c": 2, "d": 3}})

        assert memory.store(SAME, metadata={"b": {"d": 3, "c": 2}, "a": 1}) == first

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ("allergic to nuts", "not allergic to nuts"),
            ("port 8090", "port 8091"),
            ("US", "us"),
            ("-5 degrees", "5 degrees"),
        ],
    )
    def test_a57_case_digits_signs_and_negations_count(
        self, memory: MemoryService, left: str, right: str
    ) -> None:
        ids = {memory.store(left), memory.store(right)}

        assert set(ids_of(everything(memory))) == ids
        assert len(ids) == 2

    @pytest.mark.parametrize("kind", ["episodic", "working"])
    def test_a57_what_happened_twice_is_stored_twice(
        self, memory: MemoryService, kind: str
    ) -> None:
        ids = {memory.store(SAME, type=kind), memory.store(SAME, type=kind)}

        assert set(ids_of(everything(memory))) == ids
        assert len(ids) == 2

    @pytest.mark.parametrize("facts", DIFFERENT, ids="-".join)
    def test_what_differs_in_a_fact_is_stored_beside(
        self, memory: MemoryService, facts: dict[str, Any]
    ) -> None:
        first = memory.store(SAME)

        second = memory.store({"content": SAME, **facts})

        third = memory.store(SAME)
        assert second != first
        assert third == first
        assert [read(memory, one).times_stored for one in (first, second)] == [2, 1]

    def test_an_entry_changed_to_say_the_same_is_counted(self, memory: MemoryService) -> None:
        first = memory.store("Something else")
        memory.update(first, content=SAME)

        assert memory.store(SAME) == first
        assert memory.store("Something else") != first

    @pytest.mark.parametrize(
        ("ttls", "expected"),
        [((60, 90), 90), ((90, 60), 90), ((60, None), None), ((None, 60), None)],
    )
    def test_the_later_expiry_is_kept(
        self,
        memory: MemoryService,
        clock: FakeClock,
        ttls: tuple[float | None, ...],
        expected: float | None,
    ) -> None:
        begin = clock.now()
        entry_id, _ = (memory.store(SAME, ttl=ttl) for ttl in ttls)

        entry = read(memory, entry_id)
        until = None if expected is None else begin + timedelta(seconds=expected)
        assert (entry.expires_at, entry.times_stored, entry.version) == (until, 2, 2)

    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            ({"source": "tool"}, {"source": "user"}, ("user", 0.8)),
            ({"source": "user"}, {"source": "tool"}, ("user", 0.8)),
            ({"source": "user", "trust": 0.1}, {"source": "tool", "trust": 0.9}, ("tool", 0.9)),
            ({"source": "import"}, {"source": "assistant"}, ("import", 0.5)),
        ],
    )
    def test_the_higher_trust_is_kept_with_its_source(
        self,
        memory: MemoryService,
        first: dict[str, Any],
        second: dict[str, Any],
        expected: tuple[str, float],
    ) -> None:
        entry_id = memory.store(SAME, **first)

        assert memory.store(SAME, **second) == entry_id

        entry = read(memory, entry_id)
        assert (entry.source, entry.trust) == expected
        assert found(memory, min_trust=expected[1], source=expected[0]) == {entry_id}

    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            (["a"], [], ()),
            ([], ["a"], ()),
            (["a", "b"], ["b", "c"], ("a", "b", "c")),
            ([f"a{n}" for n in range(1000)], ["b"], tuple(f"a{n}" for n in range(1000))),
        ],
        ids=["by itself later", "by itself before", "both derived", "at the limit"],
    )
    def test_what_was_stored_by_itself_is_derived_from_nothing(
        self,
        memory: MemoryService,
        first: list[str],
        second: list[str],
        expected: tuple[str, ...],
    ) -> None:
        entry_id = memory.store(SAME, derived_from=first)

        assert memory.store(SAME, derived_from=second) == entry_id

        assert read(memory, entry_id).derived_from == expected

    def test_a_deleted_twin_does_not_count(self, memory: MemoryService) -> None:
        first = memory.store(SAME)
        memory.delete(first)

        second = memory.store(SAME)

        assert second != first
        assert read(memory, second).times_stored == 1

    def test_merging_can_be_switched_off(self, opened: Callable[..., HierMem]) -> None:
        memory = opened(dedup="off").tenant("acme").memory

        ids = {memory.store(SAME), memory.store(SAME)}

        assert set(ids_of(everything(memory))) == ids
        assert len(ids) == 2
