"""Serving calls: from what is kept, from a flight, or from the searcher, in both colours."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from hiermem_core.errors import ConfigurationError
from hiermem_core.forks import renewed_after_fork
from hiermem_core.models.events import RecallServed
from hiermem_core.pool import Pool
from hiermem_core.working.answers import Answer, first_expiry, hits_in, is_weak
from hiermem_core.working.copying import UncopyableError, copier
from hiermem_core.working.flights import LOST, Flight, Landing, TaskWaiter, ThreadWaiter, loading
from hiermem_core.working.table import Table, wake_all
from hiermem_core.working.values import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from hiermem_core.working.keys import Frozen, Key
    from hiermem_core.working.options import Options
    from hiermem_core.working.table import Step

_LOAD_THREADS = 32
_logger = logging.getLogger(__name__)


class Call(NamedTuple):
    """One call of a searcher.

    Attributes:
        key: `None`: it has none, and goes straight to the searcher.
        load: Asks the searcher.
        aload: Asks it by awaiting, where that is its way.
        generation: Reads the searcher's generation; `None`: it has none.
    """

    key: Key | None
    load: Callable[[], Any] | None
    aload: Callable[[], Coroutine[Any, Any, Any]] | None
    generation: Callable[[], Frozen] | None = None
    agenerate: Callable[[], Coroutine[Any, Any, Frozen]] | None = None
    tenant: str = ""


class Serving:
    """Serve calls for threads, tasks and several event loops at once.

    A load belongs to no caller. In threads it runs in the first caller's thread; of tasks it is a
    task of its own, or runs in a private thread where the searcher cannot be awaited. Generations
    are read in a thread of their own, so that no call waits for the load of another one. Neither
    loads nor reads keep a process alive.
    """

    def __init__(self, options: Options) -> None:
        self.table = Table(options)
        self._options = options
        self._clock = options.monotonic
        self._tasks: set[asyncio.Task[None]] = set()
        self._loaders = Pool(_LOAD_THREADS, name="hiermem-load", finishes=False)
        self._checkers = Pool(1, name="hiermem-check", finishes=False)
        for pool in (self._loaders, self._checkers):
            weakref.finalize(self, pool.close, wait=False).atexit = False
        renewed_after_fork(self)

    def serve(self, call: Call) -> Served[Any]:
        """Answer a call in this thread.

        Raises:
            ConfigurationError: The searcher can only be awaited.
            Exception: What the searcher raises, unchanged.
        """
        if call.load is None:
            raise ConfigurationError("searcher", "can only be awaited; call asearch")
        served: Served[Any] | None = None
        if call.key is None or not self._options.enabled:
            self._count_direct()
            served = Served(call.load(), "backend", 0.0)
        else:
            while served is None:
                served = self._attempt(call, call.key, call.load)
        if self._options.observer is not None:
            self._tell(call, served)
        return served

    async def aserve(self, call: Call) -> Served[Any]:
        """Answer a call; a task that waits holds no thread.

        Raises:
            Exception: What the searcher raises, unchanged.
        """
        served: Served[Any] | None = None
        if call.key is None or not self._options.enabled:
            self._count_direct()
            served = Served(await self._straight(call), "backend", 0.0)
        else:
            while served is None:
                served = await self._aattempt(call, call.key)
        if self._options.observer is not None:
            self._tell(call, served)
        return served

    def generation(self, call: Call) -> Frozen:
        """Return the searcher's generation; `None` where it has none."""
        if call.generation is None:
            return None
        try:
            return call.generation()
        except Exception:  # counted, and raised on
            self.table.count_failure()
            raise

    async def agenerate(self, call: Call) -> Frozen:
        """Return the searcher's generation, read without blocking the event loop."""
        try:
            if call.agenerate is not None:
                return await call.agenerate()
            if call.generation is None:
                return None
            return await self._checkers.run(call.generation)
        except Exception:  # counted, and raised on
            self.table.count_failure()
            raise

    def after_fork(self) -> None:
        """Go on with what the forking thread can still use."""
        self.table.after_fork()
        self._tasks = set()

    def _attempt(self, call: Call, key: Key, load: Callable[[], Any]) -> Served[Any] | None:
        """Answer a call; `None` where the flight it joined was lost, and it starts anew."""
        generation = self.generation(call)
        answer = self.table.hit(key, generation)
        if answer is not None:
            return self._kept(answer)
        flight, waiter = Flight(key, generation, self._clock()), ThreadWaiter()
        joined, landing = flight, None
        try:
            step = self.table.enter(flight, waiter, blocks=True)
            if step.leads:
                return self._lead(load, flight)
            if step.joined is not None:
                joined = step.joined
                landing = waiter.wait(joined)
        finally:
            self.table.give_up(flight)
            self.table.leave(joined)
        if step.answer is not None:
            return self._kept(step.answer)
        if landing is not None:
            served = self._shared(step, joined, landing)
            if served is not None or not landing.is_delivered:
                return served
        return Served(load(), "backend", 0.0)

    async def _aattempt(self, call: Call, key: Key) -> Served[Any] | None:
        """Answer a call; `None` where the flight it joined was lost, and it starts anew."""
        generation = await self.agenerate(call)
        await self._free()
        answer = self.table.hit(key, generation)
        if answer is not None:
            return self._kept(answer)
        loop = None if call.aload is None else asyncio.get_running_loop()
        flight, waiter = Flight(key, generation, self._clock(), loop), TaskWaiter()
        step = self.table.enter(flight, waiter, blocks=False)
        if step.answer is not None:
            return self._kept(step.answer)
        if step.leads or step.joined is not None:
            joined = step.joined or flight
            try:
                if step.leads:
                    self._start(call, flight, waiter)
                landing = await waiter.wait(joined)
            finally:
                self.table.leave(joined)
            served = self._shared(step, joined, landing)
            if served is not None or not landing.is_delivered:
                return served
        return Served(await self._straight(call), "backend", 0.0)

    def _lead(self, load: Callable[[], Any], flight: Flight) -> Served[Any]:
        token = loading.set((*loading.get(), flight))
        landing, answer = LOST, None
        try:
            result = load()
            landing, answer = self._landing(flight, result)
        except BaseException as error:  # whoever waits is told, whatever it is
            landing = _failed(error)
            raise
        finally:
            loading.reset(token)
            self._land(flight, landing, answer)
        return Served(result, "backend", 0.0)

    def _start(self, call: Call, flight: Flight, waiter: TaskWaiter) -> None:
        """Start a load that goes on by itself; the waiter of its caller comes first."""
        if flight.waiters is not None:
            flight.waiters.insert(0, waiter)
        try:
            if call.aload is None:
                flight.is_queued = True
                self._loaders.submit(self._fly, call.load, flight)
            else:
                self._forget_lost()
                task = asyncio.ensure_future(self._afly(call.aload, flight))
                self._tasks.add(task)
                task.add_done_callback(lambda task: self._forget(task, flight))
        except BaseException as error:  # whoever waits is told, whatever it is
            self._land(flight, _failed(error), None)
            raise

    def _fly(self, load: Callable[[], Any] | None, flight: Flight) -> None:
        """Load in a private thread; the one whose call it was gets whatever comes of it."""
        flight.is_queued = False
        with suppress(BaseException):  # it has landed with the error
            self._lead(lambda: _called(load), flight)

    async def _afly(self, aload: Callable[[], Coroutine[Any, Any, Any]], flight: Flight) -> None:
        loading.set((*loading.get(), flight))
        landing, answer = LOST, None
        try:
            result = await aload()
            landing, answer = self._landing(flight, result)
            await self._free()
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            landing = _failed(error)
        except BaseException as error:  # so is whoever waits for a cancelled load
            landing = landing if landing is not LOST else _failed(error)
            raise
        finally:
            self._land(flight, landing, answer)

    def _land(self, flight: Flight, landing: Landing, answer: Answer | None) -> None:
        if flight.waiters is None:
            return
        failed = isinstance(landing.error, Exception) or landing.tells_of_failure
        seconds = self._clock() - flight.started
        wake_all(self.table.land(flight, answer, seconds=seconds, failed=failed), landing)

    def _landing(self, flight: Flight, result: Any) -> tuple[Landing, Answer | None]:
        """Return what those who wait get of a result, and what is kept of it."""
        failed = bool(self._options.is_failure(result))
        try:
            make = copier(result)
        except UncopyableError:
            return Landing(result, tells_of_failure=failed), None
        landing = Landing(result, make, tells_of_failure=failed)
        if failed or is_weak(result):
            return landing, None
        ends_at, expiry = math.inf, first_expiry(result)
        if expiry is not None:
            ends_at = self._clock() + (expiry - self._options.now()).total_seconds()
        stale_at = flight.started + self._options.ttl_seconds
        return landing, Answer(make, flight.generation, flight.started, stale_at, ends_at)

    def _kept(self, answer: Answer) -> Served[Any]:
        return Served(answer.make(), "cache", self._clock() - answer.started)

    def _shared(self, step: Step, flight: Flight, landing: Landing) -> Served[Any] | None:
        """Return what one who waited gets; `None`: nothing, the call is to be answered otherwise.

        Raises:
            BaseException: What the load raised, where this call led it or an error is delivered.
        """
        if landing.error is not None and (step.leads or landing.is_delivered):
            raise landing.error
        if step.leads and landing is not LOST:
            return Served(landing.result, "backend", 0.0)
        if landing.is_delivered and landing.make is not None:
            return Served(landing.make(), "flight", self._clock() - flight.started)
        self.table.recount(step, bypassed=landing.is_delivered)
        if not landing.is_delivered:
            self.table.give_up(flight)
        return None

    def _count_direct(self) -> None:
        if self._options.enabled:
            self.table.count_bypass()

    async def _straight(self, call: Call) -> Any:
        if call.aload is not None:
            return await call.aload()
        return await self._loaders.run(_called, call.load)

    async def _free(self) -> None:
        """Wait, without blocking the event loop, until no thread holds the table's lock."""
        lock = self.table.lock
        while not lock.acquire(blocking=False):  # noqa: ASYNC110 - it is held for microseconds
            await asyncio.sleep(0)
        lock.release()

    def _forget(self, task: asyncio.Task[None], flight: Flight) -> None:
        """Let a task go that ended; one that was cancelled before it began has not landed yet."""
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()
        self.table.give_up(flight)

    def _forget_lost(self) -> None:
        """Let the tasks go, without a log line, whose event loop was closed while they ran."""
        for task in tuple(self._tasks):
            if task.get_loop().is_closed():
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - no other way
                self._tasks.discard(task)

    def _tell(self, call: Call, served: Served[Any]) -> None:
        observer = self._options.observer
        if observer is None:
            return
        try:
            hits = hits_in(served.result)
            observer(RecallServed(call.tenant, served.source, hits, served.age_seconds))
        except Exception as error:  # noqa: BLE001 - an observer that raises affects nothing
            _logger.warning("observer failed on RecallServed: %s", type(error).__name__)


def _called(load: Callable[[], Any] | None) -> Any:
    if load is None:
        raise AssertionError("a searcher can be asked in one way at least")
    return load()


def _failed(error: BaseException) -> Landing:
    is_delivered = isinstance(error, Exception) and not isinstance(
        error, concurrent.futures.CancelledError
    )
    return Landing(error=error, is_delivered=is_delivered)
