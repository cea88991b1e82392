"""What every store of entries that outlives its process must hold of reopening and failing."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import EmbedderMismatchError
from hiermem_core.testing.contracts.entries_base import (
    DIMENSIONS,
    MemoryContract,
    everything,
    ids_of,
    modes_of,
    read,
    settle,
)
from hiermem_core.testing.embedders import FakeEmbedder
from hiermem_core.testing.faults import FaultPlan, InjectedFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.models.events import Event
    from hiermem_core.service.memory_service import MemoryService
    from hiermem_core.testing.clocks import FakeClock


class PersistenceContract(MemoryContract):
    """Every promise of entries that stay when a HierMem is closed or fails."""

    def test_what_was_stored_is_the_same_after_reopening(
        self, opened: Callable[..., HierMem]
    ) -> None:
        hiermem = opened()
        memory = hiermem.tenant("acme").memory
        for number in range(20):
            memory.store(f"alpha {number}", key=f"k{number}", metadata={"n": [number, 1.0, None]})
        memory.delete(namespace="default", key="k3")
        memory.update(ids_of(memory.search(key="k4"))[0], content="alpha, changed")
        settle(memory)
        before = picture(memory)
        hiermem.close()

        again = opened().tenant("acme").memory

        settle(again)
        assert picture(again) == before
        assert len(before[0]) == 19

    @pytest.mark.parametrize(
        "foreign",
        [
            FakeEmbedder(DIMENSIONS, "another"),
            FakeEmbedder(DIMENSIONS * 2),
        ],
        ids=["another id", "another dimension"],
    )
    def test_a_foreign_embedder_is_refused_at_open_and_nothing_is_lost(
        self, opened: Callable[..., HierMem], foreign: FakeEmbedder
    ) -> None:
        hiermem = opened()
        hiermem.tenant("acme").memory.store("one")
        before = everything(hiermem.tenant("acme").memory)
        hiermem.close()

        with pytest.raises(EmbedderMismatchError) as mismatch:
            opened(embedder=foreign)

        assert mismatch.value.stored != mismatch.value.given
        assert foreign.calls == []
        assert everything(opened().tenant("acme").memory) == before

    def test_an_embedder_that_only_bears_the_name_is_refused_at_its_first_use(
        self, opened: Callable[..., HierMem]
    ) -> None:
        hiermem = opened()
        hiermem.tenant("acme").memory.store("one")
        before = everything(hiermem.tenant("acme").memory)
        hiermem.close()
        memory = opened(embedder=FakeEmbedder(DIMENSIONS, seed=7)).tenant("acme").memory

        with pytest.raises(EmbedderMismatchError):
            memory.store("two")

        assert everything(memory) == before

    @pytest.mark.parametrize("kind", ["store", "update", "delete", "bulk_insert", "clear", "key"])
    def test_a_write_that_fails_before_its_commit_leaves_everything_as_it_was(
        self, memory: MemoryService, events: list[Event], kind: str
    ) -> None:
        one = memory.store("alpha one", key="one", tags=["t"], metadata={"n": 1})
        memory.store("alpha two", key="two")
        settle(memory)
        before = picture(memory)
        told = list(events)

        writes: dict[str, Callable[[], Any]] = {
            "store": lambda: memory.store("alpha three"),
            "update": lambda: memory.update(one, content="beta", tags=[]),
            "delete": lambda: memory.delete(one),
            "bulk_insert": lambda: memory.bulk_insert(["beta one", "beta two"]),
            "clear": lambda: memory.clear_namespace("default"),
            "key": lambda: memory.store("beta", key="two"),
        }

        with FaultPlan("rows.before_commit"), pytest.raises(InjectedFault):
            writes[kind]()

        assert changes(events) == changes(told)
        assert picture(memory) == before

    def test_a44_a_purge_that_fails_is_repeated_and_no_ghost_returns(
        self, memory: MemoryService, clock: FakeClock
    ) -> None:
        memory.bulk_insert({"content": f"alpha {n}", "ttl": 60} for n in range(10))
        living = memory.store("alpha that lives")
        settle(memory)
        clock.advance(60)

        with FaultPlan("rows.before_commit"), pytest.raises(InjectedFault):
            memory.purge_expired(limit=6)

        assert memory.stats().expired == 10
        left: list[int] = []
        while not left or left[-1]:
            left.append(memory.purge_expired(limit=6).remaining)
            assert ids_of(memory.search("alpha")) == [living]
        assert left == [4, 0]
        assert memory.stats().expired == 0

    def test_two_handles_of_one_location_see_each_other_at_once(
        self, opened: Callable[..., HierMem]
    ) -> None:
        one, other = (opened().tenant("acme").memory for _ in range(2))

        entry_id = one.store("alpha", key="k", tags=["t"])
        assert read(other, entry_id) == read(one, entry_id)
        other.update(entry_id, content="beta")
        assert read(one, entry_id).content == "beta"
        other.delete(entry_id)

        assert one.retrieve(entry_id) is None
        assert one.generation() == other.generation()


def picture(memory: MemoryService) -> list[Any]:
    """Return what a tenant holds and what each mode answers."""
    answers = {mode: memory.search("alpha", mode=mode, limit=50) for mode in modes_of(memory)}
    return [everything(memory), answers, memory.list_namespaces(), memory.generation()]


def changes(events: list[Event]) -> list[str]:
    """Return the names of the events that tell of a change."""
    quiet = {"SearchServed", "IndexCaughtUp", "IndexPending"}
    return [name for event in events if (name := type(event).__name__) not in quiet]
