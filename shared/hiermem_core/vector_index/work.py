"""Working on the vector index: whose turn it is, how fast, and what happens when it fails."""

from __future__ import annotations

import atexit
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakSet

from hiermem_core.errors import HierMemError, IndexUnavailableError
from hiermem_core.forks import renewed_after_fork
from hiermem_core.vector_index import rows
from hiermem_core.vector_index.applying import Applier, IndexTeller
from hiermem_core.vector_index.background import Background, seconds_left
from hiermem_core.vector_index.building import BULK_BATCH, TRICKLE_BATCH, Pace
from hiermem_core.vector_index.chroma import is_forked_from_use
from hiermem_core.vector_index.connecting import ChromaServer, served
from hiermem_core.vector_index.retrying import pause_ms
from hiermem_core.vector_index.server_ownership import ownership_in
from hiermem_core.vector_index.server_store import ServerStore
from hiermem_core.vector_index.store import IndexStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.generations import Generations

_OWNERS_TURN_MS = 1_000
_SECONDS_AT_EXIT = 1.0


class IndexWork:
    """The work on one index, done by one thread at a time.

    A failure of the index ends a piece of work; the index is then opened anew, after a pause that
    grows. Failures of single changes are theirs, see `Applier`.

    Attributes:
        store: The index.
        background: Who works.
        embedder: Whose vectors are indexed.
        last_error: Why the newest piece of work ended early; `None`: it did not.
        pending: Vectors of tenants that are not in the index yet, as last heard.
    """

    def __init__(
        self,
        database: Database,
        place: Path | ChromaServer,
        *,
        clock: Clock,
        embedder: str,
        tell: IndexTeller,
        most_open: int,
    ) -> None:
        self.background = Background(self._work)
        self.embedder = embedder
        self.last_error: str | None = None
        self.pending: dict[str, int] = {}
        self._database = database
        self.store: Generations = (
            ServerStore(database, served(place.url), ownership_in(database), clock=clock)
            if isinstance(place, ChromaServer)
            else IndexStore(
                database,
                place,
                clock=clock,
                is_stopping=lambda: self.background.is_stopping,
                most_open=most_open,
            )
        )
        self._applier = Applier(database, self.store, tell)
        self._troubles = 0
        self._not_before = 0
        _all.add(self)
        renewed_after_fork(self)

    @property
    def may_begin(self) -> bool:
        """Tell whether work may be begun by itself: nothing ends, and no pause is on."""
        return not self.background.is_stopping and self.store.now_ms() >= self._not_before

    def is_due(self, tenant: str) -> bool:
        """Tell whether a change is to be made now, or a tenant's index to be opened."""
        if rows.is_idle(self._database, tenant):
            return False
        with self._database.read() as connection:
            return rows.has_work(connection, now_ms=self.store.now_ms()) or (
                self.store.index is None and rows.is_indexed(connection, tenant)
            )

    @property
    def at_once(self) -> Pace:
        """The pace of work that somebody waits for."""
        return Pace(BULK_BATCH, self._end_if_stopping)

    @contextmanager
    def turn(self, deadline: float | None = None) -> Iterator[Generations]:
        """Work in this thread, when nobody else does.

        Raises:
            IndexUnavailableError: Another still works at the deadline, or the HierMem closes.
        """
        with self.background.turn(seconds_left(deadline)):
            self._end_if_stopping()
            with self._noting():
                yield self.store

    def apply_all(
        self,
        pace: Pace,
        *,
        tenant: str | None = None,
        now_ms: int | None = None,
        deadline: float | None = None,
    ) -> None:
        """Open the index and apply what is due; for whoever has the turn.

        Args:
            tenant: Only its changes.
            now_ms: Only what is due by then, and only as long as nobody waits; `None`: everything.
        """
        before = self.store.index
        index = self.store.ready(self.embedder, pace)
        if index is not before:
            self.pending.clear()
        while deadline is None or time.monotonic() < deadline:
            batch = self._applier.apply(index, tenant=tenant, now_ms=now_ms, limit=pace.batch)
            if batch is None:
                break
            left = self.pending.get(batch.tenant, 0) - len(batch.numbers)
            self.pending[batch.tenant] = max(0, left)
            if now_ms is not None and self.background.is_awaited:
                break
            pace.between()
        self._troubles, self._not_before, self.last_error = 0, 0, None

    def note(self, error: IndexUnavailableError) -> None:
        """Remember a failure, and drop an index that has failed."""
        index = self.store.index
        if index is not None and index.has_failed:
            self.store.lose(index)
        if self.background.is_stopping:
            return
        if self.store.is_elsewhere:
            self._not_before = self.store.now_ms() + _OWNERS_TURN_MS
        else:
            self._trouble(str(error))

    def obstacle(self) -> str:
        """Say why the index does not answer."""
        store = self.store
        if store.is_abandoned or (is_forked_from_use() and not store.is_shared):
            return "Chroma does not survive a fork; open it after the fork, or use a Chroma server"
        if store.ownership.is_foreign and not store.is_shared:
            return f"{store.ownership.owner} owns the index; use a Chroma server to share it"
        if store.is_building:
            return "the index is being built, in the background"
        if self.last_error is not None:
            return self.last_error
        return "too much is pending" if store.index is not None else "the index is not open yet"

    def close(self, timeout: float | None) -> None:
        """End the running batch, close the index, end the ownership. Idempotent."""
        self.background.stop()
        if self.store.is_abandoned:
            return
        deadline = None if timeout is None else time.monotonic() + timeout
        self.background.join(seconds_left(deadline))
        with suppress(IndexUnavailableError), self.background.turn(seconds_left(deadline)):
            self.store.close()

    def after_fork(self) -> None:
        """Leave index and ownership to the parent, for good, in a forked child."""
        self.background.after_fork()
        self.store.abandon()

    def _work(self) -> None:
        """Apply what is due; the background's work."""
        try:
            with self._noting():
                pace = Pace(TRICKLE_BATCH, self._resting())
                self.apply_all(pace, now_ms=self.store.now_ms())
                if not self.background.is_awaited:
                    self.store.compact(pace)
        except HierMemError:
            pass  # noted, or the database is closed
        except Exception as error:  # noqa: BLE001 - there is nobody to raise it to
            self._trouble(f"{type(error).__name__}; it is tried again")
        finally:
            if self.background.is_stopping:  # whoever closes may not have waited for this end
                self.store.close()

    def _resting(self) -> Callable[[], None]:
        """Return what rests as long as a batch took, so that other threads get their share."""
        began = time.perf_counter()

        def rest() -> None:
            nonlocal began
            self.background.rest(time.perf_counter() - began)
            self._end_if_stopping()
            began = time.perf_counter()

        return rest

    def _end_if_stopping(self) -> None:
        if self.background.is_stopping:
            raise IndexUnavailableError("indexing", "was interrupted; open the location again")

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except IndexUnavailableError as error:
            self.note(error)
            raise

    def _trouble(self, text: str) -> None:
        self.last_error = text
        self._troubles += 1
        self._not_before = self.store.now_ms() + pause_ms(self._troubles)


_all: WeakSet[IndexWork] = WeakSet()


def _close_all() -> None:
    for work in list(_all):
        with suppress(Exception):  # the process ends; the next one looks at the index
            work.close(_SECONDS_AT_EXIT)


atexit.register(_close_all)
