"""One load for all who ask alike, and nobody waits for what will not come."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import threading
import time

import pytest

from hiermem_core import WorkingMemory, create_working_memory
from hiermem_core.errors import ConfigurationError

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


@pytest.fixture
def callers():
    made = Callers()
    yield made
    made.ends()


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


@pytest.mark.parametrize(
    ("kind", "threads", "tasks"),
    [
        (Gated, 20, 0),
        (Gated, 0, 20),
        (Gated, 10, 10),
        (Gated, 100, 100),
        (AsyncGated, 0, 20),
        (AsyncGated, 0, 200),
    ],
)
def test_d2_equal_calls_at_once_share_one_load(callers, kind, threads, tasks):
    searcher = kind()
    memory = WorkingMemory(searcher)
    for _ in range(threads):
        callers.start(lambda: memory.search("tea"))
    for _ in range(2 if tasks else 0):
        callers.start(in_tasks(memory, tasks // 2))

    until(lambda: memory.stats().calls == threads + tasks)
    in_flight = memory.stats().in_flight
    searcher.go.set()
    outcomes = callers.ends()

    answers = [a for o in outcomes for a in ([o] if o and o[0] == "tea" else o)]
    assert answers == [["tea", "tea"]] * (threads + tasks)
    assert len({id(answer) for answer in answers}) == threads + tasks
    assert searcher.loads == in_flight == 1
    assert memory.stats().joined == threads + tasks - 1
    assert memory.stats().in_flight == 0


def test_d2_one_searcher_in_both_colours_shares_its_flights(callers):
    class Both(Gated):
        async def asearch(self, query):
            return await asyncio.to_thread(self.search, query)

    for first_is_awaited in (True, False):
        searcher = Both()
        memory = WorkingMemory(searcher)
        starts = [in_tasks(memory, 5), lambda m=memory: [m.search("tea")]]
        for start in starts if first_is_awaited else reversed(starts):
            callers.start(start)
            searcher.begun.acquire(timeout=1)
        until(lambda m=memory: m.stats().calls == 6)
        searcher.go.set()
        callers.ends()

        assert searcher.loads == 1
        assert memory.stats().joined == 5


def test_d2_callers_of_other_keys_do_not_wait(callers):
    searcher = Gated()
    slow = WorkingMemory(lambda query: searcher.search(query) if query == "slow" else query)
    callers.start(lambda: slow.search("slow"))
    searcher.begun.acquire()

    quick = [slow.search("quick"), slow.search("quick")]
    awaited = asyncio.run(slow.asearch("another"))
    was_held = not searcher.go.is_set()
    searcher.go.set()

    assert quick == ["quick", "quick"]
    assert awaited == "another"
    assert was_held


def test_d7_all_who_joined_get_the_error_and_it_is_not_kept(callers):
    error = ZeroDivisionError("no tea")
    searcher = Gated(error)
    memory = WorkingMemory(searcher)
    for _ in range(10):
        callers.start(lambda: memory.search("tea"))
    callers.start(in_tasks(memory, 10))
    until(lambda: memory.stats().calls == 20)

    searcher.go.set()
    outcomes = callers.ends()
    searcher.answer = ("tea",)

    raised = [e for o in outcomes for e in (o if isinstance(o, list) else [o])]
    assert len(raised) == 20
    assert all(one is error for one in raised)
    assert (memory.stats().misses, memory.stats().failures) == (1, 1)
    assert memory.search("tea") == ["tea", "tea"]


@pytest.mark.parametrize("kind", [Gated, AsyncGated])
def test_d15_a_cancelled_caller_leaves_alone(kind):
    searcher = kind()
    memory = WorkingMemory(searcher)

    async def cancel_the_first():
        tasks = [asyncio.ensure_future(memory.asearch("tea")) for _ in range(20)]
        await auntil(lambda: memory.stats().calls == 20)
        tasks[0].cancel()
        await asyncio.wait([tasks[0]])
        searcher.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, *others = asyncio.run(cancel_the_first())

    assert isinstance(first, asyncio.CancelledError)
    assert others == [["tea", "tea"]] * 19
    assert searcher.loads == 1


@pytest.mark.parametrize("kind", [Gated, AsyncGated])
@pytest.mark.parametrize("answer", [("tea",), ZeroDivisionError("no tea")])
def test_d15_when_all_are_cancelled_the_load_still_ends_and_nothing_is_logged(kind, answer, caplog):
    searcher = kind(answer)
    memory = WorkingMemory(searcher)
    caplog.set_level(logging.DEBUG, logger="asyncio")
    caplog.clear()

    async def cancel_all():
        asyncio.get_running_loop().set_debug(False)
        tasks = [asyncio.ensure_future(memory.asearch("tea")) for _ in range(20)]
        await auntil(lambda: memory.stats().calls == 20)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        searcher.go.set()
        await auntil(lambda: memory.stats().in_flight == 0)
        return [task.cancelled() for task in tasks]

    cancelled = asyncio.run(cancel_all())

    assert all(cancelled)
    assert (searcher.loads, searcher.ended) == (1, 1)
    assert memory.stats().entries == (answer == ("tea",))
    assert [record for record in caplog.records if "selector" not in record.message] == []


def test_d15_a_caller_whose_time_is_up_leaves_alone():
    searcher = AsyncGated()
    memory = WorkingMemory(searcher)

    async def time_out():
        patient = asyncio.ensure_future(memory.asearch("tea"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(memory.asearch("tea"), 0.01)
        searcher.go.set()
        return await patient

    assert asyncio.run(time_out()) == ["tea", "tea"]
    assert searcher.loads == 1


@pytest.mark.parametrize("kind", [Gated, AsyncGated])
def test_d16_what_was_invalidated_during_its_load_answers_early_callers_only(kind):
    searcher = kind()
    memory = WorkingMemory(searcher)

    async def invalidate_amid():
        early = [asyncio.ensure_future(memory.asearch("tea")) for _ in range(3)]
        await auntil(lambda: memory.stats().calls == 3)
        dropped = memory.invalidate("tea")
        late = [asyncio.ensure_future(memory.asearch("tea")) for _ in range(3)]
        await auntil(lambda: memory.stats().calls == 6)
        loads, in_flight = searcher.loads, memory.stats().in_flight
        await auntil(lambda: searcher.loads == 2)
        searcher.go.set()
        answers = await asyncio.gather(*early, *late)
        return dropped, loads, in_flight, answers

    dropped, _, in_flight, answers = asyncio.run(invalidate_amid())

    assert dropped == 0
    assert in_flight == 2
    assert answers == [["tea", "tea"]] * 6
    assert searcher.loads == 2
    assert memory.stats().entries == 1


def test_d16_an_invalidated_load_is_not_kept(callers):
    searcher = Gated()
    memory = WorkingMemory(searcher)
    callers.start(lambda: memory.search("tea"))
    searcher.begun.acquire()

    memory.invalidate()
    searcher.go.set()
    outcomes = callers.ends()

    assert outcomes == [["tea", "tea"]]
    assert memory.stats().entries == 0


def test_d18_a_load_that_a_write_overtook_is_not_kept(callers):
    class Store(Gated):
        def add(self, text):
            return text

    searcher = Store()
    store = create_working_memory(searcher)
    callers.start(lambda: store.search("tea"))
    searcher.begun.acquire()

    store.add("green tea")
    searcher.go.set()
    callers.ends()

    assert store.working_memory.stats().entries == 0


def test_d24_with_ttl_0_calls_at_once_share_a_load(callers):
    searcher = Gated()
    memory = WorkingMemory(searcher, ttl_seconds=0)
    for _ in range(20):
        callers.start(lambda: memory.search("tea"))
    until(lambda: memory.stats().calls == 20)

    searcher.go.set()
    callers.ends()

    assert searcher.loads == 1
    assert memory.stats().entries == 0


def test_d25_who_joined_is_told_so(callers):
    searcher = Gated()
    memory = WorkingMemory(searcher)
    for _ in range(2):
        callers.start(lambda: memory.search_with_source("tea"))
    until(lambda: memory.stats().calls == 2)

    searcher.go.set()
    served = callers.ends()

    assert sorted(one.source for one in served) == ["backend", "flight"]
    assert served[0].result == served[1].result


def test_an_answer_that_cannot_be_copied_is_not_shared(callers):
    searcher = Gated()
    memory = WorkingMemory(lambda query: (part for part in searcher.search(query)))
    for _ in range(5):
        callers.start(lambda: list(memory.search("tea")))
    until(lambda: memory.stats().calls == 5)

    searcher.go.set()

    assert callers.ends() == [["tea", "tea"]] * 5
    assert (memory.stats().misses, memory.stats().bypassed, memory.stats().joined) == (1, 4, 0)


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


def test_an_error_of_the_generation_reaches_the_caller_and_is_counted():
    closed = WorkingMemory(lambda query: [query], generation=raising)

    with pytest.raises(ConfigurationError):
        closed.search("tea")

    assert (closed.stats().calls, closed.stats().failures) == (1, 1)


def raising():
    raise ConfigurationError("location", "is closed; open it")
