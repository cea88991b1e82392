"""What reindexing and doctoring work on: every place where rows and vectors are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.backends.in_memory_mending import InMemoryMending
    from hiermem_core.backends.mending import Mending
    from hiermem_core.backends.staging import StagedVectors
    from hiermem_core.backends.waiting import WaitingRows
    from hiermem_core.protocols import Backend, Clock
    from hiermem_core.service.catching_up import CatchingUp
    from hiermem_core.service.vectorising import Vectoriser
    from hiermem_core.storage.database import Database
    from hiermem_core.threads.listing import TurnListing
    from hiermem_core.vector_index.indexer import Indexer


class Keeper(Protocol):
    """Where rows of tenants are kept that need vectors."""

    def tenants(self) -> list[str]:
        """Return every tenant that has rows."""

    def lacking(self, tenant: str) -> int:
        """Return how many rows have no vector and do not wait for one."""

    def await_lacking(self, tenant: str) -> None:
        """Have every row without a vector wait for one."""

    def retry(self, tenant: str) -> None:
        """Have rows whose embedding failed wait as if it had not."""


@dataclass(frozen=True, slots=True, eq=False)
class Upkeep:
    """The parts of one HierMem that are looked after.

    Attributes:
        backends: Those that keep entries or turns.
        memory: Where entries are kept in memory; `None`: they are in the database.
    """

    database: Database
    backends: Sequence[Backend]
    memory: InMemoryMending | None
    rows: Mending
    waiting: WaitingRows
    staged: StagedVectors
    listing: TurnListing
    vectoriser: Vectoriser
    catching_up: CatchingUp
    indexer: Indexer
    clock: Clock

    @property
    def keepers(self) -> Sequence[Keeper]:
        """Every place where rows are kept."""
        return (self.rows,) if self.memory is None else (self.rows, self.memory)

    def tenants(self) -> list[str]:
        """Return every tenant that has rows."""
        return sorted({tenant for keeper in self.keepers for tenant in keeper.tenants()})
