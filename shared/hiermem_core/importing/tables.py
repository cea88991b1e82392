"""The formats of database tables: which columns tell one, and what reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hiermem_core.importing import langchain_sql, llamaindex_sql, mem0_history
from hiermem_core.importing.claude_flow import (
    collective,
    hive,
    memory_manager,
    patterns,
    sessions,
    shared_memory,
    sparc,
    sqlite_store,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core.importing.databases import Row, Tables
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

    Columns = frozenset[str]


@dataclass(frozen=True, slots=True)
class TableFormat:
    """What reads the tables of a format.

    Attributes:
        order: By which its rows are read, as SQL.
    """

    name: str
    fits: Callable[[str, Columns], bool]
    read: Callable[[Iterator[tuple[str, Row]], Reading], Iterator[Record]]
    order: str = "rowid"

    def records(self, database: Tables, table: str, reading: Reading) -> Iterator[Record]:
        """Yield the records of a table."""
        rows = enumerate(database.rows(table, order=self.order), 1)
        return self.read(((f"{table} row {number}", row) for number, row in rows), reading)


def format_of(table: str, columns: Columns, wanted: str | None = None) -> TableFormat | None:
    """Return the format of a table, the first that fits.

    Args:
        wanted: Only this one.
    """
    known = (one for one in TABLE_FORMATS if wanted in (None, one.name))
    return next((one for one in known if one.fits(table, columns)), None)


def _entries(*needed: str, without: str = "") -> Callable[[str, Columns], bool]:
    names = frozenset(needed)
    return lambda table, columns: (
        table == "memory_entries" and names <= columns and without not in columns
    )


def _table(name: str, *needed: str) -> Callable[[str, Columns], bool]:
    names = frozenset(needed)
    return lambda table, columns: table == name and names <= columns


def _any(names: Columns) -> Callable[[str, Columns], bool]:
    return lambda _, columns: names <= columns


TABLE_FORMATS: tuple[TableFormat, ...] = (
    TableFormat(memory_manager.FORMAT, _entries(*memory_manager.COLUMNS), memory_manager.read_rows),
    TableFormat(sqlite_store.STORE, _entries("value", "content"), sqlite_store.read_mixed),
    TableFormat(sqlite_store.STORE, _entries("value", "accessed_at"), sqlite_store.read_store),
    TableFormat(
        sqlite_store.UNIFIED, _entries("value", "timestamp", "source"), sqlite_store.read_unified
    ),
    TableFormat(
        sqlite_store.INITIAL,
        _entries("value", "type", "expires_at", without="accessed_at"),
        sqlite_store.read_initial,
    ),
    TableFormat(
        sqlite_store.LATER, _entries("content", "status", "embedding"), sqlite_store.read_later
    ),
    TableFormat(
        shared_memory.FORMAT,
        _table("memory_store", *shared_memory.COLUMNS),
        shared_memory.read_rows,
    ),
    TableFormat(hive.MEMORIES, _table("memories", *hive.MEMORIES_COLUMNS), hive.read_memories),
    TableFormat(hive.MEMORY, _table("memory", *hive.MEMORY_COLUMNS), hive.read_memory),
    TableFormat(
        collective.FORMAT, _table("collective_memory", *collective.COLUMNS), collective.read_rows
    ),
    TableFormat(sparc.FORMAT, _table("memory_items", *sparc.COLUMNS), sparc.read_rows),
    TableFormat(patterns.BANK, _table("patterns", "pattern_data"), patterns.read_bank),
    TableFormat(patterns.MODEL, _table("patterns", "problem", "solution"), patterns.read_model),
    TableFormat(
        patterns.LATER, _table("patterns", "condition", "action"), patterns.read_later_patterns
    ),
    TableFormat(patterns.HIVE, _table("neural_patterns", "pattern_data"), patterns.read_neural),
    TableFormat(
        patterns.BANK,
        _table("task_trajectories", "task_id", "trajectory_json"),
        sessions.read_task_trajectories,
    ),
    TableFormat(
        patterns.LATER,
        _table("trajectories", "session_id", "verdict"),
        sessions.read_trajectories,
    ),
    TableFormat(
        patterns.LATER,
        _table("trajectory_steps", "trajectory_id", "action"),
        sessions.read_steps,
        sessions.TRAJECTORIES_ORDER,
    ),
    TableFormat(
        patterns.LATER, _table("sessions", "state", "project_path"), sessions.read_sessions
    ),
    TableFormat(langchain_sql.FORMAT, _any(langchain_sql.COLUMNS), langchain_sql.read_rows, "id"),
    TableFormat(
        llamaindex_sql.FORMAT,
        _any(llamaindex_sql.COLUMNS),
        llamaindex_sql.read_rows,
        "timestamp, id",
    ),
    TableFormat(
        llamaindex_sql.FORMAT,
        lambda table, columns: (
            table.startswith(llamaindex_sql.VALUE_TABLES)
            and columns == llamaindex_sql.VALUE_COLUMNS
        ),
        llamaindex_sql.read_values,
        "id",
    ),
    TableFormat(
        mem0_history.FORMAT,
        _table("history", *mem0_history.COLUMNS),
        mem0_history.read_history,
    ),
    TableFormat(
        mem0_history.FORMAT,
        _table("messages", *mem0_history.MESSAGE_COLUMNS),
        mem0_history.read_messages,
    ),
)
"""In this order; the first that fits is taken."""
