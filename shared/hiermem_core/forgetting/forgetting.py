"""Forgetting: rows at once, and in one transaction; then the files, as often as it takes."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from hiermem_core.backends.tenants import count_change
from hiermem_core.errors import HierMemError
from hiermem_core.forgetting.erasing import (
    STORES,
    chosen_turn_ids,
    erase_entries,
    erase_from_threads,
    existing_turn_ids,
)
from hiermem_core.forgetting.marks import Due, due_of, mark
from hiermem_core.forgetting.selectors import selector_of
from hiermem_core.forgetting.sessions import erase_sessions
from hiermem_core.models.events import Forgotten
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.results import ForgetReceipt
from hiermem_core.operations import untouched
from hiermem_core.vector_index.rows import is_indexed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from hiermem_core.backends.sql import SqlBackend
    from hiermem_core.backends.sql_writer import SqlWriter
    from hiermem_core.forgetting.cleaning import Cleaner
    from hiermem_core.forgetting.selectors import Selector
    from hiermem_core.models.events import Event
    from hiermem_core.protocols import Backend, Clock, EntryWriter
    from hiermem_core.storage.database import Database
    from hiermem_core.threads.store import ThreadStore

_PATIENCE_AT_OPEN = 1.0


class _RehearsalError(Exception):
    """Undoes the transaction of a dry run."""


class Forgetting:
    """Forget what was stored of a tenant, for good.

    Args:
        rows: The backend in the database, which keeps turns whatever keeps the entries.
        entries: What keeps the entries now.
        drop: Each drops what it holds in memory of a tenant.
        tell: Takes the events of a change, after its commit.
        after_write: Told of the tenant at the end, when others may use the files again.
    """

    def __init__(
        self,
        database: Database,
        rows: SqlBackend,
        entries: Backend,
        *,
        store: ThreadStore,
        cleaner: Cleaner,
        clock: Clock,
        drop: Sequence[Callable[[str], None]],
        tell: Callable[[Event], None],
        after_write: Callable[[str], None],
    ) -> None:
        self._database = database
        self._rows = rows
        self._others: Sequence[Backend] = () if entries is rows else (entries,)
        self._store = store
        self._cleaner = cleaner
        self._clock = clock
        self._drop = drop
        self._tell = tell
        self._after_write = after_write

    def forget(
        self,
        tenant: str,
        *,
        ids: Iterable[str] | None = None,
        namespace: str | Sequence[str] | None = None,
        thread_id: str | None = None,
        user_id: str | None = None,
        everything: bool = False,
        dry_run: bool = False,
    ) -> ForgetReceipt:
        """Erase what one selector chooses of a tenant; see `MemoryService.forget`."""
        selector = selector_of(
            ids=ids,
            namespace=namespace,
            thread_id=thread_id,
            user_id=user_id,
            everything=everything,
        )
        digest, now = selector.digest(tenant), self._clock.now()
        if selector.is_empty:
            return _receipt(digest, now, dict.fromkeys(STORES, 0))
        if dry_run:
            counts = self._rehearsed(tenant, selector, now)
            return _receipt(digest, now, counts, remaining=sum(counts.values()), dry_run=True)
        with ExitStack() as stack:
            counts, due = self._erase(stack, tenant, selector, now)
        for drop in self._drop:
            drop(tenant)
        if any(counts.values()):
            self._tell(Forgotten(tenant, counts))
        receipt = self._cleaned(due, now, counts)
        self._after_write(tenant)
        return receipt

    def resume(self) -> None:
        """Go on cleaning the files where that was not completed. Waits a second at most for others.

        What cannot be done now is left to the next opening.
        """
        with suppress(HierMemError):
            self._cleaner.clean(_PATIENCE_AT_OPEN)

    def _cleaned(self, due: Due, now: datetime, counts: dict[str, int]) -> ForgetReceipt:
        """Clean the files; whatever fails is told, since the rows are gone."""
        try:
            failed = self._cleaner.clean()
            with self._database.read() as connection:
                due = due_of(connection, due.digest)
        except HierMemError as error:
            failed = {"files": type(error).__name__}
        return _receipt(
            due.digest,
            now,
            counts,
            failed=tuple(failed.items()),
            remaining=due.remaining,
            vacuumed=not due.files,
        )

    def _rehearsed(self, tenant: str, selector: Selector, now: datetime) -> dict[str, int]:
        counts: dict[str, int] = {}
        with suppress(_RehearsalError), ExitStack() as stack:
            counts, _ = self._erase(stack, tenant, selector, now)
            raise _RehearsalError
        untouched()
        return counts

    def _erase(
        self, stack: ExitStack, tenant: str, selector: Selector, now: datetime
    ) -> tuple[dict[str, int], Due]:
        """Erase in the transactions of every store, of which the database's ends first.

        Returns:
            What was erased per store, and the cleaning that is due.
        """
        writers = [stack.enter_context(one.write(tenant, now)) for one in self._others]
        rows = stack.enter_context(self._rows.write(tenant, now))
        every = [*writers, rows]
        vectors, patterns = _hung_on(every)
        counts = dict.fromkeys(STORES, 0)
        turn_ids = chosen_turn_ids(rows.connection, tenant, selector)
        turns = partial(existing_turn_ids, rows.connection, tenant)
        counts["entries"] = sum(erase_entries(one, selector, turn_ids, turns) for one in every)
        counts |= erase_from_threads(rows.connection, self._store, tenant, selector)
        counts |= erase_sessions(rows.connection, tenant, selector)
        left = _hung_on(every)
        counts |= {"vectors": vectors - left[0], "patterns": patterns - left[1]}
        return counts, self._marked(rows, selector.digest(tenant), counts, now)

    def _marked(self, rows: SqlWriter, digest: str, counts: dict[str, int], now: datetime) -> Due:
        """Have the files cleaned, of what was removed or replaced before, too."""
        if any(counts.values()):
            count_change(rows.connection, rows.tenant)
        vectors = max(1, counts["vectors"]) if is_indexed(rows.connection, rows.tenant) else 0
        due = Due(digest, files=max(1, sum(counts.values())), index=vectors)
        mark(rows.connection, due, now_ms=to_milliseconds(now))
        return due


def _hung_on(writers: Sequence[EntryWriter]) -> tuple[int, int]:
    """Return how many vectors and patterns are kept with the rows."""
    vectors = sum(writer.vector_count() for writer in writers)
    return vectors, sum(writer.pattern_count() for writer in writers)


def _receipt(
    selector: str,
    at: datetime,
    counts: dict[str, int],
    *,
    failed: tuple[tuple[str, str], ...] = (),
    remaining: int = 0,
    vacuumed: bool = False,
    dry_run: bool = False,
) -> ForgetReceipt:
    return ForgetReceipt(
        counts=counts,
        failed=failed,
        remaining=remaining,
        vacuumed=vacuumed,
        at=at,
        selector=selector,
        dry_run=dry_run,
    )
