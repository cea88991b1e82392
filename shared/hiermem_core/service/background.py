"""Embedding in the background: one thread, while there is much to embed."""

from __future__ import annotations

import contextvars
import logging
import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

from hiermem_core.errors import HierMemError
from hiermem_core.forks import around_fork

if TYPE_CHECKING:
    from hiermem_core.service.catching_up import CatchingUp

MUCH = 32
"""Rows that are left to the next search; more are embedded in the background."""

_logger = logging.getLogger(__name__)
_all: WeakSet[Background] = WeakSet()


class Background:
    """Embed what waits, off the caller's thread.

    Never keeps the process alive, and ends after the batch that runs when it is closed.
    """

    def __init__(self, catching_up: CatchingUp) -> None:
        self._catching_up = catching_up
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._nudged: dict[str, None] = {}
        _all.add(self)

    def nudge(self, tenant: str) -> None:
        """Have a tenant's rows embedded if many wait; never waits for that or raises."""
        if self._closing.is_set():
            return
        if self._worker is None and not self._has_much(tenant):
            return
        with self._lock:
            self._nudged[tenant] = None
            if self._worker is None and not self._closing.is_set():
                self._start()

    def close(self, timeout: float | None = None) -> None:
        """End after the running batch, and wait for it. Idempotent."""
        self._closing.set()
        with self._lock:
            worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join(timeout)

    def after_fork(self) -> None:
        """Leave the parent's thread, and what it is to do, to the parent."""
        self._lock = threading.Lock()
        self._worker = None
        self._nudged = {}
        self._catching_up.after_fork()

    def _start(self) -> None:
        """Start the thread; it is known before it can end."""
        context = contextvars.copy_context()
        self._worker = threading.Thread(
            target=context.run, args=(self._run,), name="hiermem-embed", daemon=True
        )
        try:
            self._worker.start()
        except RuntimeError:  # the interpreter is ending, or has no thread left
            self._worker = None

    def _has_much(self, tenant: str) -> bool:
        """Tell whether many rows wait; not known to wait, they are left to the next call."""
        try:
            return self._catching_up.has_much(tenant, MUCH)
        except HierMemError:
            return False

    def _run(self) -> None:
        """Embed for one tenant after the other that was nudged, until there is none."""
        try:
            while (tenant := self._next()) is not None:
                if self._has_much(tenant):
                    self._embed(tenant)
        finally:
            self._end()

    def _next(self) -> str | None:
        """Return the next tenant; where there is none, the thread has ended for all others."""
        with self._lock:
            if self._nudged and not self._is_ending():
                tenant = next(iter(self._nudged))
                del self._nudged[tenant]
                return tenant
            self._worker = None
            return None

    def _embed(self, tenant: str) -> None:
        try:
            self._catching_up.embed_all(tenant, until=self._is_ending, is_patient=True)
        except HierMemError as error:
            _logger.warning("embedding in the background ended: %s", type(error).__name__)

    def _end(self) -> None:
        with self._lock:
            if self._worker is threading.current_thread():
                self._worker = None

    def _is_ending(self) -> bool:
        return self._closing.is_set() or not threading.main_thread().is_alive()


def _after_fork() -> None:
    for background in list(_all):
        background.after_fork()


around_fork(in_child=_after_fork)
