"""Flights: one load for all who ask alike, in threads, tasks and event loops."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core.working.keys import Frozen, Key

POLL_SECONDS = 0.25
"""How often it is looked whether the event loop that runs a load still runs."""


@dataclass(frozen=True, slots=True)
class Landing:
    """How a load ended.

    Attributes:
        result: What it gave, for the one whose call it was.
        make: Makes copies of it for the others; `None`: it cannot be shared.
        error: What it raised.
        is_delivered: The others get the result or error; else one of them starts anew.
        tells_of_failure: The result says that it failed.
    """

    result: Any = None
    make: Callable[[], Any] | None = None
    error: BaseException | None = None
    is_delivered: bool = True
    tells_of_failure: bool = False


LOST = Landing(is_delivered=False)
"""Of a load whose event loop stopped before it ended."""


class ThreadWaiter:
    """A thread that waits for a landing."""

    __slots__ = ("_lock", "landing")

    def __init__(self) -> None:
        self.landing = LOST
        self._lock = threading.Lock()
        self._lock.acquire()

    def wake(self, landing: Landing) -> None:
        """Let it go on, from any thread."""
        self.landing = landing
        self._lock.release()

    def wait(self, flight: Flight) -> Landing:
        """Return the landing; `LOST` when it will not come."""
        if flight.loop is None:
            self._lock.acquire()
            return self.landing
        while not self._lock.acquire(timeout=POLL_SECONDS):
            if not flight.loop.is_running():
                return LOST
        return self.landing


class TaskWaiter:
    """A task that waits for a landing; holds no thread."""

    __slots__ = ("_future", "_loop", "landing")

    def __init__(self) -> None:
        self.landing = LOST
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    def wake(self, landing: Landing) -> None:
        """Let it go on, from any thread; nothing happens where its loop is closed."""
        self.landing = landing
        try:
            self._loop.call_soon_threadsafe(self._let_go)
        except RuntimeError:
            return

    def _let_go(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, flight: Flight) -> Landing:
        """Return the landing; `LOST` when it will not come."""
        if flight.loop is None or flight.loop is self._loop:
            await self._future
            return self.landing
        while not (await asyncio.wait([self._future], timeout=POLL_SECONDS))[0]:
            if not flight.loop.is_running():
                return LOST
        return self.landing


Waiter = ThreadWaiter | TaskWaiter


class Flight:
    """A load in progress.

    Attributes:
        generation: Of the searcher, read before the load.
        started: When the load began.
        loop: The event loop it runs on; `None`: it runs in a thread.
        is_queued: Its load waits for a private thread.
        waits_for: The flights its load waits for.
        waiters: Who waits for it; `None` before it is led, and once it landed.
    """

    __slots__ = ("generation", "is_queued", "key", "loop", "started", "waiters", "waits_for")

    def __init__(
        self,
        key: Key,
        generation: Frozen,
        started: float,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.key = key
        self.generation = generation
        self.started = started
        self.loop = loop
        self.is_queued = False
        self.waits_for: set[Flight] = set()
        self.waiters: list[Waiter] | None = None

    @property
    def is_lost(self) -> bool:
        """Tell whether its event loop was closed before it landed."""
        return self.loop is not None and self.loop.is_closed()


loading: contextvars.ContextVar[tuple[Flight, ...]] = contextvars.ContextVar("loading", default=())
"""The flights whose loads the running code is part of, the innermost last."""


def would_deadlock(callers: tuple[Flight, ...], wanted: Flight) -> bool:
    """Tell whether a flight waits, at last, for one of the flights that are about to join it."""
    seen: set[Flight] = set()
    ahead = [wanted]
    while ahead:
        flight = ahead.pop()
        if flight in callers and flight.waiters is not None:
            return True
        if flight not in seen:
            seen.add(flight)
            ahead.extend(flight.waits_for)
    return False


def blocks_itself(flight: Flight) -> bool:
    """Tell whether a thread that waits would keep the flight's own event loop from running."""
    if flight.loop is None:
        return False
    try:
        return asyncio.get_running_loop() is flight.loop
    except RuntimeError:  # this thread runs no loop
        return False
