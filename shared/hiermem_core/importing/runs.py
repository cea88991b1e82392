"""One run of an import: each store read in batches, what is read stored or rehearsed."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from hiermem_core.importing.databases import DamagedError
from hiermem_core.importing.entries import EntryStoring
from hiermem_core.importing.records import EntryRecord, Message, SessionRecord, StepRecord
from hiermem_core.importing.rehearsing import Rehearsal
from hiermem_core.importing.report import ImportItem, ImportProgress, ImportReport
from hiermem_core.importing.sessions import SessionStoring
from hiermem_core.importing.spool import Spool
from hiermem_core.importing.storing import has_conflict, store

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from datetime import datetime

    from hiermem_core import Tenant
    from hiermem_core.importing.entries import Outcome
    from hiermem_core.importing.importer import OnConflict
    from hiermem_core.importing.records import Record
    from hiermem_core.importing.report import Kind, StoreReport, WarningCode
    from hiermem_core.importing.stores import Store

BATCH_CHARACTERS = 32 * 1024 * 1024
"""Characters after which a batch is full, however few its records."""


def batches(
    records: Iterable[Record], *, size: int, characters: int = BATCH_CHARACTERS
) -> Iterator[list[Record]]:
    """Yield the records in batches of at most `size`, cut short once they hold `characters`.

    Raises:
        DamagedError: They cannot be read on; after those that could.
    """
    batch: list[Record] = []
    room = characters
    damage: DamagedError | None = None
    reader = iter(records)
    while True:
        try:
            record = next(reader, None)
        except DamagedError as error:
            record, damage = None, error
        if record is not None:
            batch.append(record)
            room -= 0 if isinstance(record, ImportItem) else record.size
        is_last = record is None
        if batch and (is_last or len(batch) == size or room <= 0):
            yield batch
            batch, room = [], characters
        if damage is not None:
            raise damage
        if is_last:
            return


def by_thread(messages: Iterable[tuple[int, Message]]) -> dict[str, list[tuple[int, Message]]]:
    """Return the messages of each thread, in order, with their places."""
    threads: dict[str, list[tuple[int, Message]]] = {}
    for n, message in messages:
        threads.setdefault(message.thread, []).append((n, message))
    return threads


class Run:
    """One run; its state ends with it."""

    def __init__(
        self,
        tenant: Tenant,
        now: datetime,
        on_conflict: OnConflict,
        *,
        dry_run: bool,
        batch_size: int,
        progress: Callable[[ImportProgress], None] | None,
    ) -> None:
        self._tenant = tenant
        self._batch_size = batch_size
        self._progress = progress
        self._dry_run = dry_run
        services = tenant._services  # noqa: SLF001 - an import writes times as they are given
        shared = services.memories
        self._entries = EntryStoring(shared, tenant.name, now, on_conflict, dry_run=dry_run)
        self._sessions = SessionStoring(
            services.database, tenant.name, on_conflict, tell=shared.tell, dry_run=dry_run
        )
        self._items: list[tuple[int, ImportItem]] = []
        self._kinds: Counter[Kind] = Counter()
        self._starts: list[tuple[int, str]] = []
        self._imported = self._updated = self._read = 0
        self._threads: dict[str, None] = {}
        self._diverged: set[str] = set()
        self._rehearsals: dict[str, Rehearsal] = {}
        self._bytes = self._total = self._waiting = 0

    def go(self, stores: Iterator[Store]) -> tuple[StoreReport, ...]:
        """Read every store and store what it holds; return what is said of each store.

        Raises:
            BackendUnavailableError: The storage is full, locked or away.
        """
        reports: list[StoreReport] = []
        with Spool() as spool, closing(closable(stores)) as found_stores:
            for found in found_stores:
                self._starts.append((self._read, found.path))
                self._total += found.size
                self._read_store(found, spool)
                reports.append(found.report())
            self._store_entries(spool)
        return tuple(reports)

    def report(
        self,
        source: str,
        stores: tuple[StoreReport, ...],
        *,
        warnings: tuple[WarningCode, ...],
        times: tuple[datetime, datetime],
        sought: tuple[str, ...],
    ) -> ImportReport:
        """Return the result.

        Args:
            times: When it began and ended.
            sought: Paths that were looked for.
        """
        return ImportReport(
            source=source,
            imported=self._imported,
            threads=tuple(self._threads),
            items=tuple(self._listed()),
            updated=self._updated,
            dry_run=self._dry_run,
            stores=stores,
            warnings=warnings,
            by_kind=dict(self._kinds),
            started_at=times[0],
            finished_at=times[1],
            sought=sought,
        )

    def _read_store(self, found: Store, spool: Spool) -> None:
        begun, before = self._bytes, self._read
        holds_entries = False
        try:
            for batch in batches(found.records, size=self._batch_size):
                numbered = list(enumerate(batch, self._read))
                self._read += len(batch)
                found.found = self._read - before
                holds_entries = self._take(numbered, spool) or holds_entries
                if found.tell is not None and not holds_entries:
                    self._bytes = begun + found.tell()
                self._tell()
        except DamagedError as error:
            found.status, found.detail = "damaged", str(error)
        if holds_entries:
            self._waiting += found.size
        else:
            self._bytes = begun + found.size

    def _take(self, numbered: Sequence[tuple[int, Record]], spool: Spool) -> bool:
        """Store the messages and runs of a batch, keep its entries; tell whether there are any."""
        self._kinds.update(_kind(record) for _, record in numbered)
        self._items += [(n, one) for n, one in numbered if isinstance(one, ImportItem)]
        messages = [(n, one) for n, one in numbered if isinstance(one, Message)]
        for name, some in by_thread(messages).items():
            self._store_messages(name, some)
        runs = [(n, one) for n, one in numbered if isinstance(one, SessionRecord | StepRecord)]
        if runs:
            self._count(runs, self._sessions.store([record for _, record in runs]))
        entries = [(n, one) for n, one in numbered if isinstance(one, EntryRecord)]
        if entries:
            spool.add(entries)
        return bool(entries)

    def _store_messages(self, name: str, numbered: Sequence[tuple[int, Message]]) -> None:
        messages = [message for _, message in numbered]
        has_diverged = name in self._diverged
        if self._dry_run:
            if name not in self._rehearsals:
                self._rehearsals[name] = Rehearsal(self._tenant.thread(name))
            outcomes = self._rehearsals[name].store(messages, has_diverged=has_diverged)
        else:
            outcomes = store(self._tenant.thread(name), messages, has_diverged=has_diverged)
        if has_conflict(messages, outcomes):
            self._diverged.add(name)
        items = [(n, one) for (n, _), one in zip(numbered, outcomes, strict=True) if one]
        self._imported += len(outcomes) - len(items)
        self._items += items
        if len(items) < len(outcomes) or any(one.reason == "unchanged" for _, one in items):
            self._threads[name] = None

    def _store_entries(self, spool: Spool) -> None:
        if not spool.count:
            return
        self._items += spool.resolve()
        begun, done = self._bytes, 0
        left = spool.count
        for batch in spool.batches(self._batch_size, characters=BATCH_CHARACTERS):
            self._count(batch, self._entries.store([record for _, record in batch]))
            done += len(batch)
            self._bytes = begun + self._waiting * done // left
            self._tell()
        self._bytes = begun + self._waiting

    def _count(self, numbered: Sequence[tuple[int, Record]], outcomes: Sequence[Outcome]) -> None:
        for (n, _), outcome in zip(numbered, outcomes, strict=True):
            if isinstance(outcome, ImportItem):
                self._items.append((n, outcome))
            elif outcome == "updated":
                self._updated += 1
            else:
                self._imported += 1

    def _tell(self) -> None:
        if self._progress is not None:
            step = ImportProgress(self._read, self._imported, self._bytes, self._total)
            self._progress(step)

    def _listed(self) -> Iterator[ImportItem]:
        """Yield what was not imported in the order of the source, each with its store."""
        place = 0
        for n, item in sorted(self._items, key=lambda one: one[0]):
            while place + 1 < len(self._starts) and self._starts[place + 1][0] <= n:
                place += 1
            yield replace(item, store=self._starts[place][1])


def closable(stores: Iterator[Store]) -> Generator[Store]:
    """Yield the same, and can be closed."""
    yield from stores


def _kind(record: Record) -> Kind:
    return "turn" if isinstance(record, Message) else record.kind
