"""What every way to cache a searcher must hold: an answer equals the searcher's own."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import ConfigurationError
from hiermem_core.models.events import RecallServed
from hiermem_core.testing.contracts.working_keeping import Counting, KeepingContract, Wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.testing.clocks import FakeClock


class WorkingMemoryContract(KeepingContract):
    """Every promise about one caller's searches."""

    def test_d1_a_repeated_call_is_a_hit(
        self, wrapped: Callable[..., Wrapped], searcher: Counting
    ) -> None:
        search, memory = wrapped(searcher)

        first, second = search("tea"), search("tea")

        assert first == second
        assert searcher.loads == 1
        assert (memory.stats().hits, memory.stats().misses) == (1, 1)
        assert memory.stats().hit_rate == 0.5

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
