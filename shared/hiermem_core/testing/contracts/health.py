"""What every store must hold of health and statistics."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hiermem_core.errors import BackendError
from hiermem_core.models.results import CacheStats, DoctorReport, IndexStats
from hiermem_core.testing.contracts.entries_base import MemoryContract, modes_of, settle
from hiermem_core.testing.contracts.index_probes import filled
from hiermem_core.testing.contracts.samples import said

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import HierMem
    from hiermem_core.models.events import Event
    from hiermem_core.testing.clocks import FakeClock


class HealthContract(MemoryContract):
    """Every promise of `health` and of the statistics of entries."""

    def test_a79_a_fresh_store_is_healthy_and_all_zero(self, hiermem: HierMem) -> None:
        for health in (hiermem.health(), hiermem.tenant("acme").memory.health()):
            assert health.status == "healthy"
            assert health.last_error is None
            assert (health.index_lag, health.queue_depth, health.dead_jobs) == (0, 0, 0)
            parts = (health.rows, health.keywords, health.index, health.embedder)
            assert {part.status for part in parts if part is not None} == {"healthy"}
            assert {part.message for part in parts if part is not None} == {""}
        assert hiermem.doctor() == DoctorReport()

    def test_a79_a_fresh_stores_statistics_are_all_zero(self, hiermem: HierMem) -> None:
        memory = hiermem.tenant("acme").memory

        stats = memory.stats()

        assert (stats.entries, stats.bytes, stats.expired, stats.generation) == (0, 0, 0, 0)
        assert (stats.entries_by_namespace, stats.entries_by_type) == ({}, {})
        assert stats.index == IndexStats(model_id=stats.index.model_id)
        assert stats.cache == CacheStats(capacity=100)

    def test_a79_no_canary_is_in_any_list_statistic_namespace_or_event(
        self, hiermem: HierMem, events: list[Event]
    ) -> None:
        filled(hiermem)
        tenant = hiermem.tenant("acme")
        settle(tenant.memory)
        before = seen_by(hiermem)
        told = len(events)

        for _ in range(3):
            hiermem.health()
            tenant.memory.health()

        assert len(events) == told
        assert seen_by(hiermem) == before
        assert tenant.memory.search("canary").warnings == ()
        assert all("canary" not in hit.content for hit in tenant.memory.search("canary"))

    def test_the_health_of_a_tenant_tells_nothing_of_another(self, hiermem: HierMem) -> None:
        acme, other = hiermem.tenant("acme"), hiermem.tenant("other")
        other.thread("t1").append(said(f"turn {number}" for number in range(20)))

        health = acme.memory.health()

        assert (health.index_lag, health.status) == (0, "healthy")
        assert other.memory.health().index_lag == hiermem.health().index_lag

    def test_rows_that_wait_are_the_lag_and_a_search_ends_it(self, hiermem: HierMem) -> None:
        tenant = hiermem.tenant("acme")
        tenant.thread("t1").append(said(f"turn {number}" for number in range(20)))
        before = hiermem.health()

        settle(tenant.memory)

        assert (before.index_lag, before.status) == (20, "healthy")
        assert (hiermem.health().index_lag, hiermem.health().status) == (0, "healthy")

    def test_statistics_count_what_is_stored_of_this_tenant(
        self, hiermem: HierMem, clock: FakeClock
    ) -> None:
        memory = hiermem.tenant("acme").memory
        hiermem.tenant("other").memory.store("something else", namespace="elsewhere")
        memory.store("größe", namespace="a/b", type="procedural", metadata={"n": 1})
        memory.store("two", namespace="a/b")
        kept = memory.store("three", namespace="a", ttl=60)
        memory.retrieve(kept)
        memory.retrieve(kept)
        clock.advance(60)

        stats = memory.stats()

        settle(memory)
        assert (stats.entries, stats.expired) == (2, 1)
        assert stats.entries_by_namespace == {"a/b": 2}
        assert stats.entries_by_type == {"procedural": 1, "semantic": 1}
        assert stats.bytes == len("größe".encode()) + len('{"n":1}') + len("two") + len("{}")
        assert (stats.cache.hits, stats.cache.misses, stats.cache.entries) == (1, 1, 1)
        assert stats.generation == memory.generation() == 3
        assert set(stats.engines) == {"keyword", "semantic", "hybrid"} & set(modes_of(memory))
        assert stats.location == hiermem.location


class FailingRowsContract(MemoryContract):
    """What health says of rows that cannot be written."""

    @pytest.fixture
    def unwritable(self, hiermem: HierMem) -> Callable[[], None]:
        """Give what makes the rows of the open HierMem unwritable."""
        raise NotImplementedError

    def test_a80_rows_that_cannot_be_written_are_unhealthy_and_writes_raise(
        self, hiermem: HierMem, unwritable: Callable[[], None]
    ) -> None:
        memory = hiermem.tenant("acme").memory
        stored = memory.store("a plum")

        unwritable()

        health = hiermem.health()
        assert health.status == "unhealthy"
        assert health.rows.status == "unhealthy"
        assert health.rows.message
        assert health.last_error
        assert memory.health().status == "unhealthy"
        with pytest.raises(BackendError):
            memory.store("a pear")
        assert memory.retrieve(stored) is not None


def seen_by(hiermem: HierMem) -> list[object]:
    """Return everything that two tenants see of what is stored."""
    seen: list[object] = []
    for name in ("acme", "other"):
        tenant = hiermem.tenant(name)
        stats = tenant.memory.stats()
        seen += [stats.entries, stats.entries_by_namespace, stats.bytes, stats.index]
        seen += [stats.generation, tenant.memory.list_namespaces(), tenant.stats()]
        seen += [list(tenant.memory.search(limit=1000)), tenant.threads()]
    return seen
