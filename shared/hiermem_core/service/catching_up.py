"""Making the vectors that rows wait for, a batch at a time, between short transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.backends.records import Attempt, VectorCounts
from hiermem_core.forks import renewed_after_fork
from hiermem_core.models import events
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.service.exclusive import Exclusive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hiermem_core.backends.records import Text
    from hiermem_core.models.events import Event
    from hiermem_core.protocols import Backend, Clock
    from hiermem_core.service.vectorising import Vectoriser

BATCH = 64
"""Rows embedded at once."""

_LOOK_SECONDS = 0.05


class CatchingUp:
    """Embed the rows that wait.

    Attributes:
        exclusive: Held while rows of a tenant are embedded, so that no row is embedded twice.

    Args:
        backends: Those that keep entries or turns.
        tell: Takes the events, after their commit.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        vectoriser: Vectoriser,
        *,
        clock: Clock,
        tell: Callable[[Event], None],
    ) -> None:
        self._backends = backends
        self._vectoriser = vectoriser
        self._clock = clock
        self._tell = tell
        self.exclusive = Exclusive()
        renewed_after_fork(self)

    def embed_few(self, tenant: str) -> None:
        """Embed what waits if it is at most one batch; more is left to whoever can wait.

        Does nothing while another thread embeds for the tenant.

        Raises:
            EmbedderMismatchError: The stored vectors are by another embedder.
        """
        if not self._vectoriser.is_on:
            return
        with self.exclusive.alone(tenant) as may_embed:
            if may_embed:
                self._embed_few(tenant)

    def _embed_few(self, tenant: str) -> None:
        now_ms = self._now_ms()
        for backend in self._backends:
            waiting = backend.waiting(tenant, limit=BATCH + 1, due_ms=now_ms)
            if 0 < len(waiting.rows) <= BATCH:
                self._embed(backend, tenant, due_ms=now_ms)

    def has_much(self, tenant: str, figure: int) -> bool:
        """Tell whether more than `figure` rows wait."""
        if not self._vectoriser.is_on:
            return False
        return any(
            len(backend.waiting(tenant, limit=figure + 1, due_ms=self._now_ms()).rows) > figure
            for backend in self._backends
        )

    def vector_counts(self, tenant: str) -> VectorCounts:
        """Return how the tenant's rows stand with their vectors, wherever they are kept."""
        counts = [backend.vector_counts(tenant) for backend in self._backends]
        return VectorCounts(
            made=sum(one.made for one in counts),
            waiting=sum(one.waiting for one in counts),
            failed=sum(one.failed for one in counts),
            shortened=sum(one.shortened for one in counts),
        )

    def embed_all(
        self,
        tenant: str,
        *,
        until: Callable[[], bool] = lambda: False,
        is_patient: bool = False,
    ) -> bool:
        """Embed all rows that wait; tell whether none waits any more.

        An embedder that calls this while it embeds is not waited for.

        Args:
            until: No batch begins once this is true.
            is_patient: Leave rows alone whose pause after a failure is not over.
        """
        if not self._vectoriser.is_on:
            return not any(backend.waiting(tenant, limit=1).rows for backend in self._backends)
        emptied = [
            self._empty(backend, tenant, until, is_patient=is_patient) for backend in self._backends
        ]
        return all(emptied)

    def after_fork(self) -> None:
        """Leave what the parent embeds to the parent, in a forked child."""
        self.exclusive = Exclusive()

    def _empty(
        self, backend: Backend, tenant: str, until: Callable[[], bool], *, is_patient: bool
    ) -> bool:
        """Embed batch by batch, one thread at a time, so that no row is embedded twice."""
        goes_on = not self.exclusive.is_mine
        while goes_on and not until():
            with self.exclusive.alone(tenant, _LOOK_SECONDS) as may_embed:
                if may_embed:
                    due_ms = self._now_ms() if is_patient else None
                    goes_on = self._embed(backend, tenant, due_ms=due_ms)
        return not backend.waiting(tenant, limit=1).rows

    def _embed(self, backend: Backend, tenant: str, *, due_ms: int | None) -> bool:
        """Embed a batch; tell whether it is worth going on at once."""
        waiting = backend.waiting(tenant, limit=BATCH, due_ms=due_ms)
        if not waiting.rows:
            return False
        tried = self._tried(waiting.texts)
        if waiting.texts and not tried:
            return False
        settled = backend.settle(tenant, waiting, tried, now_ms=self._now_ms())
        if settled.lost:
            self._tell(events.IndexFailed(tenant, settled.lost))
        if settled.made and settled.is_idle:
            self._tell(events.IndexCaughtUp(tenant))
        return not any(attempt.is_down for attempt in tried.values())

    def _tried(self, texts: Mapping[int, Text]) -> dict[int, Attempt]:
        made, failed = self._vectoriser.tried(texts)
        tried = {row: Attempt(vector) for row, vector in made.items()}
        for row, failure in failed.items():
            tried[row] = Attempt(error=failure.error, is_down=failure.is_down)
        return tried

    def _now_ms(self) -> int:
        return to_milliseconds(self._clock.now())
