"""Telling what a context left out, to the log, where nobody else listens."""

from __future__ import annotations

import logging
from threading import Lock
from typing import TYPE_CHECKING

from cachetools import LRUCache

if TYPE_CHECKING:
    from hiermem_core import Context

logger = logging.getLogger("langchain_hiermem")

_REMEMBERED = 10_000


class ToldOnce:
    """Logs each code of a warning once a thread, without content; safe to use from threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._told: LRUCache[tuple[str, str, str], bool] = LRUCache(_REMEMBERED)

    def tell(self, tenant_id: str, thread_id: str, context: Context) -> None:
        """Log the warnings of a context that were not told of yet."""
        for warning in context.warnings:
            key = (tenant_id, thread_id, warning.code)
            with self._lock:
                is_new = key not in self._told
                self._told[key] = True
            if is_new:
                logger.warning("thread %s: %s", thread_id, warning)
