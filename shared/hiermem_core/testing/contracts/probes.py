"""Probes: what a contract sees below the public face of a HierMem in a database."""
# ruff: noqa: SLF001 - a probe looks where the public face cannot

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import event, inspect, select, update

from hiermem_core.storage import tables
from hiermem_core.threads.notes import NotesStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import Engine

    from hiermem_core import HierMem, Thread
    from hiermem_core.storage.database import Database


@dataclass(slots=True)
class Reads:
    """What a database did: rows it handed out, and the steps it took for them.

    A step is an instruction of SQLite's machine, or a row that PostgreSQL looked at.
    """

    rows: int = 0
    steps: int = 0


@contextmanager
def reads_of(hiermem: HierMem) -> Iterator[Reads]:
    """Count every row fetched and every step taken on any connection while the block runs."""
    reads = Reads()
    is_served = hiermem._services.database.dialect_name == "postgresql"
    with (_watched_server if is_served else _watched_file)(hiermem, reads):
        yield reads


@contextmanager
def _listening(engine: Engine, listeners: dict[str, Any]) -> Iterator[None]:
    for name, listener in listeners.items():
        event.listen(engine, name, listener)
    try:
        yield
    finally:
        for name, listener in listeners.items():
            event.remove(engine, name, listener)


def _watched_file(hiermem: HierMem, reads: Reads) -> AbstractContextManager[None]:
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

    engine = hiermem._services.database._engine
    return _listening(engine, {"checkout": watch, "checkin": release})


def _watched_server(hiermem: HierMem, reads: Reads) -> AbstractContextManager[None]:
    looked_at = (
        "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)"
        " FROM pg_stat_xact_user_tables"
    )

    def count_rows(connection: object, cursor: Any, *ignored: object) -> None:
        reads.rows += max(0, cursor.rowcount) if cursor.description else 0

    def steps_of(driver: Any) -> int:
        return int(driver.execute(looked_at).fetchone()[0])

    def begin(driver: Any, *ignored: object) -> None:
        reads.steps -= steps_of(driver)  # of transactions before, not reported yet

    def end(driver: Any, *ignored: object) -> None:
        reads.steps += steps_of(driver)

    engine = hiermem._services.database._engine
    with engine.connect() as connection:  # as the server's autovacuum does within a minute
        connection.exec_driver_sql("ANALYZE")
    listeners = {"after_cursor_execute": count_rows, "checkout": begin, "checkin": end}
    return _listening(engine, listeners)


def database_bytes(hiermem: HierMem) -> bytes:
    """Return all a database holds, its write-ahead log included; no write leaves it equal."""
    database = hiermem._services.database
    if database.dialect_name == "postgresql":
        return _rows_with_writers(database)
    with database.read() as connection:
        driver: Any = connection.connection.driver_connection
        pages: bytes = driver.serialize()
    file = database.location.database
    log = file.with_name(f"{file.name}-wal") if file else None
    return pages + (log.read_bytes() if log and log.is_file() else b"")


def _rows_with_writers(database: Database) -> bytes:
    """Return every row of every table, and which transaction wrote it."""
    with database.read() as connection:
        rows = [
            f"{table} {row}"
            for table in sorted(inspect(connection).get_table_names())
            for row in connection.exec_driver_sql(
                f"SELECT xmin::text, kept::text FROM {table} AS kept ORDER BY 2"  # noqa: S608 - ours
            ).all()
        ]
    return "\n".join(rows).encode()


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
        connection.execute(
            update(tables.threads)
            .where(threads.number == number.scalar_subquery())
            .values(changes=threads.changes + 1)
        )


def notes_store(hiermem: HierMem) -> NotesStore:
    """Return what keeps the notes, to write some that no model made."""
    return NotesStore(hiermem._services.database, tell=lambda event: None)
