"""What every way to cache a searcher must hold of how long answers are kept."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hiermem_core.errors import LimitExceededError
from hiermem_core.testing.clocks import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.working import WorkingMemory


class Wrapped(NamedTuple):
    """A cached searcher: its search, to be called, and its working memory."""

    search: Callable[..., Any]
    memory: WorkingMemory


class Counting:
    """A searcher that counts its loads; each answer is new and says what was asked.

    Args:
        answer: Returned instead; an exception is raised.
    """

    def __init__(self, answer: Any = None) -> None:
        self.loads = 0
        self.answer = answer

    def search(self, query: Any, limit: int = 10, **arguments: Any) -> Any:
        """Answer a query."""
        self.loads += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        if self.answer is not None:
            return self.answer
        return [{"query": query, "limit": limit, "arguments": [*arguments], "parts": {"n": [1]}}]


class KeepingContract:
    """Every promise about age, room, invalidation and pins.

    The fixture `wrapped` is called with a `Counting` searcher and the options of `WorkingMemory`,
    and returns a `Wrapped`.
    """

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def searcher(self) -> Counting:
        return Counting()

    def test_d3_an_answer_is_kept_until_its_age_reaches_the_ttl(
        self, wrapped: Callable[..., Wrapped], searcher: Counting, clock: FakeClock
    ) -> None:
        search, memory = wrapped(searcher, ttl_seconds=60, clock=clock.monotonic)
        search("tea")

        clock.advance(59.9)
        clock.advance(-86_400)
        search("tea")
        loads_before = searcher.loads
        clock.advance(0.1)
        search("tea")

        assert (loads_before, searcher.loads) == (1, 2)
        assert memory.stats().expired == 1

    def test_d3_the_age_runs_from_the_start_of_the_load(
        self, wrapped: Callable[..., Wrapped], clock: FakeClock
    ) -> None:
        class Slow(Counting):
            def search(self, query: Any, limit: int = 10, **arguments: Any) -> Any:
                clock.advance(30)
                return super().search(query, limit, **arguments)

        searcher = Slow()
        search, _ = wrapped(searcher, ttl_seconds=60, clock=clock.monotonic)
        search("tea")
        clock.advance(30)

        search("tea")

        assert searcher.loads == 2

    def test_d4_the_least_recently_used_answer_leaves_first(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, memory = wrapped(searcher, max_entries=2)

        for query in ("a", "b", "a", "c"):
            search(query)

        assert [memory.get(query) is not None for query in ("a", "b", "c")] == [True, False, True]
        assert memory.stats().evicted == 1
        assert memory.stats().entries == 2

    def test_d4_expired_answers_leave_before_used_ones(
        self, wrapped: Callable[..., Wrapped], searcher: Counting, clock: FakeClock
    ) -> None:
        search, memory = wrapped(searcher, max_entries=2, clock=clock.monotonic)
        search("old")
        clock.advance(30)
        search("young")
        clock.advance(30)

        search("new")

        assert memory.get("young") is not None
        assert (memory.stats().expired, memory.stats().evicted) == (1, 0)

    def test_d5_invalidating_a_query_drops_all_its_answers_and_no_other(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, memory = wrapped(searcher)
        for call in ({"limit": 5}, {"limit": 10}):
            search("tea", **call)
        search("plum")

        dropped = memory.invalidate("tea")
        for call in ({"limit": 5}, {"limit": 10}):
            search("tea", **call)
        loads_of_tea = searcher.loads
        search("plum")

        assert dropped == 2
        assert loads_of_tea == searcher.loads == 5
        assert memory.stats().invalidated == 2

    def test_d6_invalidate_keeps_the_counters_and_clear_does_not(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, memory = wrapped(searcher)
        search("tea")
        search("tea")

        dropped = memory.invalidate()
        after_invalidate = memory.stats()
        search("tea")
        memory.pin("plum")
        memory.clear()

        assert dropped == 1
        assert (after_invalidate.entries, after_invalidate.hits, after_invalidate.misses) == (
            0,
            1,
            1,
        )
        assert memory.stats() == type(after_invalidate)()
        assert memory.get("tea") is None

    def test_d22_a_pin_holds_against_age_and_use_until_it_is_taken(
        self, wrapped: Callable[..., Wrapped], searcher: Counting, clock: FakeClock
    ) -> None:
        search, memory = wrapped(searcher, max_entries=10, clock=clock.monotonic)
        memory.pin("pinned")
        for number in range(200):
            search(f"other {number}")
        clock.advance(61)
        loads = searcher.loads

        search("pinned")
        hits = searcher.loads == loads
        taken = memory.unpin("pinned"), memory.unpin("pinned")
        search("pinned")

        assert hits
        assert taken == (True, False)
        assert searcher.loads == loads + 1

    def test_d22_an_invalidated_pin_is_loaded_again_and_stays_a_pin(
        self, wrapped: Callable[..., Wrapped], searcher: Counting, clock: FakeClock
    ) -> None:
        search, memory = wrapped(searcher, clock=clock.monotonic)
        memory.pin("tea")

        memory.invalidate("tea")
        search("tea")
        clock.advance(61)
        search("tea")

        assert searcher.loads == 2
        assert memory.stats().pinned == 1

    def test_d23_at_most_half_of_the_room_is_pinned(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        _, memory = wrapped(searcher, max_entries=10)
        for number in range(5):
            memory.pin(f"pin {number}")
        before = memory.stats()

        with pytest.raises(LimitExceededError) as caught:
            memory.pin("one more")

        memory.pin("pin 0")
        assert caught.value.limit == 5
        assert (memory.stats().pinned, memory.stats().entries) == (5, 5)
        assert (before.misses, searcher.loads) == (5, 5)
        assert memory.get("one more") is None

    def test_d23_a_pin_that_cannot_be_loaded_is_not_set(
        self, wrapped: Callable[..., Wrapped]
    ) -> None:
        _, memory = wrapped(Counting(ZeroDivisionError()))

        with pytest.raises(ZeroDivisionError):
            memory.pin("tea")

        assert memory.stats().pinned == 0

    def test_d24_with_ttl_0_each_call_in_a_row_loads(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, memory = wrapped(searcher, ttl_seconds=0)

        for _ in range(3):
            search("tea")

        assert searcher.loads == 3
        assert memory.stats().entries == 0
