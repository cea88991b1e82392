"""Forking: never while a transaction is open, since SQLite's locks would stay held in the child."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hiermem_core.forks import around_fork

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_WAIT = 5.0
"""Seconds a fork waits for open transactions; nobody's code runs inside one, so they are short."""


class ForkGate:
    """Lets transactions pass, and makes a fork wait until none is open."""

    def __init__(self) -> None:
        self._begin()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Count the block as an open transaction."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking)
            self._open += 1
        try:
            yield
        finally:
            with self._changed:
                self._open -= 1
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Let no new transaction pass, and wait for the open ones."""
        with self._changed:
            self._is_forking = True
            self._changed.wait_for(lambda: not self._open, LONGEST_WAIT)

    def after_in_parent(self) -> None:
        """Let transactions pass again."""
        with self._changed:
            self._is_forking = False
            self._changed.notify_all()

    def after_in_child(self) -> None:
        """Begin anew; the threads that waited are not here."""
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._open = 0
        self._is_forking = False


gate = ForkGate()
around_fork(before=gate.before_fork, in_parent=gate.after_in_parent, in_child=gate.after_in_child)
