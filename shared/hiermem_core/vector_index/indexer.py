"""The vector index of a HierMem: fed from an outbox, off the write path, and always disposable.

What is told here never decides an answer. The rows hold every vector; whoever searches scans the
pending ones exactly and asks the index for the others, or scans all where it does not answer.

The protocol. A vector's change is queued in the transaction that makes it. One process, the owner
of the folder, applies changes: a batch in Chroma, then a transaction that takes it off the outbox;
doing it twice is harmless, since a number stands for one vector for good. Before Chroma is opened
the database is told that the index is not closed (`index_clean` is 0), after an orderly end that
it is. Found unclosed, it is looked at from a child process first. Chroma's files can be broken by a
kill; then the next generation is built from the rows, in a folder of its own, while nobody waits.
"""

from __future__ import annotations

import threading
import time
import weakref
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from hiermem_core.errors import HierMemError, IndexUnavailableError, InvalidInputError
from hiermem_core.models.health import ComponentHealth
from hiermem_core.vector_index import rows
from hiermem_core.vector_index.applying import IndexTeller
from hiermem_core.vector_index.background import seconds_left
from hiermem_core.vector_index.chroma import MOST_OPEN, collection_name
from hiermem_core.vector_index.facts import generation_of
from hiermem_core.vector_index.probing import canary_message
from hiermem_core.vector_index.states import IndexCheck, IndexState
from hiermem_core.vector_index.work import IndexWork

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.connecting import ChromaServer

__all__ = ["IndexCheck", "IndexState", "IndexTeller", "Indexer"]

MOST_PENDING = 16_000
"""With more vectors pending, scanning all of them exactly is what the index was to save."""

_RECOUNT_AFTER = 256


