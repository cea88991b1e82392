"""Embedding in the background: one thread, while there is much to embed."""

from __future__ import annotations

import atexit
import logging
from typing import TYPE_CHECKING
from weakref import WeakSet

from hiermem_core.errors import HierMemError
from hiermem_core.worker import Worker

if TYPE_CHECKING:
    from hiermem_core.service.catching_up import CatchingUp

MUCH = 32
"""Rows that are left to the next search; more are embedded in the background."""

LAST_SECONDS = 15.0
"""How long the end of the process waits for a running batch: native code cut off there aborts."""

_logger = logging.getLogger(__name__)


class Background:
    """Embed what waits, off the caller's thread.

    Never keeps the process alive, and ends after the batch that runs when it is closed.
    """

    def __init__(self, catching_up: CatchingUp) -> None:
        self._catching_up = catching_up
        self._worker = Worker("hiermem-embed", self._embed)
        _living.add(self)

    def nudge(self, tenant: str) -> None:
        """Have a tenant's rows embedded if many wait; never waits for that or raises."""
        if self._worker.is_stopping:
            return
        if self._worker.is_running or self._has_much(tenant):
            self._worker.put(tenant, tenant)

    def close(self, timeout: float | None = None) -> None:
        """End after the running batch, and wait for it. Idempotent."""
        self._worker.close(timeout)

    def _has_much(self, tenant: str) -> bool:
        """Tell whether many rows wait; not known to wait, they are left to the next call."""
        try:
            return self._catching_up.has_much(tenant, MUCH)
        except HierMemError:
            return False

    def _embed(self, tenant: str) -> None:
        if not self._has_much(tenant):
            return
        try:
            self._catching_up.embed_all(
                tenant, until=lambda: self._worker.is_stopping, is_patient=True
            )
        except HierMemError as error:
            _logger.warning("embedding in the background ended: %s", type(error).__name__)


_living: WeakSet[Background] = WeakSet()


def _end_all() -> None:
    for background in list(_living):
        background.close(LAST_SECONDS)


atexit.register(_end_all)
