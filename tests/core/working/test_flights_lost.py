"""Nobody waits for a load that waits for itself, is interrupted or loses its loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading

import pytest
from core.working.gated import (
    WATCHDOG_SECONDS,
    AsyncGated,
    Gated,
    auntil,
    in_tasks,
    until,
    wait_for_child,
)

from hiermem_core import WorkingMemory


@pytest.mark.parametrize("awaits", [False, True])
def test_d26_a_load_that_asks_for_its_own_key_goes_straight_to_the_searcher(callers, awaits):
    class Recursive:
        depth = 0

        def search(self, query):
            self.depth += 1
            return [query] if self.depth > 1 else [*memory.search(query), "outer"]

    class AsyncRecursive:
        depth = 0

        async def search(self, query):
            self.depth += 1
            return [query] if self.depth > 1 else [*await memory.asearch(query), "outer"]

    memory = WorkingMemory(AsyncRecursive() if awaits else Recursive())
    callers.start(
        (lambda: asyncio.run(memory.asearch("tea"))) if awaits else lambda: memory.search("tea")
    )

    assert callers.ends() == [["tea", "outer"]]
    assert memory.stats().bypassed == 1


@pytest.mark.parametrize("awaits", [False, True])
def test_d26_two_loads_that_ask_for_each_other_do_not_deadlock(callers, awaits):
    both_run = threading.Barrier(2)
    asked = set()
    other = {"tea": "milk", "milk": "tea"}

    def search(query):
        if query in asked:
            return [query]
        asked.add(query)
        both_run.wait(WATCHDOG_SECONDS)
        return [query, memory.search(other[query])]

    async def asearch(query):
        if query in asked:
            return [query]
        asked.add(query)
        while len(asked) < 2:  # noqa: ASYNC110 - both begin before either goes on
            await asyncio.sleep(0)
        return [query, await memory.asearch(other[query])]

    async def ask_both():
        return await asyncio.gather(memory.asearch("tea"), memory.asearch("milk"))

    memory = WorkingMemory(asearch if awaits else search)
    if awaits:
        callers.start(lambda: asyncio.run(ask_both()))
    else:
        for query in ("tea", "milk"):
            callers.start(lambda query=query: memory.search(query))

    outcomes = callers.ends()

    assert not any(isinstance(outcome, BaseException) for outcome in outcomes)
    assert memory.stats().bypassed == 1


def test_d26_a_thread_does_not_wait_for_a_task_of_its_own_loop(callers):
    class Both:
        def search(self, query):
            return [query, "asked at once"]

        async def asearch(self, query):
            await asyncio.sleep(0.01)
            return [query, "awaited"]

    memory = WorkingMemory(Both())

    async def block():
        waiting = asyncio.ensure_future(memory.asearch("tea"))
        await auntil(lambda: memory.stats().in_flight == 1)
        return memory.search("tea"), await waiting

    callers.start(lambda: asyncio.run(block()))

    assert callers.ends() == [(["tea", "asked at once"], ["tea", "awaited"])]
    assert memory.stats().bypassed == 1


@pytest.mark.parametrize(
    "interruption", [KeyboardInterrupt(), SystemExit(3), concurrent.futures.CancelledError()]
)
def test_an_interrupted_load_is_not_delivered_and_another_caller_starts_anew(callers, interruption):
    searcher = Gated(interruption)
    memory = WorkingMemory(searcher)
    callers.start(lambda: memory.search("tea"))
    searcher.begun.acquire()
    for _ in range(5):
        callers.start(lambda: memory.search("tea"))
    callers.start(in_tasks(memory, 5))
    until(lambda: memory.stats().calls == 11)

    def calm_down():
        searcher.begun.acquire()
        searcher.answer = ("tea",)

    searcher.go.set()
    callers.start(calm_down)
    outcomes = callers.ends()

    delivered = [o for o in outcomes if isinstance(o, BaseException)]
    assert all(error is interruption for error in delivered)
    assert memory.stats().calls == 11
    assert memory.stats().in_flight == 0


def test_a_load_whose_task_is_cancelled_is_started_anew_by_another_loop(callers):
    searcher = AsyncGated()
    memory = WorkingMemory(searcher)

    async def leave():
        asyncio.ensure_future(memory.asearch("tea"))  # noqa: RUF006 - the loop's end cancels it
        await auntil(lambda: memory.stats().calls == 1)
        callers.start(in_tasks(memory, 3))
        await auntil(lambda: memory.stats().calls == 4)

    asyncio.run(leave())
    until(lambda: searcher.loads == 2)
    searcher.go.set()

    assert callers.ends() == [[["tea", "tea"]] * 3]
    assert (searcher.loads, memory.stats().in_flight) == (2, 0)


def test_a_load_that_is_cancelled_before_it_begins_leaves_nothing_behind():
    memory = WorkingMemory(AsyncGated())

    async def leave_at_once():
        asyncio.ensure_future(memory.asearch("tea"))  # noqa: RUF006 - the loop's end cancels it
        await asyncio.sleep(0)

    asyncio.run(leave_at_once())

    assert memory.stats().in_flight == 0
    assert memory.stats().misses == 1


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nobody_waits_for_a_loop_that_stopped(callers, is_closed, caplog):
    searcher = AsyncGated()
    memory = WorkingMemory(searcher)
    loop = asyncio.new_event_loop()
    leading = loop.create_task(memory.asearch("tea"))
    while not memory.stats().calls:
        loop.run_until_complete(asyncio.sleep(0))
    if is_closed:
        loop.close()
    callers.start(in_tasks(memory, 3))

    until(lambda: searcher.loads == 2)
    searcher.go.set()
    outcomes = callers.ends()
    if not is_closed:
        assert loop.run_until_complete(leading) == ["tea", "tea"]
        loop.close()
    del leading, loop

    assert outcomes == [[["tea", "tea"]] * 3]
    assert memory.stats().entries == 1
    assert memory.stats().in_flight == 0


def test_a_waiting_task_holds_no_thread():
    searcher = AsyncGated()
    memory = WorkingMemory(searcher)

    async def wait_many():
        before = threading.active_count()
        tasks = [asyncio.ensure_future(memory.asearch("tea")) for _ in range(200)]
        await auntil(lambda: memory.stats().calls == 200)
        threads = threading.active_count() - before
        searcher.go.set()
        await asyncio.gather(*tasks)
        return threads

    assert asyncio.run(wait_many()) == 0


def test_the_threads_of_a_working_memory_go_with_it():
    before = threading.active_count()
    memory = WorkingMemory(lambda query: [query], generation=lambda: 1)
    asyncio.run(memory.asearch("tea"))
    during = threading.active_count()

    del memory

    until(lambda: threading.active_count() == before)
    assert during > before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_waits_for_nobody(callers):
    searcher = Gated()
    memory = WorkingMemory(searcher)
    callers.start(lambda: memory.search("tea"))
    searcher.begun.acquire()
    asyncio.run(WorkingMemory(lambda query: query).asearch("warm"))

    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            searcher.go.set()
            answers = memory.search("tea"), asyncio.run(memory.asearch("milk"))
            os._exit(0 if answers == (["tea", "tea"], ["milk", "tea"]) else 1)
        os._exit(2)
    status = wait_for_child(child)
    searcher.go.set()

    assert status == 0
    assert callers.ends() == [["tea", "tea"]]
