"""Private threads: what async methods run on, and what never keeps a process alive."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakSet

from hiermem_core.errors import ClosedError
from hiermem_core.forks import renewed_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

POOL_THREADS = 8
IDLE_SECONDS = 10.0
"""After how long a thread that has nothing to do ends."""
LAST_SECONDS = 5.0
"""How long the end of the process waits, at most, for the calls of all pools that finish them."""


class Pool:
    """At most `most` daemon threads that run calls, first come first served.

    Belongs to no event loop. Cancelling an awaiting caller releases it at once; a call that has
    begun still completes. A thread is made when a call finds none free, and ends when it was idle
    for `IDLE_SECONDS`. None of them keeps a process alive: a call that hangs ends with it.

    Args:
        finishes: The process waits with its end until all calls ended, `LAST_SECONDS` at most, so
            that a write that has begun completes. Otherwise they end where they are.
    """

    def __init__(
        self, most: int = POOL_THREADS, *, name: str = "hiermem", finishes: bool = True
    ) -> None:
        self._most = most
        self._name = name
        self._closed = False
        self._begin()
        renewed_after_fork(self)
        if finishes:
            _finishing.add(self)

    def _begin(self) -> None:
        lock = threading.RLock()
        self._came = threading.Condition(lock)
        self._ended = threading.Condition(lock)
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads: set[threading.Thread] = set()
        self._busy: set[threading.Thread] = set()
        self._idle = 0

    def submit(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Have `function` run with the caller's context variables; never waits.

        Raises:
            ClosedError: The pool is closed.
        """
        call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
        future: Future[R] = Future()
        with self._came:
            if self._closed:
                raise ClosedError
            self._waiting.append((future, call))
            if self._idle >= len(self._waiting):
                self._came.notify()
            elif len(self._threads) < self._most:
                self._start_one()
        return future

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `function` returns, run by `submit`.

        Raises:
            ClosedError: The pool is closed.
        """
        return await asyncio.wrap_future(self.submit(function, *args, **kwargs))

    def close(self, *, wait: bool = True) -> None:
        """Take no new call; with `wait`, let running calls end and join the threads. Idempotent."""
        with self._came:
            self._closed = True
            self._came.notify_all()
            threads = set(self._threads)
        if wait and threading.current_thread() not in threads:
            for thread in threads:
                thread.join()

    def finish(self, timeout: float) -> bool:
        """Wait until no call waits or runs; false after `timeout` seconds."""
        with self._ended:
            return self._ended.wait_for(lambda: not (self._waiting or self._busy), timeout)

    def after_fork(self) -> None:
        """Leave the parent's threads, and what they are to do, to the parent."""
        self._begin()

    def _start_one(self) -> None:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:  # the system has no thread left, or the interpreter is ending
            self._threads.discard(thread)
            if not self._threads:
                self._waiting.pop()
                raise

    def _run(self) -> None:
        while (given := self._next()) is not None:
            _carry_out(*given)
            del given

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """Return the next call; `None`: this thread is to end, and is not counted any more."""
        me = threading.current_thread()
        with self._came:
            self._busy.discard(me)
            self._ended.notify_all()
            self._idle += 1
            self._came.wait_for(lambda: self._waiting or self._closed, IDLE_SECONDS)
            self._idle -= 1
            if self._waiting:
                self._busy.add(me)
                return self._waiting.popleft()
            self._threads.discard(me)
            return None


def _carry_out(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whoever waits gets it
        future.set_exception(error)
        del future, call  # the error's traceback holds this frame
    else:
        future.set_result(result)


async def run_apart(function: Callable[[], R]) -> R:
    """Run `function` in a thread of its own that ends with it; for opening and closing."""
    pool = Pool(1, name="apart")
    try:
        return await pool.run(function)
    finally:
        pool.close(wait=False)


_finishing: WeakSet[Pool] = WeakSet()


def _finish_all() -> None:
    end = time.monotonic() + LAST_SECONDS
    for pool in list(_finishing):
        pool.finish(max(0.0, end - time.monotonic()))


atexit.register(_finish_all)
