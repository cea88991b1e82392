"""Quotas: what a tenant may keep and write, and whether a write is within. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hiermem_core.errors import ConfigurationError, QuotaExceededError

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Quota:
    """What each tenant may keep and write; `None` does not limit.

    Deleting, forgetting and shrinking are never refused. With the backend `in_memory` the bytes of
    entries and those of turns are counted apart, as they are kept apart. A pattern counts as its
    entry; sessions and their steps are not counted.

    Attributes:
        max_entries: Living entries; those that expired do not count.
        max_bytes: UTF-8 bytes of living entries (content, metadata, tags and passages) and of all
            turns (content, parts, tool calls and the framework's dump, archived ones too).
        writes_per_minute: Entries and turns stored or changed. A minute begins with the first
            write after the last one ended.
    """

    max_entries: int | None = None
    max_bytes: int | None = None
    writes_per_minute: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        for field in fields(self):
            value = getattr(self, field.name)
            is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if value is not None and not is_count:
                raise ConfigurationError(field.name, "must be a whole number, at least 0, or None")


@dataclass(frozen=True, slots=True)
class Usage:
    """What is counted of a tenant.

    Attributes:
        minute_ms: When the minute began that `writes` are counted in.
    """

    entries: int = 0
    bytes: int = 0
    minute_ms: int = 0
    writes: int = 0


class Allowance:
    """What one transaction may still write.

    Args:
        usage: What is kept, expired entries included.
        expired: Returns what of it has expired; asked only where a limit is near.
    """

    def __init__(
        self, quota: Quota, usage: Usage, expired: Callable[[], Usage], *, now_ms: int
    ) -> None:
        is_over = not usage.minute_ms <= now_ms < usage.minute_ms + MINUTE_MS
        self._quota = quota
        self._entries = usage.entries
        self._bytes = usage.bytes
        self._minute_ms = now_ms if is_over else usage.minute_ms
        self._writes = 0 if is_over else usage.writes
        self._expired: Callable[[], Usage] | None = expired

    @property
    def usage(self) -> Usage:
        """What is counted by now."""
        return Usage(self._entries, self._bytes, self._minute_ms, self._writes)

    def take(self, *, entries: int, size: int, writes: int) -> None:
        """Count a write.

        Raises:
            QuotaExceededError: It is beyond a limit, and was not counted.
        """
        quota = self._quota
        if _is_beyond(quota.max_entries, self._entries, entries) or _is_beyond(
            quota.max_bytes, self._bytes, size
        ):
            self._give_back_expired()
        _check("max_entries", quota.max_entries, self._entries, entries)
        _check("max_bytes", quota.max_bytes, self._bytes, size)
        _check("writes_per_minute", quota.writes_per_minute, self._writes, writes)
        self._entries += entries
        self._bytes += size
        self._writes += writes

    def _give_back_expired(self) -> None:
        if self._expired is not None:
            gone, self._expired = self._expired(), None
            self._entries -= gone.entries
            self._bytes -= gone.bytes


def octets(text: str | None) -> int:
    """Return the UTF-8 bytes of a text."""
    if text is None:
        return 0
    return len(text) if text.isascii() else len(text.encode())


def _is_beyond(limit: int | None, used: int, requested: int) -> bool:
    return limit is not None and requested > 0 and used + requested > limit


def _check(name: str, limit: int | None, used: int, requested: int) -> None:
    if limit is not None and _is_beyond(limit, used, requested):
        raise QuotaExceededError(name, limit=limit, used=used, requested=requested)
