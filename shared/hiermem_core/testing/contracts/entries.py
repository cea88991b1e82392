"""What a store of entries must hold: storing, reading, changing and deleting one."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import (
    InvalidInputError,
    KeyConflictError,
    VersionConflictError,
)
from hiermem_core.models.entries import MEMORY_TYPES, MemoryEntry
from hiermem_core.testing.contracts.entries_base import (
    MemoryContract,
    everything,
    found,
    ids_of,
    modes_of,
    settle,
    unlike,
)
from hiermem_core.testing.contracts.entries_probes import Meddling

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock


class EntryContract(MemoryContract):
    """Every promise of one entry at a time that needs no second process."""

    def test_what_is_stored_is_read_back_field_by_field(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        given = {
            "namespace": ("notes", "trips"),
            "type": "procedural",
            "key": "lisbon",
            "tags": ["b", "a", "b"],
            "metadata": {"year": 2025},
            "ttl": 60,
            "source": "tool",
            "trust": 0.25,
            "derived_from": ["other"],
            "user_id": "u1",
        }

        entry_id = memory.store("Take the tram", **given)

        assert memory.retrieve(entry_id) == MemoryEntry(
            id=entry_id,
            content="Take the tram",
            namespace="notes/trips",
            type="procedural",
            key="lisbon",
            tags=("b", "a"),
            metadata={"year": 2025},
            created_at=clock.now(),
            updated_at=clock.now(),
            ttl=60.0,
            expires_at=clock.now() + timedelta(seconds=60),
            version=1,
            times_stored=1,
            source="tool",
            trust=0.25,
            derived_from=("other",),
            user_id="u1",
        )

    def test_a1_storing_under_a_key_again_replaces_the_entry(self, memory: MemoryService) -> None:
        first = memory.store("Bern", namespace="notes", key="city", tags=["old"], metadata={"n": 1})

        second = memory.store("Basel", namespace="notes", key="city")

        entry = memory.retrieve(first)
        assert second == first
        assert entry is not None
        assert (entry.content, entry.version, entry.tags, entry.metadata) == ("Basel", 2, (), {})
        assert memory.retrieve(namespace="notes", key="city") == entry
        assert memory.stats().entries == 1
        assert found(memory, tags=["old"]) == set()

    def test_storing_under_an_id_again_keeps_id_and_creation_and_replaces_the_rest(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        memory.store("one", id="mine", namespace="a", key="k", tags=["t"], user_id="u", ttl=9)
        created = clock.now()
        clock.advance(5)

        assert memory.store("two", id="mine", type="episodic", source="tool") == "mine"

        (entry,) = everything(memory)
        assert (entry.created_at, entry.updated_at) == (created, clock.now())
        assert (entry.content, entry.namespace, entry.key) == ("two", "default", None)
        assert (entry.type, entry.source, entry.trust) == ("episodic", "tool", 0.3)
        assert (entry.tags, entry.user_id, entry.ttl, entry.expires_at) == ((), None, None, None)
        assert entry.version == 2

    def test_a2_sixteen_threads_under_one_key_leave_one_entry_of_version_sixteen(
        self, memory: MemoryService
    ) -> None:
        start = Barrier(16)

        def store(number: int) -> str:
            start.wait()
            return memory.store(f"content {number}", namespace="notes", key="city")

        with ThreadPoolExecutor(16) as workers:
            ids = set(workers.map(store, range(16)))

        (entry,) = everything(memory)
        assert ids == {entry.id}
        assert entry.version == 16
        assert entry.content in {f"content {number}" for number in range(16)}
        assert memory.retrieve(namespace="notes", key="city") == unlike(entry, embedding=None)

    def test_a3_a_deleted_key_is_stored_again_as_a_new_entry(self, memory: MemoryService) -> None:
        first = memory.store("one", namespace="notes", key="city")
        memory.store("one more", namespace="notes", key="city")
        assert memory.delete(namespace="notes", key="city")

        second = memory.store("two", namespace="notes", key="city")

        entry = memory.retrieve(namespace="notes", key="city")
        assert entry is not None
        assert (entry.id, entry.version, entry.content) == (second, 1, "two")
        assert second != first
        assert memory.retrieve(first) is None

    def test_a4_deleting_a_key_leaves_the_same_key_elsewhere(self, memory: MemoryService) -> None:
        one = memory.store("one", namespace="a", key="city")
        other = memory.store("two", namespace="b", key="city")

        assert memory.delete(namespace="a", key="city")

        assert not memory.delete(namespace="a", key="city")
        assert memory.retrieve(one) is None
        assert ids_of(everything(memory)) == [other]

    def test_a5_of_two_updates_that_expect_one_version_one_wins(
        self, memory: MemoryService
    ) -> None:
        entry_id = memory.store("first")
        start = Barrier(2)

        def update(content: str) -> MemoryEntry | VersionConflictError | None:
            start.wait()
            try:
                return memory.update(entry_id, content=content, expected_version=1)
            except VersionConflictError as conflict:
                return conflict

        with ThreadPoolExecutor(2) as workers:
            outcomes = list(workers.map(update, ["left", "right"]))

        (won,) = [outcome for outcome in outcomes if isinstance(outcome, MemoryEntry)]
        (lost,) = [outcome for outcome in outcomes if isinstance(outcome, VersionConflictError)]
        assert (lost.expected, lost.actual) == (1, 2)
        assert memory.retrieve(entry_id) == won
        assert won.version == 2

    def test_a5_zero_is_an_expectation_too(self, memory: MemoryService) -> None:
        entry_id = memory.store("first")

        with pytest.raises(VersionConflictError):
            memory.update(entry_id, content="second", expected_version=0)

        assert [entry.content for entry in everything(memory)] == ["first"]

    def test_a9_tags_of_any_script_are_found_exactly(self, memory: MemoryService) -> None:
        one = memory.store("one", tags=["größe", "日本"])
        other = memory.store("two", tags=["gro\u0308ße", "日", "Größe"])

        assert found(memory, tags=["größe"]) == found(memory, tags=["日本"]) == {one}
        assert ids_of(memory.search("日本", mode="tag")) == [one]
        assert found(memory, tags=["gro\u0308ße"]) == {other}

    def test_a10_an_update_of_tags_moves_neither_expiry_nor_creation(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        entry_id = memory.store("text", ttl=60, tags=["a"], metadata={"n": 1})
        stored = memory.retrieve(entry_id)
        assert stored is not None
        clock.advance(10)

        updated = memory.update(entry_id, tags=["b"])

        assert updated == unlike(stored, tags=("b",), version=2, updated_at=clock.now())
        assert memory.retrieve(entry_id) == updated
        assert (found(memory, tags=["a"]), found(memory, tags=["b"])) == (set(), {entry_id})

    def test_a13_the_first_calls_of_sixteen_threads_are_writes(self, memory: MemoryService) -> None:
        start = Barrier(16)

        def store(number: int) -> str:
            start.wait()
            return memory.store(f"fact {number}")

        with ThreadPoolExecutor(16) as workers:
            ids = list(workers.map(store, range(16)))

        assert set(ids_of(everything(memory))) == set(ids)
        assert len(set(ids)) == 16

    def test_a55_a_deleted_entry_is_absent_at_once_in_every_mode(
        self, memory: MemoryService
    ) -> None:
        content = "harbour lights"
        gone = memory.store(content, key=content, tags=[content])
        left = memory.store("harbour lights at night", namespace="other", key=content + "!")
        settle(memory)
        assert all(gone in ids_of(memory.search(content, mode=mode)) for mode in modes_of(memory))

        assert memory.delete(gone)

        assert not memory.delete(gone)
        for mode in modes_of(memory):
            assert gone not in ids_of(memory.search(content, mode=mode))
        assert ids_of(memory.search()) == [left]
        assert memory.retrieve(gone) is None

    @pytest.mark.parametrize("cleared", ["ttl", "key", "user_id"])
    def test_none_is_a_value_in_an_update(self, memory: MemoryService, cleared: str) -> None:
        entry_id = memory.store("text", ttl=60, key="k", user_id="u")

        updated = memory.update(entry_id, {cleared: None})  # type: ignore[arg-type]  # wrong on purpose

        assert updated is not None
        assert getattr(updated, cleared) is None
        assert memory.retrieve(entry_id) == updated
        assert (updated.expires_at is None) == (cleared == "ttl")

    @pytest.mark.parametrize("name", ["id", "namespace", "created_at", "source", "version", "x"])
    def test_what_is_fixed_or_unknown_cannot_be_updated(
        self, memory: MemoryService, name: str
    ) -> None:
        entry_id = memory.store("text")
        before = everything(memory)

        with pytest.raises(InvalidInputError) as refused:
            memory.update(entry_id, {name: "other", "content": "new"})  # type: ignore[arg-type]  # wrong on purpose

        assert refused.value.name == name
        assert everything(memory) == before

    def test_updating_or_deleting_what_is_not_there_says_so(self, memory: MemoryService) -> None:
        assert memory.update("nobody", content="x") is None
        assert memory.delete("nobody") is False
        assert memory.delete(namespace="a", key="b") is False
        assert memory.retrieve("nobody") is None
        assert memory.retrieve(namespace="a", key="b") is None

    def test_an_id_and_a_key_of_two_entries_conflict(self, memory: MemoryService) -> None:
        memory.store("one", id="one", key="first")
        memory.store("two", id="two", key="second")
        before = everything(memory)

        for attempt in (
            lambda: memory.store("three", id="one", key="second"),
            lambda: memory.store("three", id="three", key="second"),
            lambda: memory.update("one", key="second"),
        ):
            with pytest.raises(KeyConflictError) as conflict:
                attempt()
            assert conflict.value.key == "second"

        assert everything(memory) == before

    def test_a_type_that_is_none_is_refused_with_the_allowed_names(
        self, memory: MemoryService
    ) -> None:
        with pytest.raises(InvalidInputError) as refused:
            memory.store("text", type="fact")

        assert all(name in str(refused.value) for name in MEMORY_TYPES)
        assert everything(memory) == []

    def test_a_retrieved_entry_can_be_stored_again(self, memory: MemoryService) -> None:
        entry_id = memory.store("text", tags=["a"], metadata={"n": [1]}, user_id="u", trust=0.1)
        entry = memory.retrieve(entry_id, include_embedding=True)
        assert entry is not None

        assert memory.store(entry) == entry_id

        assert memory.retrieve(entry_id, include_embedding=True) == unlike(
            entry, version=2, times_stored=2
        )

    def test_fresh_ids_sort_by_time(self, memory: MemoryService, clock: FakeClock) -> None:
        ids = []
        for number in range(20):
            ids.append(memory.store(f"fact {number}"))
            clock.advance(0.001)

        assert ids == sorted(ids)
        assert len(set(ids)) == 20

    def test_the_generation_grows_with_every_change_and_with_nothing_else(
        self, memory: MemoryService
    ) -> None:
        seen = [memory.generation()]

        entry_id = memory.store("text", ttl=60)
        seen.append(memory.generation())
        memory.update(entry_id, content="other")
        seen.append(memory.generation())
        memory.delete(entry_id)
        seen.append(memory.generation())

        assert seen == sorted(set(seen))
        memory.retrieve(entry_id)
        memory.search("text", mode="exact")
        memory.delete(entry_id)
        memory.update(entry_id, content="x")
        assert memory.generation() == seen[-1]

    @pytest.mark.parametrize("changes", [None, {}])
    def test_an_update_without_a_field_changes_nothing(
        self, memory: MemoryService, clock: FakeClock, events: list[Event], changes: Any
    ) -> None:
        entry_id = memory.store("text")
        entry, generation, told = memory.retrieve(entry_id), memory.generation(), len(events)
        clock.advance(1)

        assert memory.update(entry_id, changes) == entry
        (answer,) = memory.bulk_update([(entry_id, {})]).values()

        assert answer == memory.retrieve(entry_id) == entry
        assert (memory.generation(), len(events)) == (generation, told)
        with pytest.raises(VersionConflictError):
            memory.update(entry_id, changes, expected_version=7)

    def test_a_key_that_is_passed_on_meanwhile_is_deleted_where_it_is(
        self, opened: Callable[..., HierMem]
    ) -> None:
        clock = Meddling()
        memory = opened(clock=clock).tenant("acme").memory
        memory.store("one", id="one", key="k")
        clock.action = lambda: (
            memory.update("one", key=None) and memory.store("two", id="two", key="k")
        )

        deleted = memory.delete(key="k")
        clock.action = None

        assert deleted
        assert memory.retrieve(key="k") is None
        assert not memory.delete(key="k")
