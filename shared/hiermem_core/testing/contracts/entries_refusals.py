"""What every store of entries must hold of what it cannot take: a typed error, and no change."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hiermem_core.errors import InvalidInputError
from hiermem_core.testing.contracts.entries_base import MemoryContract, everything, found

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.service.memory_service import MemoryService


FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


class RefusalContract(MemoryContract):
    """Every promise of values that cannot be stored or asked for."""

    @pytest.mark.parametrize("value", [10**400, -(10**400), math.nan, math.inf])
    def test_a_number_beyond_all_bounds_is_refused(self, memory: MemoryService, value: Any) -> None:
        for attempt in (
            lambda: memory.store("text", ttl=value),
            lambda: memory.store("text", trust=value),
            lambda: memory.search("text", mode="exact", threshold=value),
            lambda: memory.wait_for_index(value),
        ):
            with pytest.raises(InvalidInputError):
                attempt()

        assert everything(memory) == []

    @pytest.mark.parametrize("hours", [-12, 12])
    def test_a_moment_beyond_the_calendar_in_utc_is_refused(
        self, memory: MemoryService, hours: int
    ) -> None:
        moment = LAST if hours < 0 else FIRST
        beyond = moment.replace(tzinfo=timezone(timedelta(hours=hours)))

        with pytest.raises(InvalidInputError):
            memory.store("text", created_at=beyond)
        with pytest.raises(InvalidInputError):
            memory.search(created_before=beyond)

    @pytest.mark.parametrize("moment", [FIRST, LAST])
    def test_a_moment_at_the_ends_of_the_calendar_is_kept(
        self, memory: MemoryService, moment: datetime
    ) -> None:
        entry_id = memory.store("text", created_at=moment)

        entry = memory.retrieve(entry_id)
        assert entry is not None
        assert abs(entry.created_at - moment) < timedelta(milliseconds=1)
        assert found(memory, created_after=FIRST) == {entry_id}

    @pytest.mark.parametrize(
        "attempt",
        [
            lambda memory: memory.store({"content": "x", 1: 2}),
            lambda memory: memory.store({"content": "x", 1: 2, "a": 3}),
            lambda memory: memory.store("x", type=["semantic"]),
            lambda memory: memory.store("x", type=np.array(["semantic", "episodic"])),
            lambda memory: memory.store("x", id=np.array(["a", "b"])),
            lambda memory: memory.store("x", source={}),
            lambda memory: memory.search(type=np.array(["semantic", "episodic"])),
            lambda memory: memory.search("x", mode=["exact"]),
            lambda memory: memory.search_semantic("x", 3, limit=4),
            lambda memory: memory.search_semantic("x", mode="exact"),
            lambda memory: memory.update("x", 5),
            lambda memory: memory.update("x", [("tags", [])]),
            lambda memory: memory.update("x", {1: 2}),
            lambda memory: memory.update("x", {"tags": []}, expected_version="1"),
            lambda memory: memory.purge_expired(limit="a"),
            lambda memory: memory.purge_expired(limit=1.5),
            lambda memory: memory.wait_for_index("a"),
        ],
    )
    def test_what_makes_no_sense_is_refused_by_name(
        self, memory: MemoryService, attempt: Callable[[MemoryService], object]
    ) -> None:
        with pytest.raises(InvalidInputError) as refused:
            attempt(memory)

        assert refused.value.name
        assert everything(memory) == []

    def test_as_many_as_there_are_may_be_purged(self, memory: MemoryService) -> None:
        assert memory.purge_expired(limit=10**30).remaining == 0

    @pytest.mark.parametrize("field", ["type", "source"])
    def test_an_unknown_word_is_not_repeated_in_the_error(
        self, memory: MemoryService, field: str
    ) -> None:
        for attempt in (memory.store, memory.search):
            with pytest.raises(InvalidInputError) as refused:
                attempt("text", **{field: "sentinel"})
            assert "sentinel" not in str(refused.value)
