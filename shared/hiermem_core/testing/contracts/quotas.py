"""What every store must hold of quotas."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import ConfigurationError, QuotaExceededError
from hiermem_core.models.events import EntryStored, QuotaRejected
from hiermem_core.models.quotas import Quota
from hiermem_core.testing.contracts.entries_base import MemoryContract, everything, found

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.models.events import Event
    from hiermem_core.testing.clocks import FakeClock


class QuotaContract(MemoryContract):
    """Every promise of quotas on entries and turns.

    A subclass gives the fixture `opened`.
    """

    def test_a71_of_two_hundred_writes_of_twenty_threads_exactly_the_quota_is_stored(
        self, opened: Callable[..., HierMem], events: list[Event]
    ) -> None:
        memory = opened(quota=Quota(max_entries=100)).tenant("acme").memory

        def write(writer: int) -> list[QuotaExceededError]:
            rejected = []
            for number in range(10):
                try:
                    memory.store(f"entry {number} of writer {writer}")
                except QuotaExceededError as error:
                    rejected.append(error)
            return rejected

        with ThreadPoolExecutor(20) as pool:
            rejected = [error for errors in pool.map(write, range(20)) for error in errors]

        told = [event for event in events if isinstance(event, QuotaRejected)]
        assert memory.stats().entries == 100
        assert [(e.name, e.limit, e.used, e.requested) for e in rejected] == [
            ("max_entries", 100, 100, 1)
        ] * 100
        assert told == [QuotaRejected("acme", "max_entries", 100, 100, 1)] * 100
        assert sum(isinstance(event, EntryStored) for event in events) == 100

    def test_a72_what_expires_makes_room_without_a_purge(
        self, opened: Callable[..., HierMem], clock: FakeClock
    ) -> None:
        memory = opened(quota=Quota(max_entries=30, max_bytes=3000)).tenant("acme").memory
        memory.bulk_insert([f"kept {number:02}" for number in range(20)]).raise_for_errors()
        short = [{"content": f"short {number}", "ttl": 60} for number in range(10)]
        memory.bulk_insert(short).raise_for_errors()
        with pytest.raises(QuotaExceededError):
            memory.store("one more")

        clock.advance(60)

        for number in range(10):
            memory.store(f"later {number}")
        with pytest.raises(QuotaExceededError) as refused:
            memory.store("one too many")
        assert (refused.value.used, memory.stats().entries) == (30, 30)

    def test_what_is_deleted_makes_room_at_once(self, opened: Callable[..., HierMem]) -> None:
        memory = opened(quota=Quota(max_entries=2)).tenant("acme").memory
        first = memory.store("one")
        memory.store("two", key="k")

        memory.delete(first)
        memory.store("three")
        memory.delete(key="k")
        memory.store("four")
        memory.clear_namespace("default")
        memory.bulk_insert(["five", "six"]).raise_for_errors()
        memory.forget(everything=True)
        memory.bulk_insert(["seven", "eight"]).raise_for_errors()

        with pytest.raises(QuotaExceededError):
            memory.store("nine")

    def test_what_is_replaced_changed_or_stored_again_is_no_entry_more(
        self, opened: Callable[..., HierMem]
    ) -> None:
        memory = opened(quota=Quota(max_entries=1)).tenant("acme").memory
        entry_id = memory.store("one", key="k")

        assert memory.store("two", key="k") == entry_id
        assert memory.store("three", id=entry_id) == entry_id
        memory.update(entry_id, content="four")
        merged = memory.bulk_insert(["five", "six"])

        assert [failure.index for failure in merged.failed] == [0, 1]

    def test_a_pattern_is_counted_as_its_entry(self, opened: Callable[..., HierMem]) -> None:
        tenant = opened(quota=Quota(max_entries=1)).tenant("acme")
        tenant.patterns.learn("one", {"then": "wait"})

        with pytest.raises(QuotaExceededError):
            tenant.patterns.learn("two", {"then": "wait"})

        tenant.patterns.learn("one", {"then": "wait longer"})
        tenant.patterns.delete("one")
        assert tenant.patterns.learn("three", {"then": "go"}).confidence == 0.5

    def test_items_of_a_bulk_insert_fail_one_by_one(self, opened: Callable[..., HierMem]) -> None:
        memory = opened(quota=Quota(max_bytes=100)).tenant("acme").memory

        result = memory.bulk_insert(["a" * 40, "b" * 400, "c" * 40])

        failure = result.failed[0]
        assert [one is None for one in result.ids] == [False, True, False]
        assert isinstance(failure.error, QuotaExceededError)
        assert (failure.index, failure.error.name, failure.error.limit) == (1, "max_bytes", 100)

    def test_a_write_of_several_stores_all_or_nothing(
        self, opened: Callable[..., HierMem], events: list[Event]
    ) -> None:
        memory = opened(quota=Quota(max_entries=2)).tenant("acme").memory

        with pytest.raises(QuotaExceededError):
            memory.write(["one", "two", "three"])

        told = [type(event) for event in events]
        assert told == [QuotaRejected]
        assert everything(memory) == []

    def test_an_update_that_grows_is_counted_and_one_that_shrinks_never_refused(
        self, opened: Callable[..., HierMem]
    ) -> None:
        wide = opened().tenant("acme").memory
        entry_id = wide.store("x" * 500)
        memory = opened(quota=Quota(max_bytes=100)).tenant("acme").memory
        memory = wide if memory.retrieve(entry_id) is None else memory

        memory.update(entry_id, content="x" * 300)

        if memory is not wide:
            with pytest.raises(QuotaExceededError):
                memory.update(entry_id, content="x" * 301)
        assert len(memory.retrieve(entry_id).content) == 300  # type: ignore[union-attr]  # it is there

    def test_turns_count_with_their_bytes_and_give_them_back(
        self, opened: Callable[..., HierMem], events: list[Event]
    ) -> None:
        hiermem = opened(quota=Quota(max_bytes=1000))
        thread = hiermem.tenant("acme").thread("t1")
        said: list[dict[str, Any]] = [{"role": "user", "content": "é" * 450, "id": "u1"}]
        thread.append(said)

        with pytest.raises(QuotaExceededError) as refused:
            thread.append([{"role": "assistant", "content": "a" * 101}])
        with pytest.raises(QuotaExceededError):
            thread.edit_turn("u1", "é" * 501)
        thread.append([{"role": "tool", "content": "a" * 70, "tool_call_id": "c"}])

        assert (refused.value.used, refused.value.requested) == (900, 101)
        assert QuotaRejected("acme", "max_bytes", 1000, 900, 101) in events
        thread.edit_turn("u1", "é" * 10)
        thread.append([{"role": "user", "content": "b" * 880}])
        thread.delete_turns(["u1"])
        thread.append([{"role": "user", "content": "c" * 20}], status="archived")
        thread.replace([{"role": "user", "content": "d"}], old="delete")
        thread.append([{"role": "user", "content": "e" * 990}])
        thread.delete()
        thread.append([{"role": "user", "content": "f" * 1000}])
        hiermem.tenant("acme").forget(thread_id="t1")
        hiermem.tenant("acme").thread("t2").append([{"role": "user", "content": "g" * 1000}])

    def test_writes_per_minute_begin_anew_a_minute_after_the_first(
        self, opened: Callable[..., HierMem], clock: FakeClock
    ) -> None:
        memory = opened(quota=Quota(writes_per_minute=3)).tenant("acme").memory
        memory.store("one")
        clock.advance(30)
        two = memory.bulk_insert(["two", "three", "four"])

        clock.advance(29.9)
        with pytest.raises(QuotaExceededError) as refused:
            memory.store("five")
        clock.advance(0.1)
        memory.store("six")

        assert [failure.index for failure in two.failed] == [2]
        assert (refused.value.name, refused.value.used) == ("writes_per_minute", 3)
        assert memory.stats().entries == 4

    def test_each_tenant_has_its_own(self, opened: Callable[..., HierMem]) -> None:
        hiermem = opened(quota=Quota(max_entries=1, writes_per_minute=1))
        for name in ("acme", "other"):
            hiermem.tenant(name).memory.store("one")

            with pytest.raises(QuotaExceededError) as refused:
                hiermem.tenant(name).memory.store("two")

            assert refused.value.used == 1

    def test_of_nothing_nothing_is_stored(self, opened: Callable[..., HierMem]) -> None:
        memory = opened(quota=Quota(max_entries=0)).tenant("acme").memory

        with pytest.raises(QuotaExceededError):
            memory.store("one")

        assert found(memory) == set()

    @pytest.mark.parametrize("limit", [-1, 1.5, True, "many"])
    def test_a_quota_that_is_no_count_is_refused(self, limit: Any) -> None:
        with pytest.raises(ConfigurationError):
            Quota(max_entries=limit)
