"""A daemon thread that is there while there is work, and never keeps a process alive."""

from __future__ import annotations

import contextvars
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from hiermem_core.forks import renewed_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Job = TypeVar("Job")


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[Job]):
    job: Job
    context: contextvars.Context


class Worker(Generic[Job]):
    """Do jobs one after the other, first come first served, off the caller's thread.

    A job runs with the context variables of whoever gave it. Under one key one job waits at most:
    a newer one takes its place in the queue, and one that runs already stays.

    Args:
        name: Of the thread.
        do: Does a job; must not raise.
    """

    def __init__(self, name: str, do: Callable[[Job], None]) -> None:
        self._name = name
        self._do = do
        self._closing = threading.Event()
        self._begin()
        renewed_after_fork(self)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._waiting: dict[Hashable, _Waiting[Job]] = {}

    @property
    def is_stopping(self) -> bool:
        """Tell whether running work should end: it is closed, or the process ends."""
        return self._closing.is_set() or not threading.main_thread().is_alive()

    @property
    def is_running(self) -> bool:
        """Tell whether its thread is there."""
        return self._thread is not None

    @property
    def is_current(self) -> bool:
        """Tell whether this is its thread."""
        return self._thread is threading.current_thread()

    def put(self, key: Hashable, job: Job) -> bool:
        """Have a job done; never waits. Tell whether it will be: not when closed, for one."""
        with self._changed:
            if self.is_stopping or not self._started():
                return False
            self._waiting[key] = _Waiting(job, contextvars.copy_context())
            return True

    def when_idle(self, timeout: float | None = None) -> bool:
        """Wait until no job waits or runs, and tell whether that is so.

        It is not after `timeout` seconds, nor when it is closed meanwhile, nor inside a job.
        """
        if self.is_current:
            return False
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None or self._closing.is_set(), timeout)
            return self._thread is None

    def close(self, timeout: float | None = None) -> None:
        """Take no job, let the running one end, and wait for that. Idempotent."""
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def after_fork(self) -> None:
        """Leave the parent's thread, and what it is to do, to the parent."""
        self._begin()

    def _started(self) -> bool:
        """Start the thread where there is none; it is known before it can end."""
        if self._thread is not None:
            return True
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is ending, or has no thread left
            self._thread = None
        return self._thread is not None

    def _run(self) -> None:
        try:
            while (waiting := self._next()) is not None:
                waiting.context.run(self._do, waiting.job)
        except BaseException:  # whatever ends this thread, the next job starts another
            self._end()
            raise

    def _next(self) -> _Waiting[Job] | None:
        """Return the next job; where there is none, the thread has ended for all others."""
        with self._changed:
            if self._waiting and not self.is_stopping:
                return self._waiting.pop(next(iter(self._waiting)))
            self._waiting.clear()
            self._end()
            return None

    def _end(self) -> None:
        with self._changed:
            self._thread = None
            self._changed.notify_all()
