"""What every way to cache a searcher must hold: an answer equals the searcher's own."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from hiermem_core.errors import ConfigurationError, LimitExceededError
from hiermem_core.models.events import RecallServed
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


class WorkingMemoryContract:
    """Every promise about one caller's searches.

    The fixture `wrapped` is called with a `Counting` searcher and the options of `WorkingMemory`,
    and returns a `Wrapped`.
    """

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def searcher(self) -> Counting:
        return Counting()

    def test_d1_a_repeated_call_is_a_hit(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, memory = wrapped(searcher)

        first, second = search("tea"), search("tea")

        assert first == second
        assert searcher.loads == 1
        assert (memory.stats().hits, memory.stats().misses) == (1, 1)
        assert memory.stats().hit_rate == 0.5

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

    def test_d7_an_error_reaches_the_caller_and_is_not_kept(
        self, wrapped: Callable[..., Wrapped]
    ) -> None:
        error = ZeroDivisionError("no tea")
        searcher = Counting(error)
        search, memory = wrapped(searcher)

        with pytest.raises(ZeroDivisionError) as caught:
            search("tea")
        searcher.answer = None
        search("tea")

        assert caught.value is error
        assert (memory.stats().misses, memory.stats().failures) == (2, 1)

    @pytest.mark.parametrize(
        "answer",
        [
            {"success": False, "error": "no tea"},
            {"success": False},
            {"error": "no tea"},
            '{"success": false}',
        ],
    )
    def test_d8_an_answer_that_tells_of_a_failure_is_returned_and_not_kept(
        self, wrapped: Callable[..., Wrapped], answer: Any
    ) -> None:
        searcher = Counting(answer)
        search, memory = wrapped(searcher)

        answers = [search("tea"), search("tea")]

        assert answers == [answer, answer]
        assert searcher.loads == 2
        assert (memory.stats().misses, memory.stats().failures) == (2, 2)

    def test_d8_is_failure_replaces_the_test(self, wrapped: Callable[..., Wrapped]) -> None:
        searcher = Counting({"success": False})
        search, _ = wrapped(searcher, is_failure=lambda answer: answer == [])

        search("tea")
        search("tea")

        assert searcher.loads == 1

    def test_d9_a_hit_has_the_fields_of_the_answer_in_order_and_no_more(
        self, wrapped: Callable[..., Wrapped]
    ) -> None:
        answer = {"success": True, "results": [{"b": 1, "a": 2}], "count": 1, "took": 3, "_id": 4}
        search, _ = wrapped(Counting(answer))
        search("tea")

        hit = search("tea")

        assert hit == answer
        assert [*hit] == [*answer]
        assert [*hit["results"][0]] == ["b", "a"]
        assert type(hit) is dict

    def test_d10_an_omitted_argument_and_its_default_are_alike(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, _ = wrapped(searcher)

        search("tea")
        search("tea", limit=10)
        search("tea", 10)
        loads_alike = searcher.loads
        search("tea", limit=5)

        assert (loads_alike, searcher.loads) == (1, 2)

    def test_d10_a_searcher_with_another_default_tells_them_apart(
        self, wrapped: Callable[..., Wrapped]
    ) -> None:
        class Twenty(Counting):
            def search(self, query: Any, limit: int = 20, **arguments: Any) -> Any:
                return super().search(query, limit, **arguments)

        searcher = Twenty()
        search, _ = wrapped(searcher)

        search("tea")
        search("tea", limit=10)

        assert searcher.loads == 2

    def test_d11_a_query_is_taken_as_it_is(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, _ = wrapped(searcher)

        search("Hello")
        search(" hello ")

        assert searcher.loads == 2

    def test_d11_a_query_is_normalised_where_that_is_asked_for(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, memory = wrapped(searcher, normalize=lambda query: query.strip().lower())

        search("Hello")
        answer = search(" hello ")

        assert searcher.loads == 1
        assert answer[0]["query"] == "Hello"
        assert memory.invalidate("HELLO") == 1

    @pytest.mark.parametrize(
        "other",
        [
            {"filter": {"a": 1}},
            {"filter": {"a": 2}},
            {"namespace": "n"},
            {"threshold": 0.5},
            {"include_embedding": True},
            {"include_embedding": 1},
            {"order": {"a": 1, "b": -1}},
            {"order": {"b": -1, "a": 1}},
            {"user_id": "u"},
            {"tags": ["a"]},
            {"tags": ("a",)},
        ],
    )
    def test_d12_calls_that_differ_in_one_argument_both_load(
        self, wrapped: Callable[..., Wrapped], searcher: Counting, other: dict[str, Any]
    ) -> None:
        calls: list[dict[str, Any]] = [
            {},
            {"filter": {"a": True}},
            {"include_embedding": 1.0},
            {"order": {"a": -1, "b": 1}},
        ]
        search, _ = wrapped(searcher)
        for call in calls:
            search("tea", **call)

        search("tea", **other)

        assert searcher.loads == len(calls) + 1

    def test_d14_what_a_caller_does_to_an_answer_nobody_else_sees(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, _ = wrapped(searcher)
        pristine = Counting().search("tea")

        for _ in range(3):
            answer = search("tea")
            assert answer == pristine
            answer[0]["parts"]["n"].append(2)
            answer[0]["query"] = "changed"
            answer.append("more")

        assert searcher.loads == 1
        assert search("tea") == pristine

    def test_d14_what_the_searcher_does_to_its_answer_later_nobody_sees(
        self, wrapped: Callable[..., Wrapped]
    ) -> None:
        searcher = Counting([{"parts": [1]}])
        search, _ = wrapped(searcher)
        search("tea")

        searcher.answer[0]["parts"].append(2)

        assert search("tea") == [{"parts": [1]}]

    def test_d19_disabled_every_call_loads_and_nothing_is_counted(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, memory = wrapped(searcher, enabled=False)

        for _ in range(20):
            search("tea")

        assert searcher.loads == 20
        assert memory.stats() == type(memory.stats())()

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

    def test_d25_the_source_of_an_answer_is_told_beside_it(
        self, wrapped: Callable[..., Wrapped], searcher: Counting, clock: FakeClock
    ) -> None:
        _, memory = wrapped(searcher, clock=clock.monotonic)

        loaded = memory.search_with_source("tea")
        clock.advance(7)
        hit = memory.search_with_source("tea")

        assert (loaded.source, hit.source) == ("backend", "cache")
        assert (loaded.age_seconds, hit.age_seconds) == (0.0, 7.0)
        assert loaded.result == hit.result

    def test_d25_an_observer_is_told_each_call_without_content(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        told: list[Any] = []
        search, _ = wrapped(searcher, observer=told.append)

        search("sentinel")
        search("sentinel")

        assert [(type(event), event.source, event.hits) for event in told] == [
            (RecallServed, "backend", 1),
            (RecallServed, "cache", 1),
        ]
        assert "sentinel" not in repr(told)

    def test_d25_an_observer_that_raises_affects_nothing(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        def observe(event: Any) -> None:
            raise ZeroDivisionError

        search, _ = wrapped(searcher, observer=observe)

        assert search("tea") == search("tea")

    def test_d27_an_argument_without_a_stable_key_goes_straight_to_the_searcher(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, memory = wrapped(searcher)

        for _ in range(2):
            search("tea", where=object())

        assert searcher.loads == 2
        assert memory.stats().bypassed == memory.stats().calls == 2
        assert memory.stats().entries == 0

    def test_an_answer_that_cannot_be_copied_is_given_and_not_kept(
        self, wrapped: Callable[..., Wrapped]
    ) -> None:
        class Generating(Counting):
            def search(self, query: Any, limit: int = 10, **arguments: Any) -> Any:
                self.loads += 1
                return (number for number in range(3))

        searcher = Generating()
        search, _ = wrapped(searcher)

        assert [list(search("tea")) for _ in range(2)] == [[0, 1, 2], [0, 1, 2]]
        assert searcher.loads == 2

    def test_a_call_that_the_searcher_would_refuse_is_refused(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, _ = wrapped(searcher)
        search("tea")

        with pytest.raises(TypeError):
            search("tea", query="tea")

    @pytest.mark.parametrize(
        "options", [{"ttl_seconds": -1}, {"max_entries": 0}, {"ttl_seconds": float("nan")}]
    )
    def test_options_out_of_range_are_refused(
        self, wrapped: Callable[..., Wrapped], searcher: Counting, options: dict[str, Any]
    ) -> None:
        with pytest.raises(ConfigurationError):
            wrapped(searcher, **options)
