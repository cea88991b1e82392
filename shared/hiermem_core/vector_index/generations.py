"""What any vector index has, wherever it is: generations, of which one answers."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hiermem_core.errors import IndexUnavailableError
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.vector_index import probing, rows
from hiermem_core.vector_index.chroma import ChromaIndex, collection_name
from hiermem_core.vector_index.facts import write_progress

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.building import Pace
    from hiermem_core.vector_index.files import Files

_LEAST_TO_COMPACT = 1_000
_LOOKED_AT_AFTER = 20


class Owner(Protocol):
    """Who may change an index: one process at a time.

    Attributes:
        is_foreign: Another owner kept this one from owning it, at the last try.
    """

    is_foreign: bool

    @property
    def is_held(self) -> bool:
        """Tell whether this process owns it."""
        ...

    @property
    def owner(self) -> str | None:
        """Say who the owner is; `None`: nobody, as far as is known."""
        ...

    def try_own(self) -> bool:
        """Own it, unless another does. Never waits."""
        ...

    def release(self) -> None:
        """End the ownership. Idempotent."""
        ...


class Generations:
    """A vector index made from the rows, again and again; nothing here is called twice at once.

    Attributes:
        index: What answers now; `None`: nothing does.
        embedder: Whose vectors it holds.
        is_building: The next generation is being built.
        is_abandoned: This is a forked child; the index is its parent's.
        ownership: Who may change it.
    """

    ownership: Owner
    is_shared = False
    """Every process may ask it; only its owner changes it."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self.index: ChromaIndex | None = None
        self.embedder = ""
        self.is_building = False
        self.is_abandoned = False
        self._database = database
        self._clock = clock
        self._generation = 0
        self._added = 0
        self._changes = 0
        self._lost: list[ChromaIndex] = []
        self._swapping = threading.Lock()

    @property
    def is_elsewhere(self) -> bool:
        """Tell whether the index is another process's for now, which is no failure."""
        return self.is_abandoned or self.ownership.is_foreign

    @property
    def generation(self) -> int:
        """Which generation answers."""
        return self._generation

    @property
    def has_any(self) -> bool:
        """Tell whether there is any generation."""
        raise NotImplementedError

    def ready(self, embedder: str, pace: Pace) -> ChromaIndex:
        """Return the index, opened, looked at, and built anew where it has to be.

        Raises:
            IndexUnavailableError: Another owns it, it fails, or the work was ended.
        """
        raise NotImplementedError

    def rebuild(self, embedder: str, pace: Pace) -> ChromaIndex:
        """Build the next generation from the database, and use it from then on.

        What answers now goes on answering until then, if anything does.

        Raises:
            IndexUnavailableError: It fails, or the work was ended; nothing has changed.
        """
        raise NotImplementedError

    def remove_others(self) -> None:
        """Remove every generation but the one in use, and the bytes of what was removed with it.

        Raises:
            IndexUnavailableError: Something stays, or another owns the index.
        """
        raise NotImplementedError

    def files(self, index: ChromaIndex) -> Files:
        """Return what the files in use are like."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the index, note that it was closed in order, and end the ownership."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Leave everything to the parent, in a forked child."""
        raise NotImplementedError

    def compact(self, pace: Pace) -> None:
        """Rebuild where vectors that are gone take more room than those that are there."""
        if self._changes < max(_LEAST_TO_COMPACT, self._added // _LOOKED_AT_AFTER):
            return
        self._changes = 0
        with self._database.read() as connection:
            living = sum(
                rows.count_vectors(connection, tenant, self.embedder)
                for tenant in rows.indexed_tenants(connection)
            )
        if self._added > 2 * max(living, _LEAST_TO_COMPACT):
            self.rebuild(self.embedder, pace)

    def note_changes(
        self, connection: Connection, *, added: int, removed: int, files: Files
    ) -> None:
        """Note changes that were made, in the transaction that settles them."""
        self._added += added
        self._changes += added + removed
        write_progress(connection, self._added, files, now_ms=self.now_ms())

    def lose(self, index: ChromaIndex) -> None:
        """Stop using an index that failed; it is looked at and opened again by `ready`."""
        with self._swapping:
            if self.index is index:
                self.index = None
                self._lost.append(index)

    def differences(self, tenant: str) -> tuple[list[int], list[int]]:
        """Return numbers missing from the index and numbers that have no vector.

        What is queued already is in neither.
        """
        if self.index is None:
            raise IndexUnavailableError("comparing", "the index is not open; try again")
        there = self.index.numbers(collection_name(tenant, self.embedder))
        with self._database.read() as connection:
            living = rows.living(connection, tenant, self.embedder)
            adds = rows.pending(connection, tenant, "add")
            removes = rows.pending(connection, tenant, "remove")
        missing = np.setdiff1d(np.setdiff1d(living, there), adds)
        orphans = np.setdiff1d(np.setdiff1d(there, living), removes)
        return missing.tolist(), orphans.tolist()

    def finds_itself(self, tenant: str) -> bool:
        """Tell whether a tenant's vectors are found by themselves."""
        if self.index is None:
            return False
        with self._database.read() as connection:
            expected = self._expected(connection, tenant, self.embedder)
        seen = probing.look_at(self.index, expected)
        return probing.judge([expected], {expected.collection: seen}) != "bad"

    def now_ms(self) -> int:
        """Return the present in UTC milliseconds."""
        return to_milliseconds(self._clock.now())

    def _give_up(self) -> None:
        if self.index is not None:
            self.lose(self.index)
        while self._lost:
            close_quietly(self._lost.pop())

    def _take(
        self, index: ChromaIndex, generation: int, embedder: str, added: int
    ) -> ChromaIndex | None:
        with self._swapping:
            self._generation = generation
            self.embedder, self._added, self._changes = embedder, added, 0
            old, self.index = self.index, index
        return old

    def _expected(self, connection: Connection, tenant: str, embedder: str) -> probing.Expected:
        living = rows.living(connection, tenant, embedder)
        adds = rows.pending(connection, tenant, "add")
        certain = np.setdiff1d(living, adds)
        chosen = rows.samples(connection, embedder, probing.chosen(certain))
        return probing.Expected(
            collection=collection_name(tenant, embedder),
            least=len(certain),
            most=len(living) + len(rows.pending(connection, tenant, "remove")),
            numbers=[number for number, _ in chosen],
            vectors=[probing.encode(vector) for _, vector in chosen],
        )

    def _queue_differences(self) -> None:
        with self._database.read() as connection:
            tenants = rows.indexed_tenants(connection)
        for tenant in tenants:
            missing, orphans = self.differences(tenant)
            if missing or orphans:
                with self._database.write() as connection:
                    rows.queue(connection, tenant, "add", missing)
                    rows.queue(connection, tenant, "remove", orphans)

    def _tidy(self) -> None:
        """Drop what belongs to no tenant of the index, and every other generation."""
        if self.index is None:
            return
        with self._database.read() as connection:
            tenants = rows.indexed_tenants(connection)
        names = {collection_name(tenant, self.embedder) for tenant in tenants} | {probing.CANARY}
        for name in self.index.collections - names:
            self.index.drop(name)
        with suppress(IndexUnavailableError):  # the next opening tries again
            self.remove_others()


def close_quietly(index: ChromaIndex) -> None:
    """Close an index that is not used again; what fails does not matter."""
    with suppress(IndexUnavailableError):
        index.close()
