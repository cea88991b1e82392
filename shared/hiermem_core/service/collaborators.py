"""What the memory services of one HierMem share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.models.events import Event
    from hiermem_core.models.health import Health
    from hiermem_core.models.redaction import Redaction
    from hiermem_core.operations import Operations
    from hiermem_core.protocols import Backend, Clock
    from hiermem_core.service.background import Background
    from hiermem_core.service.catching_up import CatchingUp
    from hiermem_core.service.entry_cache import EntryCache
    from hiermem_core.service.vectorising import Vectoriser
    from hiermem_core.vector_index.indexer import Indexer


@dataclass(frozen=True, slots=True, eq=False)
class Collaborators:
    """The parts every memory service works with.

    Attributes:
        merges: An entry that says the same as a living one is counted, not stored again.
        metadata_limit: Bytes of an entry's metadata as JSON.
        tell: Takes events, after their commit.
        location: Named in statistics; never holds a password.
        check_open: Raises `ClosedError` after the close.
        health: Asks every part whether it works; figures are of one tenant, or of all.
        operations: Runs what is called before watchers; `None`: nobody watches.
    """

    backend: Backend
    cache: EntryCache
    vectoriser: Vectoriser
    catching_up: CatchingUp
    indexer: Indexer
    background: Background
    clock: Clock
    merges: bool
    metadata_limit: int
    redaction: Redaction
    tell: Callable[[Event], None]
    location: str
    check_open: Callable[[], None]
    health: Callable[[str | None], Health]
    operations: Operations | None

    def before_search(self, tenant: str) -> None:
        """Embed the rows that wait, where they are few, so that the search finds them.

        Many are embedded in the background, where an index that is not open yet is opened too.

        Raises:
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        self.catching_up.embed_few(tenant)
        self.background.nudge(tenant)
        self.indexer.nudge(tenant)

    def after_write(self, tenant: str) -> None:
        """Have what waits done in the background, where it is much."""
        self.background.nudge(tenant)
        self.indexer.nudge(tenant)

    def catch_up(self, tenant: str, timeout: float | None) -> bool:
        """Do what waits now, in this thread; tell whether nothing waits any more."""
        deadline = None if timeout is None else time.monotonic() + timeout
        is_embedded = self.catching_up.embed_all(
            tenant, until=lambda: deadline is not None and time.monotonic() >= deadline
        )
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        return self.indexer.drain(tenant, left) and is_embedded
