"""What a query is restricted to. Pure; the same for every backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hiermem_core.models.filters import matches
from hiermem_core.models.namespaces import is_within

if TYPE_CHECKING:
    from datetime import datetime

    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.filters import Filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions:
    """Everything that must hold of an entry beside the match of its text.

    Attributes:
        namespace: As text; with `subtree`, everything below too.
        key_prefix: The key begins with it, literally.
        created_after: An entry of exactly that moment is in; `..._before`: it is out.
    """

    namespace: str | None = None
    subtree: bool = True
    filter: Filter | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()
    key: str | None = None
    key_prefix: str | None = None
    source: str | None = None
    min_trust: float | None = None
    user_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Tell whether every entry is admitted."""
        return self == _NONE

    def admits(self, entry: MemoryEntry) -> bool:
        """Tell whether an entry is within: the reference for every backend."""
        return (
            self._is_within(entry.namespace)
            and self.type in (None, entry.type)
            and self.source in (None, entry.source)
            and self.key in (None, entry.key)
            and self.user_id in (None, entry.user_id)
            and self._has_prefix(entry.key)
            and set(self.tags) <= set(entry.tags)
            and (self.min_trust is None or entry.trust >= self.min_trust)
            and _is_between(entry.created_at, self.created_after, self.created_before)
            and _is_between(entry.updated_at, self.updated_after, self.updated_before)
            and (self.filter is None or matches(self.filter, entry.metadata))
        )

    def _is_within(self, namespace: str) -> bool:
        if self.namespace is None or namespace == self.namespace:
            return True
        return self.subtree and is_within(namespace, self.namespace)

    def _has_prefix(self, key: str | None) -> bool:
        return self.key_prefix is None or (key is not None and key.startswith(self.key_prefix))


_NONE = Restrictions()


def _is_between(moment: datetime, after: datetime | None, before: datetime | None) -> bool:
    return (after is None or moment >= after) and (before is None or moment < before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which rows of a tenant are searched, as they stand at one moment.

    Attributes:
        entries: Those within; `None`: no entry.
        threads: The turns of these, by number; `None`: of every thread; empty: no turn.
        unseen_before: `(thread, seq)`: of that thread only turns before that seq.
    """

    tenant: str
    now: datetime
    entries: Restrictions | None = _NONE
    threads: tuple[int, ...] | None = ()
    unseen_before: tuple[int, int] | None = None

    @property
    def is_everything(self) -> bool:
        """Tell whether every row of the tenant that has not expired is searched."""
        every_entry = self.entries is not None and self.entries.is_empty
        return every_entry and self.threads is None and self.unseen_before is None

    @property
    def is_every_entry(self) -> bool:
        """Tell whether every entry that has not expired is searched, and no turn."""
        return self.entries is not None and self.entries.is_empty and not self.has_turns

    @property
    def is_broad(self) -> bool:
        """Tell whether neither a namespace nor a thread narrows it."""
        namespace = None if self.entries is None else self.entries.namespace
        return namespace is None and not self.threads

    @property
    def has_turns(self) -> bool:
        """Tell whether turns are searched."""
        return self.threads is None or bool(self.threads)
