"""What every backend must hold of forgetting while others read and write."""
# ruff: noqa: D102 - a test's name says what it holds; it looks below the public face

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import ThreadNotFoundError
from hiermem_core.models.notes import ThreadState
from hiermem_core.models.turns import TurnDraft
from hiermem_core.testing.contracts.entries_base import DIMENSIONS, MemoryContract, ids_of
from hiermem_core.testing.contracts.forgetting import noted
from hiermem_core.testing.contracts.probes import notes_store
from hiermem_core.testing.embedders import FakeEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem, Tenant
    from hiermem_core.service.memory_service import MemoryService

_WAIT = 30.0


class ForgettingInFlightContract(MemoryContract):
    """Every promise of `forget` about what is being written at the time."""

    @pytest.fixture
    def tenant(self, hiermem: HierMem) -> Tenant:
        """Give the tenant that forgets."""
        return hiermem.tenant("acme")

    def test_a54_a_bulk_insert_in_flight_stores_nothing_that_was_forgotten(
        self, opened: Callable[..., HierMem]
    ) -> None:
        embedder, memory, forget = held(opened)
        memory.store("old", key="k", user_id="bob")
        memory.store("said twice", user_id="bob")
        items = [{"content": f"new {n}", "user_id": "bob"} for n in range(20)]
        items += [{"content": "new", "key": "k", "user_id": "bob"}]
        items += [{"content": "said twice", "user_id": "bob"}]

        with in_flight(embedder, lambda: memory.bulk_insert(items, batch_size=50)):
            receipt = forget(user_id="bob")

        stored = memory.search(limit=100)
        assert receipt.counts["entries"] == 2
        assert len(stored) == 22
        assert {(hit.version, hit.times_stored) for hit in stored} == {(1, 1)}
        assert "old" not in {hit.content for hit in stored}

    def test_a54_an_update_in_flight_stores_nothing_that_was_forgotten(
        self, opened: Callable[..., HierMem]
    ) -> None:
        embedder, memory, forget = held(opened)
        entry_id = memory.store("old")

        with in_flight(embedder, lambda: memory.update(entry_id, content="new")) as updated:
            forget(ids=[entry_id])

        assert updated == [None]
        assert len(memory.search()) == 0

    def test_a54_a_vector_in_flight_is_not_stored_for_what_was_forgotten(
        self, opened: Callable[..., HierMem]
    ) -> None:
        embedder, memory, forget = held(opened)
        embedder.failing = {"late"}
        entry_id = memory.store("late")
        embedder.failing = ()

        with in_flight(embedder, lambda: memory.wait_for_index(_WAIT)):
            forget(ids=[entry_id])

        index = memory.stats().index
        assert (index.indexed, index.pending, index.failed) == (0, 0, 0)

    def test_a54_notes_in_flight_are_not_stored_for_what_was_forgotten(
        self, hiermem: HierMem, tenant: Tenant
    ) -> None:
        notes = notes_store(hiermem)
        turns = [TurnDraft(role="user", content="by bob", user_id="bob")]
        turns += [TurnDraft(role="assistant", content="to bob")]
        old = ThreadState("Bob was here.", turn_count=2)
        for name in ("whole", "user"):
            tenant.thread(name).append(turns)
        marks = {name: notes.read("acme", name).mark for name in ("whole", "user")}

        tenant.forget(thread_id="whole")
        tenant.forget(user_id="bob")

        with pytest.raises(ThreadNotFoundError):
            notes.commit("acme", "whole", old, onto=marks["whole"])
        tenant.thread("whole").append(turns)
        assert not notes.commit("acme", "whole", old, onto=marks["whole"])
        assert not notes.commit("acme", "user", old, onto=marks["user"])
        fresh = notes.read("acme", "user").mark
        assert notes.commit("acme", "user", ThreadState("Somebody answered."), onto=fresh)

    def test_turns_before_a_reset_are_not_learned_after_a_user_is_forgotten(
        self, hiermem: HierMem, tenant: Tenant
    ) -> None:
        thread = noted(hiermem, tenant.thread("t1"), user="eve")
        thread.reset()
        thread.append([TurnDraft(role="user", content="by bob", user_id="bob")])

        tenant.forget(user_id="bob")

        assert thread.state().turn_count == 2

    def test_sixteen_threads_forget_and_store_at_once(
        self, hiermem: HierMem, tenant: Tenant
    ) -> None:
        def work(number: int) -> None:
            tenant.remember(f"kept {number}", user_id="eve")
            tenant.remember(f"gone {number}", user_id=f"u{number}")
            assert tenant.forget(user_id=f"u{number}").counts["entries"] == 1

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))

        assert tenant.forget(user_id="u0").complete
        assert {hit.user_id for hit in tenant.memory.search(limit=100)} == {"eve"}


def held(
    opened: Callable[..., HierMem],
) -> tuple[FakeEmbedder, MemoryService, Callable[..., Any]]:
    """Return an embedder with an open gate, and entries of a tenant and how to forget them."""
    gate = threading.Event()
    gate.set()
    embedder = FakeEmbedder(DIMENSIONS, gate=gate)
    tenant = opened(embedder=embedder).tenant("acme")
    tenant.memory.store("first")
    tenant.memory.delete(ids_of(tenant.memory.search())[0])
    return embedder, tenant.memory, tenant.forget


class in_flight:  # noqa: N801 - read as a phrase
    """Run a call that embeds, and the block while the embedder is at it; give what it returned."""

    def __init__(self, embedder: FakeEmbedder, call: Callable[[], Any]) -> None:
        self._embedder = embedder
        self._result: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._result.append(call()))

    def __enter__(self) -> list[Any]:
        """Start the call, and wait until it embeds."""
        assert self._embedder.gate is not None
        self._embedder.gate.clear()
        self._embedder.waiting.clear()
        self._thread.start()
        assert self._embedder.waiting.wait(_WAIT)
        return self._result

    def __exit__(self, *failure: object) -> None:
        """Let the call end."""
        assert self._embedder.gate is not None
        self._embedder.gate.set()
        self._thread.join(_WAIT)
        assert not self._thread.is_alive()