class Indexer:
    """The vector index of one HierMem: queueing, applying, asking, mending.

    Safe to share between threads. A forked child never touches the index. Nothing but `check`,
    `repair` and `purge` raises `IndexUnavailableError`; what else fails is told by `state`.

    Args:
        place: Of the index: a folder beside the database, or a server; `None`: there is none, and
            no vector is queued.
        threshold: A tenant with more vectors than this is indexed.
        embedder: Whose vectors are indexed, as in `vectors.embedder`; may be named later.
        most_pending: With more vectors pending the index does not answer.
        most_open: Collections held in memory at once.
    """

    def __init__(
        self,
        database: Database,
        place: Path | ChromaServer | None,
        *,
        threshold: int,
        clock: Clock,
        embedder: str = "",
        tell: IndexTeller | None = None,
        most_pending: int = MOST_PENDING,
        most_open: int = MOST_OPEN,
    ) -> None:
        self._database = database
        self._threshold = threshold
        self._embedder = embedder
        self._most_pending = most_pending
        self._headroom: dict[str, int] = {}
        self._queued = 0
        self._work: IndexWork | None = None
        if place is not None:
            self._work = IndexWork(
                database,
                place,
                clock=clock,
                embedder=embedder,
                tell=tell or IndexTeller(),
                most_open=most_open,
            )
            self._end = weakref.finalize(self, _close_apart, self._work)
            self._end.atexit = False

    @property
    def is_shared(self) -> bool:
        """Tell whether the index is on a server, where every process asks it."""
        return self._work is not None and self._work.store.is_shared

    @property
    def is_on(self) -> bool:
        """Tell whether an index is kept here at all."""
        return self._work is not None

    def set_embedder(self, embedder: str) -> None:
        """Name whose vectors are indexed; another one than before has the index built anew."""
        self._embedder = embedder
        self._headroom.clear()
        if self._work is not None:
            self._work.embedder = embedder

    def queue(
        self,
        connection: Connection,
        tenant: str,
        *,
        added: Sequence[int] = (),
        removed: Sequence[int] = (),
    ) -> None:
        """Queue changes of a tenant's vectors, in the transaction that makes them.

        A tenant with more than `threshold` vectors is indexed from then on, with all it has. What
        is indexed already is queued even where there is no index now, for whoever has it again.
        """
        if not (len(added) or len(removed)):
            return
        if rows.is_indexed(connection, tenant):
            rows.settle(connection, "add", removed)
            rows.queue(connection, tenant, "remove", removed)
            rows.queue(connection, tenant, "add", added)
        elif self._work and len(added) and self._is_over_threshold(connection, tenant, len(added)):
            rows.mark(connection, tenant, self._embedder)

    def take_over(self, connection: Connection, embedder: str) -> None:
        """Queue the vectors of another embedder, in the transaction that makes them count.

        Call `set_embedder` after the commit.
        """
        rows.queue_anew(connection, embedder)

    def nudge(self, tenant: str) -> None:
        """Have what waits applied in the background, and the index opened. Never waits.

        Call it after a commit, and after a search.
        """
        work = self._work
        if work is None or not work.may_begin:
            return
        with suppress(HierMemError):
            if work.background.is_running or work.is_due(tenant):
                work.background.wake()

    def drain(self, tenant: str | None = None, timeout: float | None = None) -> bool:
        """Apply what waits, in this thread, without the pauses between attempts.

        Args:
            timeout: Seconds to work and wait at most; a batch that has begun is finished, and an
                index that has to be opened or built first is left to the background.

        Returns:
            Whether nothing waits any more. Failed changes do not wait.
        """
        if self._work is None:
            return True
        deadline = None if timeout is None else time.monotonic() + timeout
        for _ in range(2):  # an index that fails is opened anew, and is right then
            if not self._waits(tenant):
                return True
            work = self._work
            if work.background.is_stopping:
                return False
            if timeout is not None and work.store.index is None:
                work.background.wake()
                work.background.join(seconds_left(deadline))
            with suppress(IndexUnavailableError), work.turn(deadline):
                work.apply_all(work.at_once, tenant=tenant, deadline=deadline)
        return not self._waits(tenant)

    def is_usable(self, tenant: str) -> bool:
        """Tell whether `nearest` would answer now, as far as this process knows."""
        work = self._work
        index = None if work is None else work.store.index
        if work is None or index is None or work.pending.get(tenant, 0) > self._most_pending:
            return False
        return collection_name(tenant, work.store.embedder) in index

    def nearest(
        self,
        tenant: str,
        vector: NDArray[np.float32],
        count: int,
        among: Sequence[int] | None = None,
        *,
        embedder: str = "",
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return up to `count` vector numbers, nearest first, and their cosines.

        Read `pending_numbers` first, so that each vector is among those or in the index. A number
        may be in both, and may belong to a vector that is gone. Reads no row and never raises.

        Args:
            among: Only these.
            embedder: Only if the index is of this embedder's vectors.

        Returns:
            `None` where the index cannot be used now, for whatever reason; `state` knows it.
        """
        work = self._work
        index = None if work is None else work.store.index
        if work is None or index is None or not self.is_usable(tenant):
            return None
        if embedder not in {"", work.store.embedder}:
            return None
        try:
            return index.nearest(collection_name(tenant, work.store.embedder), vector, count, among)
        except InvalidInputError as error:
            work.last_error = str(error)
        except IndexUnavailableError as error:
            if index is work.store.index:  # else it was closed in favour of another
                work.note(error)
        return None

    def pending_numbers(self, connection: Connection, tenant: str) -> NDArray[np.int64]:
        """Return vectors that are to be scanned exactly, since they may not be in the index yet.

        With more than `most_pending` of them the list is cut off, and `nearest` does not answer.
        """
        work = self._work
        if work is None:
            return np.empty(0, np.int64)
        store = work.store
        index = store.index
        if store.is_shared and index and generation_of(connection) != store.generation:
            store.lose(index)  # its owner has built it anew
        numbers = rows.pending(connection, tenant, "add", limit=self._most_pending + 1)
        work.pending[tenant] = len(numbers)
        return numbers

    def state(self, connection: Connection, tenant: str) -> IndexState:
        """Return how far a tenant's index is."""
        work = self._work
        if work is None:
            return IndexState(0, 0, 0, "exact scan")
        waiting, failed = rows.counts(connection, tenant)
        error = work.last_error
        if not rows.is_indexed(connection, tenant):
            return IndexState(0, waiting, failed, "exact scan", error)
        total = rows.count_vectors(connection, tenant, self._embedder or work.store.embedder)
        pending = rows.count_pending(connection, tenant, "add")
        work.pending[tenant] = pending
        indexed = max(0, total - pending)
        engine = f"chroma, {indexed:,} of {total:,} vectors"
        if not self.is_usable(tenant):
            engine = f"exact scan: {work.obstacle()}"
        return IndexState(indexed, waiting, failed, engine, error)

    def failures(self, connection: Connection, tenant: str) -> list[rows.Failure]:
        """Return a tenant's changes that are not tried again by themselves."""
        return rows.failures(connection, tenant)

    def check(self, tenant: str) -> IndexCheck:
        """Compare a tenant's index with its rows, number by number.

        Raises:
            IndexUnavailableError: It cannot be opened here.
        """
        work = self._work
        if work is None or not self._is_indexed(tenant):
            return IndexCheck()
        with work.turn() as store:
            store.ready(self._embedder, work.at_once)
            missing, orphans = store.differences(tenant)
        return IndexCheck(tuple(missing), tuple(orphans))

    def repair(self, tenant: str) -> IndexCheck:
        """Make a tenant's index equal to its rows; try failed changes anew; return what differed.

        Raises:
            IndexUnavailableError: It cannot be opened here.
        """
        work = self._work
        if work is None or not self._is_indexed(tenant):
            return IndexCheck()
        with work.turn() as store:
            store.ready(self._embedder, work.at_once)
            missing, orphans = store.differences(tenant)
            with self._database.write() as connection:
                rows.retry_failed(connection, tenant)
                rows.queue(connection, tenant, "add", missing)
                rows.queue(connection, tenant, "remove", orphans)
            work.apply_all(work.at_once, tenant=tenant)
            if not store.finds_itself(tenant):
                store.rebuild(self._embedder, work.at_once)
        return IndexCheck(tuple(missing), tuple(orphans))

    def drop_tenant(self, tenant: str) -> None:
        """Keep a tenant out of the index from now on. Its bytes stay until `purge`."""
        work = self._work
        if work is None:
            return
        with self._database.write() as connection:
            rows.unmark(connection, tenant)
        self._headroom.pop(tenant, None)
        with suppress(IndexUnavailableError), work.turn() as store:
            if store.index is not None:
                store.index.drop(collection_name(tenant, store.embedder))

    def purge(self) -> None:
        """Build the index anew, so that no byte of a removed vector is left in it.

        Raises:
            IndexUnavailableError: It cannot be done here and now; repeat it.
        """
        work = self._work
        if work is None or not work.store.has_any:
            return
        with work.turn() as store:
            store.rebuild(self._embedder, work.at_once)
            store.remove_others()

    def health(self) -> ComponentHealth:
        """Add, find and remove a canary no tenant sees; an index not in use is healthy."""
        started = time.perf_counter()
        work = self._work
        message = "" if work is None else work.last_error or ""
        if work is not None and work.store.index is not None:
            message = canary_message(work.store.index) or message
        latency = (time.perf_counter() - started) * 1000
        return ComponentHealth("unhealthy" if message else "healthy", latency, message)

    def close(self, timeout: float | None = None) -> None:
        """End the running batch, close the index, end the ownership. Idempotent.

        What waits stays queued. Call it before the database is closed.

        Args:
            timeout: Seconds to wait for the running batch. After it, index and ownership end with
                the process, and the next opening looks at the index first.
        """
        if self._work is not None:
            self._end.detach()
            self._work.close(timeout)

    def _is_over_threshold(self, connection: Connection, tenant: str, added: int) -> bool:
        """Count only where the threshold may have been passed, or others may have added much."""
        if not self._embedder:
            return False
        self._queued += 1
        left = self._headroom.get(tenant, 0) - added
        if left < 0 or self._queued % _RECOUNT_AFTER == 0:
            limit = self._threshold + 1
            left = limit - 1 - rows.count_vectors(connection, tenant, self._embedder, limit=limit)
        self._headroom[tenant] = left
        return left < 0 and is_installed()

    def _is_indexed(self, tenant: str) -> bool:
        with self._database.read() as connection:
            return rows.is_indexed(connection, tenant)

    def _waits(self, tenant: str | None) -> bool:
        with self._database.read() as connection:
            return rows.has_work(connection, tenant=tenant, now_ms=None)


def is_installed() -> bool:
    """Tell whether the index's extra is there; imports nothing."""
    return find_spec("chromadb") is not None


def _close_apart(work: IndexWork) -> None:
    """Close what nobody holds any more, in a thread that holds no lock of anybody."""
    thread = threading.Thread(target=work.close, args=(None,), name="hiermem-index-end")
    with suppress(RuntimeError):  # the interpreter is ending, and closes it by itself
        thread.start()
