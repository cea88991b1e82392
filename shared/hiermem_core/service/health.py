"""Asking every part whether it works, with canaries that no tenant sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from hiermem_core.backends.keyword_canary import keyword_health
from hiermem_core.backends.sql_counts import outbox_state
from hiermem_core.errors import BackendError
from hiermem_core.models.health import ComponentHealth, Health
from hiermem_core.service.catching_up import BATCH
from hiermem_core.vector_index.indexer import MOST_PENDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.backends.sql_counts import OutboxState
    from hiermem_core.service.upkeep import Upkeep


class Updates(Protocol):
    """How the updates of notes stand."""

    @property
    def due(self) -> int:
        """Threads whose notes are to be updated."""

    @property
    def dead(self) -> int:
        """Threads that are given up until new turns come."""


class HealthCheck:
    """Ask the parts of one HierMem.

    Args:
        updates: Tells how the updates of notes stand, of one tenant or of all.
    """

    def __init__(self, upkeep: Upkeep, updates: Callable[[str | None], Updates]) -> None:
        self._parts = upkeep
        self._updates = updates

    def run(self, tenant: str | None = None) -> Health:
        """Report what works; figures are of one tenant, or of all. Raises only when closed."""
        parts = self._parts
        base = parts.database.health()
        keywords = keyword_health(parts.database)
        index = parts.indexer.health() if parts.indexer.is_on else None
        embedder = self._embedder()
        try:
            state = self._state(tenant)
            updates = self._updates(tenant)
        except BackendError:  # the rows say so too
            return Health("unhealthy", base.rows, base.last_error, keywords, index, embedder)
        components = [one for one in (keywords, index, embedder) if one is not None]
        messages = [one.message for one in components if one.message]
        errors = [base.last_error, *messages, _trouble(state)]
        is_degraded = base.status == "degraded" or bool(messages) or is_lagging(state)
        return Health(
            status="unhealthy" if base.status == "unhealthy" else _status(is_degraded=is_degraded),
            rows=base.rows,
            last_error=next((error for error in errors if error), None),
            keywords=keywords,
            index=index,
            embedder=embedder,
            index_lag=state.rows + state.changes,
            queue_depth=updates.due,
            dead_jobs=updates.dead,
        )

    def _embedder(self) -> ComponentHealth | None:
        vectoriser = self._parts.vectoriser
        if vectoriser.embedder is None:
            return None
        message = vectoriser.last_error or ""
        try:
            if vectoriser.is_degraded:
                message = "the stored vectors are by another embedder; run reindex"
        except BackendError as error:
            message = str(error)
        return ComponentHealth("unhealthy" if message else "healthy", 0.0, message)

    def _state(self, tenant: str | None) -> OutboxState:
        parts = self._parts
        with parts.database.read() as connection:
            state = outbox_state(connection, tenant, with_changes=parts.indexer.is_on)
        if parts.memory is None:
            return state
        names = parts.memory.tenants() if tenant is None else [tenant]
        return state.plus(*parts.memory.waiting(names))


def is_lagging(state: OutboxState) -> bool:
    """Tell whether a semantic search may miss rows, or the index falls behind."""
    too_many = state.rows > BATCH or state.changes > MOST_PENDING
    return too_many or bool(state.failing or state.failed)


def _status(*, is_degraded: bool) -> Literal["healthy", "degraded"]:
    return "degraded" if is_degraded else "healthy"


def _trouble(state: OutboxState) -> str | None:
    if state.failed:
        return f"{state.failed} rows failed for good ({state.error}); run doctor with repair"
    if state.failing:
        return f"{state.failing} rows failed and are tried again ({state.error})"
    return None
