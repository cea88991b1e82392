"""One thread at a time for each tenant, and none that waits for itself."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Exclusive:
    """Let one thread at a time work on a tenant.

    A thread that works already is refused at once, whichever tenant it asks for: what it calls may
    come back here, and must not wait for its own end.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._workers: dict[str, int] = {}

    @property
    def is_mine(self) -> bool:
        """Tell whether the calling thread works already."""
        return threading.get_ident() in self._workers.copy().values()

    @contextmanager
    def alone(self, tenant: str, seconds: float | None = 0.0) -> Iterator[bool]:
        """Work on a tenant, if the block is told that it may.

        Args:
            seconds: To wait at most for another thread; `None`: until it has ended.
        """
        may_work = self._begin(tenant, seconds)
        try:
            yield may_work
        finally:
            if may_work:
                self._end(tenant)

    def _begin(self, tenant: str, seconds: float | None) -> bool:
        if self.is_mine:
            return False
        with self._changed:
            is_free = self._changed.wait_for(lambda: tenant not in self._workers, seconds)
            if is_free:
                self._workers[tenant] = threading.get_ident()
            return is_free

    def _end(self, tenant: str) -> None:
        with self._changed:
            del self._workers[tenant]
            self._changed.notify_all()
