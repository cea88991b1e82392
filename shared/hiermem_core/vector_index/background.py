"""A thread that is there while there is work, and never keeps a process alive."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hiermem_core.errors import IndexUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_THREAD_NAME = "hiermem-index"
_LONGEST_REST = 0.2


class Background:
    """Work that one thread at a time does: one of its own, or a caller's, which has precedence.

    Args:
        work: Called by the background thread, with the turn to work; must not raise.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._closing = threading.Event()
        self._begin()

    def _begin(self) -> None:
        self._state = threading.Lock()
        self._turn = threading.Lock()
        self._worker: threading.Thread | None = None
        self._is_wanted = False
        self._waiting = 0

    @property
    def is_stopping(self) -> bool:
        """Tell whether running work should end: the HierMem closes, or the process ends."""
        return self._closing.is_set() or not threading.main_thread().is_alive()

    @property
    def is_awaited(self) -> bool:
        """Tell whether a caller waits for the turn to work."""
        return self._waiting > 0

    @property
    def is_running(self) -> bool:
        """Tell whether the background thread is at work."""
        return self._worker is not None

    def wake(self) -> None:
        """Have the work done once more, soon. Never waits."""
        with self._state:
            self._is_wanted = True
            if self._worker is not None or self.is_stopping:
                return
            thread = threading.Thread(target=self._run, name=_THREAD_NAME)
            with suppress(RuntimeError):  # the interpreter is ending
                thread.start()
                self._worker = thread

    def join(self, timeout: float | None) -> None:
        """Wait until the background thread has ended, without pauses in its work."""
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            with self._counted():
                worker.join(timeout)

    @contextmanager
    def turn(self, timeout: float | None) -> Iterator[None]:
        """Work in this thread, as soon as nobody else does.

        Raises:
            IndexUnavailableError: Another still works after `timeout` seconds.
        """
        with self._counted():
            if not self._turn.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
                reason = "it is busy; try again later, or wait longer"
                raise IndexUnavailableError("waiting for the index", reason)
        try:
            yield
        finally:
            self._turn.release()

    def rest(self, seconds: float) -> None:
        """Let other threads work for a while, unless one waits for the turn."""
        if not self.is_awaited:
            self._closing.wait(min(seconds, _LONGEST_REST))

    def stop(self) -> None:
        """Have running work end, and start none."""
        self._closing.set()

    def after_fork(self) -> None:
        """Begin anew in a forked child, where nothing runs, and nothing ever will."""
        self._closing = threading.Event()
        self._closing.set()
        self._begin()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._state:
            self._waiting += 1
        try:
            yield
        finally:
            with self._state:
                self._waiting -= 1

    def _run(self) -> None:
        while self._goes_on():
            with self._turn:
                self._work()

    def _goes_on(self) -> bool:
        with self._state:
            goes_on = self._is_wanted and not self.is_stopping
            self._is_wanted = False
            if not goes_on:
                self._worker = None
            return goes_on


def seconds_left(deadline: float | None) -> float | None:
    """Return the seconds until a moment of the monotonic clock; `None`: there is none."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())
