"""The private thread pool behind every async method."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from hiermem_core.errors import ClosedError
from hiermem_core.forks import renewed_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

POOL_THREADS = 8
_PREFIX = "hiermem"


class Pool:
    """A bounded pool of threads, made at the first call and gone after `close`.

    Belongs to no event loop. Cancelling an awaiting caller releases it at once; a call that has
    begun still completes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._closed = False
        renewed_after_fork(self)

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `function` in the pool with the caller's context variables.

        Raises:
            ClosedError: The pool is closed.
        """
        call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._started(), call)

    def close(self, *, wait: bool = True) -> None:
        """Take no new call; with `wait`, let running calls end and join the threads. Idempotent."""
        with self._lock:
            self._closed = True
            executor, self._executor = self._executor, None
        if executor is not None:
            is_ours = threading.current_thread().name.startswith(_PREFIX)
            executor.shutdown(wait=wait and not is_ours)

    def after_fork(self) -> None:
        """Leave the parent's threads alone after a fork."""
        self._lock = threading.Lock()
        self._executor = None

    def _started(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._closed:
                raise ClosedError
            if self._executor is None:
                self._executor = ThreadPoolExecutor(POOL_THREADS, thread_name_prefix=_PREFIX)
            return self._executor


async def run_apart(function: Callable[[], R]) -> R:
    """Run `function` in a thread of its own that ends with it; for opening and closing."""
    executor = ThreadPoolExecutor(1, thread_name_prefix="apart")
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, function)
    finally:
        executor.shutdown(wait=False)
