"""Applying queued changes: a batch in Chroma, then a transaction that settles it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hiermem_core.faults import reach
from hiermem_core.vector_index import rows
from hiermem_core.vector_index.building import add_each
from hiermem_core.vector_index.chroma import collection_name
from hiermem_core.vector_index.retrying import after_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.chroma import ChromaIndex
    from hiermem_core.vector_index.generations import Generations


@dataclass(frozen=True, slots=True)
class IndexTeller:
    """Whom to tell, after commit.

    Attributes:
        caught_up: Called with a tenant none of whose changes waits any more.
        failed: Called with a tenant and how many of its changes just failed for the last time.
    """

    caught_up: Callable[[str], None] = lambda tenant: None  # noqa: ARG005 - nobody listens
    failed: Callable[[str, int], None] = lambda tenant, count: None  # noqa: ARG005 - as above


class Applier:
    """Apply changes to an index, one batch a call."""

    def __init__(self, database: Database, store: Generations, tell: IndexTeller) -> None:
        self._database = database
        self._store = store
        self._tell = tell
        self._in_bulk: set[str] = set()

    def apply(
        self, index: ChromaIndex, *, tenant: str | None, now_ms: int | None, limit: int
    ) -> rows.Batch | None:
        """Apply the next batch; return it, `None` where nothing is to be done.

        Args:
            tenant: Only its changes.
            now_ms: Only changes that are due by then; `None`: those of later, too.
        """
        embedder = self._store.embedder
        with self._database.read() as connection:
            batch = rows.next_batch(connection, tenant=tenant, now_ms=now_ms, limit=limit)
            if batch is None:
                return None
            numbers = batch.numbers if batch.change == "add" else ()
            vectors = rows.vectors_of(connection, embedder, numbers)
        name = collection_name(batch.tenant, embedder)
        reach("index.before_apply")
        if batch.change == "add":
            self._begin(index, name)
            refused = add_each(index, name, vectors)
        else:
            refused = {}
            index.remove(name, batch.numbers)
        reach("index.after_apply")
        files = self._store.files(index)
        with self._database.write(batch.tenant) as connection:
            failed = self._settle(connection, batch, refused)
            added = len(vectors.numbers) - len(refused)
            removed = len(batch.numbers) if batch.change == "remove" else 0
            self._store.note_changes(connection, added=max(0, added), removed=removed, files=files)
            is_last = not rows.waits(connection, batch.tenant)
        self._report(index, name, batch.tenant, failed=failed, is_last=is_last)
        return batch

    def _begin(self, index: ChromaIndex, name: str) -> None:
        if name not in index:
            index.begin_bulk(name)
            self._in_bulk.add(name)

    def _settle(self, connection: Connection, batch: rows.Batch, refused: dict[int, str]) -> int:
        """Take a batch off the outbox, but for what was refused; return how many failed for good.

        A change that was taken back meanwhile is not there any more and does not come back.
        """
        now = self._store.now_ms()
        rows.settle(connection, batch.change, [n for n in batch.numbers if n not in refused])
        failed = 0
        for number, attempts in zip(batch.numbers, batch.attempts, strict=True):
            if number in refused:
                retry = after_failure(attempts, now_ms=now)
                rows.postpone(connection, batch.change, number, retry, refused[number])
                failed += retry.is_failed
        return failed

    def _report(
        self, index: ChromaIndex, name: str, tenant: str, *, failed: int, is_last: bool
    ) -> None:
        if is_last and name in self._in_bulk:
            self._in_bulk.discard(name)
            index.end_bulk(name)
        if failed:
            self._tell.failed(tenant, failed)
        if is_last:
            self._tell.caught_up(tenant)
