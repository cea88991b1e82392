"""The newest turns of the threads in use, kept: what was read once is not read again."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from hiermem_core.forks import renewed_after_fork
from hiermem_core.models.turns import Turn
from hiermem_core.threads import reading
from hiermem_core.threads.rows import turn_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from hiermem_core.threads.reading import Head

MOST = 256
"""Turns of a thread that are kept at most."""

CHARACTERS = 8 * 2**20
"""What is kept of all threads together holds so many at most; the least recently read go first."""

_OVERHEAD = 512
"""What a turn without a word counts as."""

_Item = Turn | tuple[Any, ...]
"""A turn that nobody can change, or the row of one that somebody might, decoded for each reader."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """The newest turns of a thread, newest first, as they were when its row was `head`."""

    head: Head
    items: tuple[_Item, ...]
    is_whole: bool
    characters: int

    def is_continued_by(self, head: Head) -> bool:
        """Tell whether turns were only added since. Pure."""
        then = self.head
        is_same = (then.number, then.created_at, then.changes) == (
            head.number,
            head.created_at,
            head.changes,
        )
        return is_same and then.last_seq <= head.last_seq

    def grown(self, head: Head, rows: Sequence[Sequence[Any]]) -> _Kept:
        """Return the newest turns after these were added. Pure."""
        fresh = tuple(map(_item, rows))
        items, gone = (*fresh, *self.items)[:MOST], self.items[MOST - len(fresh) :]
        characters = self.characters + _characters(fresh) - _characters(gone)
        return _Kept(head, items, self.is_whole and not gone, characters)


class NewestTurns:
    """Give the newest turns of a thread; of those it gave before, nothing is read again.

    Whether they are still as they were is asked with each reading, in its own statement, so other
    processes may write, and what was forgotten is never given.
    """

    def __init__(self) -> None:
        self._kept: LRUCache[tuple[str, str], _Kept] = LRUCache(
            CHARACTERS, getsizeof=lambda kept: kept.characters
        )
        self._lock = threading.Lock()
        renewed_after_fork(self)

    def read(
        self, connection: Connection, tenant_id: str, thread_id: str, size: int
    ) -> tuple[Head, list[Turn]]:
        """Return a thread's row and its newest active turns, newest first.

        Args:
            size: Turns at most, itself at most `MOST`.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        key = (tenant_id, thread_id)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and not kept.is_whole and len(kept.items) < size:
            kept = None
        if kept is not None:
            head, rows = reading.newest_rows(connection, *key, after=kept.head.last_seq, size=MOST)
            if not kept.is_continued_by(head) or len(rows) == MOST:
                kept = None
        if kept is None:
            head, rows = reading.newest_rows(connection, *key, after=0, size=size)
            items = tuple(map(_item, rows))
            kept = _Kept(head, items, len(rows) < size, _characters(items))
            self._keep(key, kept)
        elif head.last_seq != kept.head.last_seq:
            kept = kept.grown(head, rows)
            self._keep(key, kept)
        return head, [turn_of(it) if isinstance(it, tuple) else it for it in kept.items[:size]]

    def after_fork(self) -> None:
        """Begin with a free lock in a forked child."""
        self._lock = threading.Lock()

    def _keep(self, key: tuple[str, str], kept: _Kept) -> None:
        with self._lock:
            self._kept.pop(key, None)
            if kept.characters <= CHARACTERS:
                self._kept[key] = kept


def _item(row: Sequence[Any]) -> _Item:
    turn = turn_of(row)
    holds_objects = turn.metadata or turn.parts or turn.tool_calls or turn.unreadable is not None
    return tuple(row) if holds_objects else turn


def _characters(items: Iterable[_Item]) -> int:
    return sum(_OVERHEAD + sum(map(len, _texts(item))) for item in items)


def _texts(item: _Item) -> list[str]:
    if isinstance(item, tuple):
        return [value for value in item if isinstance(value, str)]
    return [item.content or "", item.origin.dump if item.origin else ""]
