"""Entries that were read a moment ago; served only while nothing of their tenant has changed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cachetools import LRUCache

from hiermem_core.forks import renewed_after_fork
from hiermem_core.models.results import CacheStats

if TYPE_CHECKING:
    from datetime import datetime

    from hiermem_core.models.entries import MemoryEntry


_TENANTS = 10_000
"""Tenants whose figures are kept, those served last."""


class EntryCache:
    """Keep up to `capacity` entries, the least recently used leaving first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: LRUCache[tuple[str, str], tuple[int, MemoryEntry]] = LRUCache(capacity)
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0
        self._served: LRUCache[str, tuple[int, int]] = LRUCache(_TENANTS)
        renewed_after_fork(self)

    def get(self, tenant: str, entry_id: str, generation: int, now: datetime) -> MemoryEntry | None:
        """Return an entry as of this generation of its tenant, if it is here and lives."""
        with self._lock:
            kept = self._entries.get((tenant, entry_id))
            is_valid = kept is not None and kept[0] == generation and _lives(kept[1], now)
            self._hits += is_valid
            self._misses += not is_valid
            hits, misses = self._served.get(tenant, (0, 0))
            self._served[tenant] = (hits + is_valid, misses + (not is_valid))
        return kept[1] if kept is not None and is_valid else None

    def put(self, tenant: str, entry: MemoryEntry, generation: int) -> None:
        """Keep an entry as it stood at a generation."""
        if self._capacity:
            with self._lock:
                self._entries[tenant, entry.id] = (generation, entry)

    def forget(self, tenant: str) -> None:
        """Drop what is here of a tenant."""
        with self._lock:
            for key in [key for key in self._entries if key[0] == tenant]:
                del self._entries[key]

    def stats(self, tenant: str | None = None) -> CacheStats:
        """Return how it served a tenant so far, or all of them."""
        with self._lock:
            if tenant is None:
                return CacheStats(self._hits, self._misses, len(self._entries), self._capacity)
            held = sum(key[0] == tenant for key in self._entries)
            return CacheStats(*self._served.get(tenant, (0, 0)), held, self._capacity)

    def after_fork(self) -> None:
        """Begin with a free lock in a forked child."""
        self._lock = threading.Lock()


def _lives(entry: MemoryEntry, now: datetime) -> bool:
    return entry.expires_at is None or now < entry.expires_at
