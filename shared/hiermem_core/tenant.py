"""The handle of one tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.models.health import TenantStats
from hiermem_core.models.ids import check_name
from hiermem_core.storage.migrations import SCHEMA_VERSION
from hiermem_core.thread import Thread, check_page
from hiermem_core.threads import reading

if TYPE_CHECKING:
    from hiermem_core.hiermem import HierMem
    from hiermem_core.models.threads import ThreadInfo
    from hiermem_core.services import Services


class Tenant:
    """Everything of one tenant. Another tenant's things do not exist here."""

    def __init__(self, hiermem: HierMem, services: Services, name: str) -> None:
        self.hiermem = hiermem
        self.name = name
        self._services = services

    def thread(self, thread_id: str) -> Thread:
        """Return the handle of a thread; the first append creates it."""
        self._services.database.check_open()
        return Thread(self, self._services, check_name("thread", thread_id))

    def threads(self, *, limit: int = 1000, offset: int = 0) -> list[ThreadInfo]:
        """Return this tenant's threads in the order of their first turn."""
        check_page(limit, offset)
        with self._services.database.read() as connection:
            heads = reading.heads_of(connection, self.name, limit=limit, offset=offset)
        return [head.info() for head in heads]

    def stats(self) -> TenantStats:
        """Return what this tenant has stored."""
        counter = self._services.counter
        with self._services.database.read() as connection:
            sums = reading.sums_of(connection, self.name, counter.id)
        return TenantStats(
            tenant_id=self.name,
            **sums,
            location=self.hiermem.location,
            schema=SCHEMA_VERSION,
            counter=counter.id,
            exact_counter=getattr(counter, "exact", True),
        )

    def __repr__(self) -> str:
        """Name tenant and location."""
        return f"Tenant({self.name!r}, {self.hiermem!r})"
