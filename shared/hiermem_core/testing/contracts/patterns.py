"""What every backend must hold of patterns."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hiermem_core.errors import (
    ClosedError,
    InvalidInputError,
    LimitExceededError,
    PatternNotFoundError,
)
from hiermem_core.models.events import EntryDeleted, EntryStored, PatternReinforced
from hiermem_core.testing.contracts.entries_base import MemoryContract, settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem, Tenant
    from hiermem_core.models.events import Event
    from hiermem_core.service.patterns import Patterns
    from hiermem_core.testing.clocks import FakeClock

RETRY = {"when": "a call times out", "then": ["wait", "retry twice"]}


class PatternContract(MemoryContract):
    """Every promise of `Patterns`."""

    @pytest.fixture
    def tenant(self, hiermem: HierMem) -> Tenant:
        """Give the tenant that learns."""
        return hiermem.tenant("acme")

    @pytest.fixture
    def patterns(self, tenant: Tenant) -> Patterns:
        """Give the patterns of a tenant; there is none yet."""
        return tenant.patterns

    def test_i51_a_pattern_is_learnt_reinforced_found_and_deleted_with_its_entry(
        self, tenant: Tenant
    ) -> None:
        patterns = tenant.patterns
        figures = [patterns.learn("retry", RETRY).confidence]
        figures += [patterns.reinforce("retry", success=True).confidence for _ in range(2)]
        settle(tenant.memory)

        found = [hit.pattern for hit in patterns.find("what if a call times out")]

        assert figures == [0.5, 0.55, 0.595]
        assert [(one.name, one.data, one.uses) for one in found] == [("retry", RETRY, 2)]
        assert patterns.delete("retry")
        assert patterns.find("what if a call times out") == []
        assert (patterns.get("retry"), patterns.list()) == (None, [])
        assert tenant.memory.retrieve(namespace="patterns", key="retry") is None
        assert not patterns.delete("retry")

    def test_a_failure_takes_a_tenth_of_the_confidence(self, patterns: Patterns) -> None:
        patterns.learn("retry", RETRY, confidence=0.5)

        pattern = patterns.reinforce("retry", success=False)

        assert (pattern.confidence, pattern.uses) == (0.45, 1)
        assert patterns.get("retry") == pattern

    def test_what_is_learnt_is_a_procedural_entry_with_the_name_as_key(
        self, tenant: Tenant
    ) -> None:
        pattern = tenant.patterns.learn("retry", RETRY, text="Try again, twice.", user_id="u")

        entry = tenant.memory.retrieve(namespace="patterns", key="retry")

        assert entry is not None
        assert (entry.id, entry.content, entry.user_id) == (pattern.id, "Try again, twice.", "u")
        assert (entry.type, pattern.user_id) == ("procedural", "u")

    def test_a_pattern_without_a_text_is_found_by_its_name_and_data(self, tenant: Tenant) -> None:
        tenant.patterns.learn("retry", RETRY)

        entry = tenant.memory.retrieve(namespace="patterns", key="retry")

        assert entry is not None
        assert entry.content == (
            'retry\n\n{"when":"a call times out","then":["wait","retry twice"]}'
        )

    def test_learning_again_replaces_the_data_and_keeps_what_was_earned(
        self, patterns: Patterns, clock: FakeClock
    ) -> None:
        first = patterns.learn("retry", RETRY)
        patterns.reinforce("retry", success=True)
        clock.advance(60)

        second = patterns.learn("retry", {"then": "give up"})
        third = patterns.learn("retry", {"then": "give up"}, confidence=0.9)

        assert (second.confidence, second.uses, third.confidence) == (0.55, 1, 0.9)
        assert (second.id, second.created_at) == (first.id, first.created_at)
        assert second.updated_at > first.updated_at
        assert patterns.list() == [third]

    def test_learning_takes_over_an_ordinary_entry_of_that_key(self, tenant: Tenant) -> None:
        entry_id = tenant.remember("wait a while", namespace="patterns", key="retry", tags=["old"])
        before = tenant.patterns.get("retry")

        pattern = tenant.patterns.learn("retry", RETRY)

        assert before is None
        assert pattern.id == entry_id
        assert tenant.memory.stats().entries == tenant.memory.stats().patterns == 1

    @pytest.mark.parametrize(
        "selector",
        [{"user_id": "u"}, {"namespace": "patterns"}, {"everything": True}, {"ids": ["retry"]}],
        ids=str,
    )
    def test_a_pattern_is_forgotten_with_its_entry(
        self, tenant: Tenant, selector: dict[str, Any]
    ) -> None:
        pattern = tenant.patterns.learn("retry", RETRY, user_id="u")
        selector = {"ids": [pattern.id]} if "ids" in selector else selector
        rehearsed = tenant.forget(**selector, dry_run=True)
        still = tenant.patterns.get("retry")

        receipt = tenant.forget(**selector)

        assert still == pattern
        assert rehearsed.counts == receipt.counts
        assert (receipt.counts["entries"], receipt.counts["patterns"]) == (1, 1)
        assert tenant.patterns.get("retry") is None

    @pytest.mark.parametrize("way", ["delete", "bulk", "write", "clear", "expire"])
    def test_a_pattern_goes_with_its_entry_however_that_goes(
        self, tenant: Tenant, clock: FakeClock, way: str
    ) -> None:
        pattern = tenant.patterns.learn("retry", RETRY)
        memory = tenant.memory
        place = ("patterns", "retry")
        ways: dict[str, Callable[[], object]] = {
            "delete": lambda: memory.delete(pattern.id),
            "bulk": lambda: memory.bulk_delete([pattern.id]),
            "write": lambda: memory.write(deleting=[place]),
            "clear": lambda: memory.clear_namespace("patterns"),
            "expire": lambda: memory.update(pattern.id, ttl=10),
        }

        ways[way]()
        clock.advance(11)

        assert (tenant.patterns.get("retry"), tenant.patterns.list()) == (None, [])
        assert memory.stats().patterns == 0
        fresh = tenant.patterns.learn("retry", RETRY)
        assert (fresh.confidence, fresh.uses) == (0.5, 0)
        assert tenant.patterns.list() == [fresh]

    def test_an_edited_entry_keeps_its_pattern_and_one_that_moves_loses_it(
        self, tenant: Tenant
    ) -> None:
        pattern = tenant.patterns.learn("retry", RETRY, user_id="u")

        tenant.memory.update(pattern.id, content="Try again.", user_id="v")
        edited = tenant.patterns.get("retry")
        tenant.memory.update(pattern.id, key="again")

        assert edited is not None
        assert (edited.data, edited.user_id) == (RETRY, "v")
        assert tenant.patterns.list() == []
        assert tenant.memory.retrieve(pattern.id) is not None

    def test_ordinary_entries_of_the_namespace_are_no_patterns(self, tenant: Tenant) -> None:
        tenant.remember("a call times out", namespace="patterns", key="note")
        tenant.patterns.learn("retry", RETRY)
        settle(tenant.memory)

        found = tenant.patterns.find("a call times out", k=1)

        assert [hit.pattern.name for hit in found] == ["retry"]
        assert [one.name for one in tenant.patterns.list()] == ["retry"]
        assert not tenant.patterns.delete("note")
        with pytest.raises(PatternNotFoundError, match="learn it first"):
            tenant.patterns.reinforce("note", success=True)

    def test_patterns_are_listed_and_found_from_a_confidence_on(self, tenant: Tenant) -> None:
        figures = {"b": 0.2, "a": 0.9, "c": 0.9, "d": 0.0}
        for name, confidence in figures.items():
            tenant.patterns.learn(name, {"about": "timeouts"}, confidence=confidence)
        settle(tenant.memory)

        sure = tenant.patterns.find("timeouts", min_confidence=0.9)

        assert [one.name for one in tenant.patterns.list()] == ["a", "c", "b", "d"]
        assert [one.name for one in tenant.patterns.list(limit=1)] == ["a"]
        assert [one.name for one in tenant.patterns.list(min_confidence=0.2)] == ["a", "c", "b"]
        assert sorted(hit.pattern.name for hit in sure) == ["a", "c"]
        assert tenant.patterns.find("timeouts", k=0) == []

    def test_more_ordinary_entries_than_asked_for_hide_no_pattern(self, tenant: Tenant) -> None:
        tenant.memory.bulk_insert(
            [{"content": f"timeouts {n}", "namespace": "patterns"} for n in range(40)]
        )
        tenant.patterns.learn("retry", {"about": "timeouts"})
        settle(tenant.memory)

        assert [hit.pattern.name for hit in tenant.patterns.find("timeouts", k=1)] == ["retry"]

    def test_patterns_of_other_tenants_are_neither_found_nor_in_the_way(
        self, hiermem: HierMem
    ) -> None:
        ours, theirs = hiermem.tenant("acme"), hiermem.tenant("other")
        theirs.patterns.learn("retry", {"secret": "timeouts"})
        settle(theirs.memory)

        assert (ours.patterns.find("timeouts"), ours.patterns.list()) == ([], [])
        assert ours.patterns.get("retry") is None
        assert not ours.patterns.delete("retry")
        with pytest.raises(PatternNotFoundError):
            ours.patterns.reinforce("retry", success=True)
        ours.patterns.learn("retry", RETRY)
        ours.forget(everything=True)
        assert [one.data for one in theirs.patterns.list()] == [{"secret": "timeouts"}]

    def test_nothing_that_is_given_or_read_is_shared_with_what_is_stored(
        self, patterns: Patterns
    ) -> None:
        given = {"then": ["wait"]}
        learnt: Any = patterns.learn("retry", given)
        given["then"].append("changed")
        learnt.data["then"].append("changed")
        read: Any = patterns.get("retry")
        read.data["then"].append("changed")

        stored = patterns.get("retry")

        assert stored is not None
        assert stored.data == {"then": ["wait"]}

    @pytest.mark.parametrize(
        ("name", "data", "options", "error"),
        [
            ("", RETRY, {}, InvalidInputError),
            (None, RETRY, {}, InvalidInputError),
            (7, RETRY, {}, InvalidInputError),
            ("a\x00", RETRY, {}, InvalidInputError),
            ("n" * 1025, RETRY, {}, LimitExceededError),
            ("a", [1], {}, InvalidInputError),
            ("a", None, {}, InvalidInputError),
            ("a", {"a": {1}}, {}, InvalidInputError),
            ("a", {"a": float("nan")}, {}, InvalidInputError),
            ("a", {"a": "x" * 1_100_000}, {}, LimitExceededError),
            ("a", RETRY, {"text": " "}, InvalidInputError),
            ("a", RETRY, {"confidence": 1.1}, InvalidInputError),
            ("a", RETRY, {"confidence": True}, InvalidInputError),
            ("a", RETRY, {"user_id": ""}, InvalidInputError),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_what_cannot_be_stored_is_refused_and_nothing_is_learnt(
        self, patterns: Patterns, name: Any, data: Any, options: dict[str, Any], error: type
    ) -> None:
        with pytest.raises(error):
            patterns.learn(name, data, **options)

        assert patterns.list() == []

    def test_questions_that_make_no_sense_are_refused(self, patterns: Patterns) -> None:
        patterns.learn("retry", RETRY)

        for wrong in (
            lambda: patterns.find("x", k=-1),
            lambda: patterns.find("x", min_confidence=2.0),
            lambda: patterns.list(limit=-1),
            lambda: patterns.list(min_confidence=-0.1),
            lambda: patterns.get(""),
            lambda: patterns.reinforce("retry", success=1),  # type: ignore[arg-type]  # wrong on purpose
        ):
            with pytest.raises(InvalidInputError):
                wrong()

    def test_data_of_any_depth_and_language_comes_back_equal(self, patterns: Patterns) -> None:
        data = {"größe": ["日本", {"👍🏽": None, "": [[], {}, True, -0.5, 2**53]}], "e": {}}

        patterns.learn("größe/日本 #1", data)

        read = patterns.get("größe/日本 #1")
        assert read is not None
        assert read.data == data

    def test_observers_are_told_after_each_change(
        self, patterns: Patterns, events: list[Event]
    ) -> None:
        pattern = patterns.learn("retry", RETRY)
        patterns.reinforce("retry", success=True)
        patterns.delete("retry")

        told = [event for event in events if isinstance(event, _TOLD)]
        assert told == [
            EntryStored("acme", pattern.id, 1),
            PatternReinforced("acme", pattern.id, 1),
            EntryDeleted("acme", pattern.id),
        ]

    def test_a_closed_memory_says_so(self, hiermem: HierMem, patterns: Patterns) -> None:
        hiermem.close()

        for late in (
            lambda: patterns.learn("retry", RETRY),
            lambda: patterns.get("retry"),
            patterns.list,
            lambda: patterns.delete("retry"),
            lambda: patterns.find("retry"),
            lambda: patterns.reinforce("retry", success=True),
        ):
            with pytest.raises(ClosedError):
                late()


_TOLD = (EntryStored, PatternReinforced, EntryDeleted)
