"""What every store of entries must hold of entries that live for a time."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from hiermem_core.errors import InvalidInputError
from hiermem_core.models.events import EntriesPurged
from hiermem_core.testing.contracts.entries_base import (
    MemoryContract,
    every_way,
    everything,
    ids_of,
    reached,
    read,
    settle,
)

if TYPE_CHECKING:
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock


class ExpiryContract(MemoryContract):
    """Every promise of expiry and purging that needs no second process."""

    def test_a42_an_entry_is_there_until_its_last_moment_and_absent_from_then_on(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        text = "lighthouse"
        entry_id = memory.store(text, namespace="here", key=text, tags=[text], ttl=60)
        settle(memory)

        clock.advance(59.999)
        assert reached(memory, entry_id, text) == every_way(memory)
        assert memory.stats().expired == 0
        clock.advance(0.001)

        assert reached(memory, entry_id, text) == set()
        assert memory.stats().expired == 1

    def test_a42_no_write_reaches_an_expired_entry(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        entry_id = memory.store("one", key="k", ttl=60)
        generation = memory.generation()
        clock.advance(60)

        assert memory.update(entry_id, content="two") is None
        assert memory.delete(entry_id) is False
        assert memory.delete(namespace="default", key="k") is False
        assert dict(memory.bulk_update([(entry_id, {"ttl": None})])) == {entry_id: None}
        assert dict(memory.bulk_delete([entry_id])) == {entry_id: False}
        assert memory.clear_namespace("default") == 0
        assert memory.generation() == generation

    @pytest.mark.parametrize("is_updated", [False, True], ids=["stored", "updated"])
    def test_the_names_of_an_expired_entry_are_free(
        self, memory: MemoryService, clock: FakeClock, *, is_updated: bool
    ) -> None:
        old = memory.store("old", id="mine", key="k", tags=["t"], ttl=60)
        other = memory.store("other", id="other")
        clock.advance(60)

        if is_updated:
            assert memory.update(other, key="k") is not None
        else:
            assert memory.store("new", id="other", key="k") == other

        entry = memory.retrieve(namespace="default", key="k")
        assert entry is not None
        assert (entry.id, entry.version) == (other, 2)
        assert memory.retrieve(old) is None
        assert memory.store("again", id="mine") == "mine"
        assert read(memory, "mine").version == 1

    def test_an_expired_entry_is_no_twin(self, memory: MemoryService, clock: FakeClock) -> None:
        first = memory.store("the same", ttl=60)
        clock.advance(60)

        second = memory.store("the same")

        assert second != first
        assert read(memory, second).times_stored == 1

    def test_only_a_stored_time_to_live_moves_the_expiry(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        entry_id = memory.store("one", ttl=60)
        first = read(memory, entry_id).expires_at
        clock.advance(30)

        memory.retrieve(entry_id)
        memory.search("one", mode="exact")
        memory.update(entry_id, content="two", metadata={"n": 1}, type="episodic")
        assert read(memory, entry_id).expires_at == first
        updated = memory.update(entry_id, ttl=60)

        assert updated is not None
        assert updated.expires_at == clock.now() + timedelta(seconds=60)

    @pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), True, "60", 1e12])
    def test_a_time_to_live_that_is_none_is_refused(
        self, memory: MemoryService, ttl: float
    ) -> None:
        entry_id = memory.store("one")
        before = everything(memory)

        with pytest.raises(InvalidInputError):
            memory.store("two", ttl=ttl)
        with pytest.raises(InvalidInputError):
            memory.update(entry_id, ttl=ttl)

        assert everything(memory) == before

    def test_a43_a_purge_removes_in_steps_until_nothing_remains(
        self, memory: MemoryService, clock: FakeClock, events: list[Event]
    ) -> None:
        drafts = [{"content": f"fact {n}", "key": f"k{n}", "ttl": 60} for n in range(2_500)]
        memory.bulk_insert(drafts, batch_size=500).raise_for_errors()
        living = memory.store("fact that lives", tags=["t"])
        settle(memory)
        clock.advance(60)

        steps = [memory.purge_expired(limit=1000) for _ in range(4)]

        settle(memory)
        stats = memory.stats()
        assert [(one.removed, one.remaining) for one in steps] == [
            *((1000, 1500), (1000, 500), (500, 0), (0, 0))
        ]
        assert [event.count for event in events if isinstance(event, EntriesPurged)] == [
            *(1000, 1000, 500)
        ]
        assert (stats.expired, stats.index.indexed, stats.index.pending) == (0, 1, 0)
        assert ids_of(everything(memory)) == [living]

    def test_a_purge_of_nothing_removes_nothing(self, memory: MemoryService) -> None:
        memory.store("one")
        generation = memory.generation()

        assert memory.purge_expired().removed == 0
        assert memory.purge_expired(limit=0).removed == 0
        with pytest.raises(InvalidInputError):
            memory.purge_expired(limit=-1)

        assert memory.generation() == generation
