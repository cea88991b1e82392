"""Searchers that wait until they are let go, and those who call them."""

from __future__ import annotations

import asyncio
import os
import threading
import time

WATCHDOG_SECONDS = 60


class Gated:
    """A searcher whose loads wait until they are let go, in a thread or awaited."""

    def __init__(self, answer=("tea",)):
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.answer = answer
        self.loads = 0
        self.ended = 0

    def search(self, query):
        self.loads += 1
        self.begun.release()
        assert self.go.wait(WATCHDOG_SECONDS)
        self.ended += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return [query, *self.answer]


class AsyncGated(Gated):
    """The same, awaited; it holds no thread."""

    async def search(self, query):
        self.loads += 1
        self.begun.release()
        while not self.go.is_set():  # noqa: ASYNC110 - it is set from another loop's thread
            await asyncio.sleep(0)
        self.ended += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return [query, *self.answer]


class Callers:
    """Threads that end before the test does."""

    def __init__(self):
        self.outcomes = []
        self.threads = []

    def start(self, work):
        def run():
            try:
                outcome = work()
            except BaseException as error:  # noqa: BLE001 - it is what the test looks at
                outcome = error
            self.outcomes.append(outcome)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.threads.append(thread)

    def ends(self):
        for thread in self.threads:
            thread.join(WATCHDOG_SECONDS)
            assert not thread.is_alive(), "a deadlock"
        return self.outcomes


def until(holds):
    """Wait until something holds, without a pace of its own."""
    end = time.monotonic() + WATCHDOG_SECONDS
    while not holds():
        assert time.monotonic() < end, "it never held"
        time.sleep(0)


async def auntil(holds):
    end = time.monotonic() + WATCHDOG_SECONDS
    while not holds():
        assert time.monotonic() < end, "it never held"
        await asyncio.sleep(0)


def in_tasks(memory, count, query="tea"):
    """Return what runs `count` equal searches as tasks of a loop of its own."""

    async def gather():
        return await asyncio.gather(
            *(memory.asearch(query) for _ in range(count)), return_exceptions=True
        )

    return lambda: asyncio.run(gather())


def wait_for_child(child):
    """Return how a child exited; kill it when it hangs."""
    end = time.monotonic() + WATCHDOG_SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")
