"""What every store of entries must hold of the events it tells."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.models import events as told
from hiermem_core.testing.contracts.entries_base import MemoryContract, settle
from hiermem_core.testing.faults import FaultPlan, InjectedFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock
    from hiermem_core.testing.embedders import FakeEmbedder

_OF_CHANGES = (
    told.EntryStored,
    told.EntryUpdated,
    told.EntryDeleted,
    told.EntriesPurged,
    told.NamespaceCleared,
)


class ObservingContract(MemoryContract):
    """Every promise about the events of entries."""

    def test_a81_each_committed_change_is_told_once_and_in_order(
        self, memory: MemoryService, events: list[Event], clock: FakeClock
    ) -> None:
        one = memory.store("one", key="k")
        memory.store("two", key="k")
        memory.update(one, tags=["t"])
        memory.update("nobody", tags=["t"])
        memory.delete(one)
        memory.delete(one)
        memory.store("three", namespace="a", ttl=60)
        memory.store("four", namespace="b")
        clock.advance(60)
        memory.purge_expired()
        memory.purge_expired()
        memory.clear_namespace("b")
        memory.clear_namespace("b")

        assert [facts_of(event) for event in changes(events) if event.tenant_id == "acme"] == [
            ("EntryStored", 1),
            ("EntryStored", 2),
            ("EntryUpdated", 3),
            ("EntryDeleted",),
            ("EntryStored", 1),
            ("EntryStored", 1),
            ("EntriesPurged", 1),
            ("NamespaceCleared", "b", 1),
        ]

    def test_a81_a_bulk_insert_tells_one_event_an_entry_it_stored(
        self, memory: MemoryService, events: list[Event]
    ) -> None:
        items: list[Any] = [*(f"plum {number}" for number in range(30)), "", {"content": 7}]

        result = memory.bulk_insert(items, batch_size=10)

        stored = [event.entry_id for event in events if isinstance(event, told.EntryStored)]
        assert stored == [entry_id for entry_id in result.ids if entry_id is not None]
        assert len(stored) == 30

    def test_a81_what_is_written_at_once_of_one_entry_is_told_once(
        self, memory: MemoryService, events: list[Event]
    ) -> None:
        items = [{"content": f"plum {number}", "key": "k"} for number in range(3)]

        (entry_id, *_) = memory.bulk_insert(items).ids
        memory.bulk_update([(str(entry_id), {"tags": [tag]}) for tag in "abc"])

        assert changes(events) == [
            told.EntryStored("acme", str(entry_id), 3),
            told.EntryUpdated("acme", str(entry_id), 6),
        ]

    def test_a81_an_observer_that_raises_affects_nothing(
        self, opened: Callable[..., HierMem]
    ) -> None:
        seen = []

        def observe(event: Event) -> None:
            seen.append(event)
            raise ZeroDivisionError

        memory = opened(observer=observe).tenant("acme").memory

        ids = memory.bulk_insert(f"plum {number}" for number in range(5)).ids
        memory.update(str(ids[0]), tags=["t"])
        memory.search("plum")

        assert len([event for event in seen if isinstance(event, told.EntryStored)]) == 5
        assert memory.stats().entries == 5
        assert len([event for event in seen if isinstance(event, told.SearchServed)]) == 1

    def test_a_row_without_its_vector_is_told_and_told_again_when_it_has_it(
        self, memory: MemoryService, events: list[Event], embedder: FakeEmbedder, clock: FakeClock
    ) -> None:
        memory.store("first")
        embedder.failing = {"a pear"}
        memory.store("a pear")
        pending = [event for event in events if isinstance(event, told.IndexPending)]
        embedder.failing = ()
        clock.advance(1)

        settle(memory)

        caught_up = [event for event in events if isinstance(event, told.IndexCaughtUp)]
        assert [event.count for event in pending] == [1]
        assert {event.tenant_id for event in caught_up} == {"acme"}

    def test_events_hold_no_content(self, memory: MemoryService, events: list[Event]) -> None:
        stored = memory.store("sentinel", key="sentinel", tags=["sentinel"], metadata={"s": 1})
        memory.update(stored, content="sentinel again")
        memory.search("sentinel")
        memory.delete(stored)

        assert len(events) >= 4
        assert all("sentinel" not in repr(event) for event in events)


class RolledBackContract(MemoryContract):
    """What is told of changes that fail, by stores in a database."""

    @pytest.mark.parametrize("kind", ["store", "update", "delete", "bulk_insert", "clear", "purge"])
    def test_a81_what_is_rolled_back_is_not_told(
        self, memory: MemoryService, events: list[Event], clock: FakeClock, kind: str
    ) -> None:
        stored = memory.store("one")
        memory.store("two", ttl=60)
        settle(memory)
        clock.advance(60)
        before = list(changes(events))

        calls: dict[str, Callable[[], Any]] = {
            "store": lambda: memory.store("three"),
            "update": lambda: memory.update(stored, tags=["t"]),
            "delete": lambda: memory.delete(stored),
            "bulk_insert": lambda: memory.bulk_insert(["three", "four"]),
            "clear": lambda: memory.clear_namespace("default"),
            "purge": memory.purge_expired,
        }

        with FaultPlan("rows.before_commit"), pytest.raises(InjectedFault):
            calls[kind]()

        assert changes(events) == before


def changes(events: list[Event]) -> list[Any]:
    """Return the events that tell of changes of entries."""
    return [event for event in events if isinstance(event, _OF_CHANGES)]


def facts_of(event: Any) -> tuple[Any, ...]:
    """Return the kind of an event and its figures."""
    figures = ("version", "namespace", "count")
    return (type(event).__name__, *(getattr(event, n) for n in figures if hasattr(event, n)))
