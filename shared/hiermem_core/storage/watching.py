"""Facts of a database file that stay valid until something is committed, by whomever."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING, Any

from hiermem_core.forks import renewed_after_fork

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from pathlib import Path


class Watch:
    """Read facts, and keep them while SQLite's `data_version` says that nothing was committed.

    Asking for a fact that is kept costs microseconds. The watch has a connection of its own, which
    writes nothing, so that it sees every commit: of this process and of others.
    """

    is_exact = True

    def __init__(self, database: Path) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._facts: dict[tuple[Hashable, ...], Any] = {}
        renewed_after_fork(self)

    def value(self, statement: str, parameters: Sequence[Hashable] = ()) -> Any:
        """Return the first column of a statement's first row; `None` without a row.

        Raises:
            sqlite3.Error: The file cannot be read.
        """
        key = (statement, *parameters)
        with self._lock:
            connection = self._opened()
            version = connection.execute("PRAGMA data_version").fetchone()[0]
            if version != self._version:
                self._version = version
                self._facts.clear()
            if key not in self._facts:
                row = connection.execute(statement, parameters).fetchone()
                self._facts[key] = None if row is None else row[0]
            return self._facts[key]

    def written(self) -> None:
        """Do nothing: SQLite says that something was committed."""

    def close(self) -> None:
        """Close the connection. Idempotent; the next question opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def after_fork(self) -> None:
        """Leave the parent's connection alone in a forked child."""
        self._left_behind = self._connection
        self._lock = threading.Lock()
        self._connection = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(
                self._database, check_same_thread=False, isolation_level=None
            )
            self._version = -1
        return self._connection
