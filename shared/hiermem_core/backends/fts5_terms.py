"""The terms that FTS5 makes of texts: SQLite is asked itself, so that no engine differs from it."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from typing import TYPE_CHECKING

from hiermem_core.forks import renewed_after_fork
from hiermem_core.storage.keyword_tables import TERMS_INDEX

if TYPE_CHECKING:
    from collections.abc import Iterable

_INSTANCES = "SELECT doc, term, count(*) FROM instances GROUP BY doc, term"


class Fts5Terms:
    """Tell the terms of texts, by an empty index in memory. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._index: sqlite3.Connection | None = None
        renewed_after_fork(self)

    def of(self, texts: Iterable[str]) -> list[Counter[str]]:
        """Return how often each term stands in each of some texts."""
        rows = list(enumerate(texts))
        counts: list[Counter[str]] = [Counter() for _ in rows]
        with self._lock:
            index = self._opened()
            index.executemany("INSERT INTO bodies (rowid, body) VALUES (?, ?)", rows)
            for row, term, times in index.execute(_INSTANCES):
                counts[row][term] = times
            index.execute("INSERT INTO bodies (bodies) VALUES ('delete-all')")
        return counts

    def after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.Lock()
        self._index = None

    def _opened(self) -> sqlite3.Connection:
        if self._index is None:
            index = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            for statement in TERMS_INDEX:
                index.execute(statement)
            self._index = index
        return self._index
