"""Probes: what a contract sees below the public face of a HierMem on SQLite."""
# ruff: noqa: SLF001 - a probe looks where the public face cannot

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import event, select, update

from hiermem_core.storage import tables
from hiermem_core.threads.notes import NotesStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core import HierMem, Thread


@dataclass(slots=True)
class Reads:
    """What SQLite did: rows it handed out, and instructions of its machine it ran."""

    rows: int = 0
    steps: int = 0


@contextmanager
def reads_of(hiermem: HierMem) -> Iterator[Reads]:
    """Count every row fetched and every instruction run on any connection while the block runs."""
    engine = hiermem._services.database._engine
    reads = Reads()

    def count_row(cursor: object, row: Any) -> Any:
        del cursor
        reads.rows += 1
        return row

    def count_step() -> int:
        reads.steps += 1
        return 0

    def watch(connection: Any, *ignored: object) -> None:
        connection.row_factory = count_row
        connection.set_progress_handler(count_step, 1)

    def release(connection: Any, *ignored: object) -> None:
        connection.row_factory = None
        connection.set_progress_handler(None, 0)

    event.listen(engine, "checkout", watch)
    event.listen(engine, "checkin", release)
    try:
        yield reads
    finally:
        event.remove(engine, "checkout", watch)
        event.remove(engine, "checkin", release)


def database_bytes(hiermem: HierMem) -> bytes:
    """Return every page of the database, and its write-ahead log; no write leaves them equal."""
    database = hiermem._services.database
    with database.read() as connection:
        driver: Any = connection.connection.driver_connection
        pages: bytes = driver.serialize()
    file = database.location.database
    log = file.with_name(f"{file.name}-wal") if file else None
    return pages + (log.read_bytes() if log and log.is_file() else b"")


def spoil_turn(thread: Thread, seq: int, **columns: object) -> None:
    """Overwrite columns of a stored turn, as damage or a foreign writer would."""
    threads, turns = tables.threads.c, tables.turns.c
    number = select(threads.number).where(
        threads.tenant == thread.tenant_id, threads.thread_id == thread.id
    )
    with thread._services.database.write() as connection:
        connection.execute(
            update(tables.turns)
            .where(turns.thread == number.scalar_subquery(), turns.seq == seq)
            .values(columns)
        )


def notes_store(hiermem: HierMem) -> NotesStore:
    """Return what keeps the notes, to write some that no model made."""
    return NotesStore(hiermem._services.database, tell=lambda event: None)
