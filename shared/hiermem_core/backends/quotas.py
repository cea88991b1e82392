"""Counting writes against a tenant's quota, in their transaction."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select

from hiermem_core.backends.tenants import count_writes, usage_of
from hiermem_core.errors import QuotaExceededError
from hiermem_core.models.events import QuotaRejected
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.quotas import Allowance, Usage
from hiermem_core.storage.sizes import entry_bytes, sum_of
from hiermem_core.storage.tables import memory_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from sqlalchemy import Connection

    from hiermem_core.models.events import Event
    from hiermem_core.models.quotas import Quota

_E = memory_entries.c
_EXPIRED = select(func.count(), sum_of(entry_bytes)).where(
    _E.tenant == bindparam("tenant"), _E.expires_at <= bindparam("now")
)


class Gate:
    """Let the writes of one transaction pass, or refuse them.

    Args:
        usage: Returns what is kept at the beginning of the transaction.
        expired: Returns what of it has expired.
        settle: Notes in the transaction what is counted at its end.
        rejected: Takes what was refused.
    """

    def __init__(
        self,
        quota: Quota | None,
        now_ms: int,
        *,
        usage: Callable[[], Usage],
        expired: Callable[[], Usage],
        settle: Callable[[Usage], None],
        rejected: list[QuotaExceededError],
    ) -> None:
        self._quota = quota
        self._now_ms = now_ms
        self._usage = usage
        self._expired = expired
        self._settle = settle
        self._rejected = rejected
        self._allowance: Allowance | None = None

    @property
    def is_shut(self) -> bool:
        """Tell whether there is a quota, so that not everything passes."""
        return self._quota is not None

    def admit(self, *, entries: int = 0, size: int, writes: int = 1) -> None:
        """Count a write.

        Raises:
            QuotaExceededError: It is beyond a limit, and was not counted.
        """
        if self._quota is None:
            return
        if self._allowance is None:
            usage = self._usage()
            self._allowance = Allowance(self._quota, usage, self._expired, now_ms=self._now_ms)
        try:
            self._allowance.take(entries=entries, size=size, writes=writes)
        except QuotaExceededError as error:
            self._rejected.append(error)
            raise

    def settle(self) -> None:
        """Note that what passed is written."""
        if self._allowance is not None:
            self._settle(self._allowance.usage)


class Quotas:
    """Make the gates of transactions, and tell what they refused.

    Args:
        tell: Takes events, after their transaction.
    """

    def __init__(self, quota: Quota | None, tell: Callable[[Event], None]) -> None:
        self.quota = quota
        self._tell = tell

    @contextmanager
    def telling(self, tenant: str) -> Iterator[list[QuotaExceededError]]:
        """Give what takes the refusals of a transaction, which is to be within the block."""
        rejected: list[QuotaExceededError] = []
        try:
            yield rejected
        finally:
            for error in rejected:
                self.refused(tenant, error)

    def refused(self, tenant: str, error: QuotaExceededError) -> None:
        """Tell of a write that was refused."""
        facts = {"limit": error.limit, "used": error.used, "requested": error.requested}
        self._tell(QuotaRejected(tenant, error.name, **facts))

    def gate(
        self,
        connection: Connection,
        tenant: str,
        now: datetime,
        rejected: list[QuotaExceededError],
    ) -> Gate:
        """Return the gate of a write transaction of the database."""
        now_ms = to_milliseconds(now)
        facts = {"tenant": tenant, "now": now_ms}
        return Gate(
            self.quota,
            now_ms,
            usage=lambda: usage_of(connection, tenant),
            expired=lambda: Usage(*connection.execute(_EXPIRED, facts).one()),
            settle=lambda usage: count_writes(connection, tenant, usage),
            rejected=rejected,
        )
