"""What every store of entries must hold of one write that stores, deletes and refreshes."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import InvalidInputError, KeyConflictError
from hiermem_core.models.events import EntryDeleted, EntryStored
from hiermem_core.testing.contracts.entries_base import (
    MemoryContract,
    everything,
    ids_of,
    read,
    settle,
    unlike,
)

if TYPE_CHECKING:
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock


class WritingContract(MemoryContract):
    """Every promise of `MemoryService.write` that needs no second process."""

    def test_one_write_stores_deletes_and_refreshes(
        self, memory: MemoryService, clock: FakeClock, events: list[Event]
    ) -> None:
        kept = memory.store("kept", namespace="a", key="kept", ttl=60)
        gone = memory.store("gone", namespace="a", key="gone")
        settle(memory)
        generation = memory.generation()
        clock.advance(50)
        events.clear()

        ids = memory.write(
            [{"content": "new", "namespace": "a", "key": "new"}, "loose"],
            deleting=[("a", "gone"), (("a",), "nobody")],
            refreshing=[("a", "kept"), ("a", "nobody")],
        )

        assert [read(memory, entry_id).content for entry_id in ids] == ["new", "loose"]
        assert memory.retrieve(gone) is None
        clock.advance(50)
        assert read(memory, kept).content == "kept"
        assert memory.generation() > generation
        told = [event for event in events if isinstance(event, EntryStored | EntryDeleted)]
        assert [event.entry_id for event in told] == [*ids, gone]

    def test_a_refresh_moves_the_expiry_and_nothing_else(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        memory.store("one", key="k", ttl=60, metadata={"a": [1]}, tags=["t"])
        memory.store("two", key="l")
        settle(memory)
        before = everything(memory)
        clock.advance(30)

        memory.write(refreshing=[("default", "k"), ("default", "l")])

        for old, new in zip(before, everything(memory), strict=True):
            moved = None if old.expires_at is None else old.expires_at + timedelta(seconds=30)
            assert new == unlike(old, expires_at=moved)
        clock.advance(59)
        assert {entry.content for entry in everything(memory)} == {"one", "two"}
        clock.advance(1)
        assert [entry.content for entry in everything(memory)] == ["two"]

    def test_an_expired_entry_is_not_refreshed(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        memory.store("one", key="k", ttl=60)
        clock.advance(60)
        generation = memory.generation()

        memory.write(refreshing=[("default", "k")])

        assert memory.retrieve(namespace="default", key="k") is None
        assert memory.generation() == generation

    def test_what_is_stored_is_neither_deleted_nor_refreshed(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        old = memory.store("old", key="k", ttl=60)
        clock.advance(30)

        name = ("default", "k")
        ids = memory.write(
            [{"content": "new", "key": "k", "ttl": 90}], deleting=[name], refreshing=[name]
        )

        assert ids == [old]
        entry = read(memory, old)
        assert (entry.content, entry.version) == ("new", 2)
        assert entry.expires_at == clock.now() + timedelta(seconds=90)

    def test_what_is_deleted_is_not_refreshed(self, memory: MemoryService) -> None:
        memory.store("one", key="k", ttl=60)

        memory.write(deleting=[("default", "k")], refreshing=[("default", "k")])

        assert not memory.search()

    def test_an_entry_renamed_by_the_same_write_stays(self, memory: MemoryService) -> None:
        entry_id = memory.store("one", key="k")

        memory.write([{"content": "one", "id": entry_id, "key": "l"}], deleting=[("default", "k")])

        assert ids_of(memory.search()) == [entry_id]
        assert read(memory, entry_id).key == "l"

    @pytest.mark.parametrize(
        ("bad", "error"),
        [
            ({"content": " "}, InvalidInputError),
            ({"content": "x", "metadata": {"a": {1}}}, InvalidInputError),
            ({"content": "x", "id": "other", "key": "k"}, KeyConflictError),
        ],
    )
    def test_a_write_that_fails_changes_nothing(
        self, memory: MemoryService, clock: FakeClock, bad: Any, error: type[Exception]
    ) -> None:
        memory.store("one", key="k", ttl=60)
        memory.store("two", id="other", key="l")
        settle(memory)
        before, generation = everything(memory), memory.generation()
        clock.advance(10)

        with pytest.raises(error):
            memory.write(["fine", bad], deleting=[("default", "l")], refreshing=[("default", "k")])

        assert everything(memory) == before
        assert memory.generation() == generation

    @pytest.mark.parametrize(
        "name", [("", "k"), ("a", ""), ("a//b", "k"), ("a", None), "ak", ("a",), 7]
    )
    def test_a_name_that_is_none_is_refused(self, memory: MemoryService, name: Any) -> None:
        for given in ("deleting", "refreshing"):
            with pytest.raises(InvalidInputError):
                memory.write(["fine"], **{given: [name]})

        assert not memory.search()

    def test_a_write_of_nothing_is_none(self, memory: MemoryService) -> None:
        memory.store("one")
        generation = memory.generation()

        assert memory.write() == []
        assert memory.generation() == generation
