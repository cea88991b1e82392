"""The import: a source in, turns of a tenant's threads out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing.records import Message
from hiermem_core.importing.report import ImportItem, ImportProgress, ImportReport
from hiermem_core.importing.sniffing import check_one_thread, records_of
from hiermem_core.importing.sources import find_source
from hiermem_core.importing.storing import has_conflict, store

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hiermem_core import Tenant
    from hiermem_core.importing.records import Record

BATCH_LIMIT = 10_000
"""Records of one batch at most."""

BATCH_CHARACTERS = 32 * 1024 * 1024
"""Characters after which a batch is full, however few its records."""


def import_memories(
    source: str | os.PathLike[str],
    tenant: Tenant,
    *,
    thread: str | None = None,
    batch_size: int = 500,
    progress: Callable[[ImportProgress], None] | None = None,
) -> ImportReport:
    """Store a file's conversations in the tenant's threads; say what became of each record.

    Never changes the source; calls no model. Repeating an import stores nothing twice, and goes on
    where a killed one ended. A record that cannot be imported never stops the others. Memory is
    bounded by one batch, beside a line about each record that was not imported; a JSON document
    is read whole.

    Args:
        source: JSONL or JSON; its contents decide how it is read.
        thread: Renames the thread of a source that holds one.
        batch_size: Records of one batch; its turns of one thread are stored in one transaction.
        progress: Told after every batch.

    Raises:
        InvalidInputError: The source cannot be read, or `thread` is given for several threads.
        BackendUnavailableError: The storage is full, locked or away. Whole batches are stored.
    """
    path = find_source(source)
    if not 1 <= batch_size <= BATCH_LIMIT:
        raise InvalidInputError("batch_size", f"must be between 1 and {BATCH_LIMIT}")
    tally = _Tally(str(source), path.stat().st_size)
    with path.open("rb") as file:
        if thread is not None:
            check_one_thread(file, stem=path.stem)
            file.seek(0)
        records = records_of(file, stem=path.stem, thread=thread)
        for batch in batches(records, size=batch_size):
            _store_batch(tenant, batch, tally)
            if progress is not None:
                progress(tally.progress(file.tell()))
    return tally.report()


def batches(
    records: Iterable[Record], *, size: int, characters: int = BATCH_CHARACTERS
) -> Iterator[list[Record]]:
    """Yield the records in batches of at most `size`, cut short once they hold `characters`."""
    batch: list[Record] = []
    room = characters
    for record in records:
        batch.append(record)
        room -= record.size if isinstance(record, Message) else 0
        if len(batch) == size or room <= 0:
            yield batch
            batch, room = [], characters
    if batch:
        yield batch


def by_thread(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Return the messages of each thread, in order."""
    threads: dict[str, list[Message]] = {}
    for message in messages:
        threads.setdefault(message.thread, []).append(message)
    return threads


def _store_batch(tenant: Tenant, batch: Sequence[Record], tally: _Tally) -> None:
    tally.items += [record for record in batch if isinstance(record, ImportItem)]
    messages = [record for record in batch if isinstance(record, Message)]
    for name, some in by_thread(messages).items():
        outcomes = store(tenant.thread(name), some, has_diverged=name in tally.diverged)
        if has_conflict(some, outcomes):
            tally.diverged.add(name)
        tally.add(name, outcomes)


class _Tally:
    """What has become of the records so far."""

    def __init__(self, source: str, total_bytes: int) -> None:
        self._source = source
        self._total_bytes = total_bytes
        self._imported = 0
        self._threads: dict[str, None] = {}
        self.items: list[ImportItem] = []
        self.diverged: set[str] = set()

    def add(self, thread: str, outcomes: Sequence[ImportItem | None]) -> None:
        """Count the outcomes of one thread's messages."""
        items = [outcome for outcome in outcomes if outcome is not None]
        self._imported += len(outcomes) - len(items)
        self.items += items
        if len(items) < len(outcomes) or any(item.reason == "unchanged" for item in items):
            self._threads[thread] = None

    def progress(self, read_bytes: int) -> ImportProgress:
        """Return how far the import has come."""
        found = self._imported + len(self.items)
        return ImportProgress(found, self._imported, read_bytes, self._total_bytes)

    def report(self) -> ImportReport:
        """Return the result."""
        return ImportReport(self._source, self._imported, tuple(self._threads), tuple(self.items))
