"""Random interleavings: no stale answer, no lost waiter, and figures that add up.

`TEST_WORKING_ROUNDS` (default 1) makes each test longer by that factor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import threading
import time

import pytest

from hiermem_core import (
    ApproximateCounter,
    AsyncHierMem,
    HierMem,
    WorkingMemory,
    create_working_memory,
)
from hiermem_core.testing import FakeEmbedder

ROUNDS = int(os.environ.get("TEST_WORKING_ROUNDS", "1"))
WATCHDOG_SECONDS = 100 * ROUNDS
QUERIES = ("tea", "plum", "milk")

pytestmark = pytest.mark.timeout(120 * ROUNDS)


class Board:
    """What each query's answer is at least: a figure that only grows.

    A write grows the figure in the store first and is then noted as acknowledged, so that an
    answer below what was acknowledged before its search began is stale.
    """

    def __init__(self):
        self.stored = dict.fromkeys(QUERIES, 0)
        self.acknowledged = dict.fromkeys(QUERIES, 0)
        self.lock = threading.Lock()
        self.faults = []

    def write(self, query, number, store):
        with self.lock:
            number = self.stored[query] = self.stored[query] + 1
            store(query, number)
        with self.lock:
            self.acknowledged[query] = max(self.acknowledged[query], number)

    def check(self, query, least, seen):
        if seen < least:
            self.faults.append((query, least, seen))


def run_all(workers):
    """Run each worker in a thread of its own; fail when one raises or hangs."""
    errors = []

    def guarded(worker):
        try:
            worker()
        except BaseException as error:  # noqa: BLE001 - the test's own thread raises it
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(one,), daemon=True) for one in workers]
    for thread in threads:
        thread.start()
    end = time.monotonic() + WATCHDOG_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
        assert not thread.is_alive(), "a deadlock"
    if errors:
        raise errors[0]


class Plain:
    """A searcher without a generation, whose loads take a while of their own."""

    def __init__(self):
        self.kept = dict.fromkeys(QUERIES, 0)

    def search(self, query, limit=10):
        seen = self.kept[query]
        for _ in range(hash((query, limit, seen)) % 5):
            time.sleep(0)
        return {"seen": seen, "limit": limit}

    def store(self, query, number):
        time.sleep(0)
        self.kept[query] = number


class Counted:
    """Counts what is asked of a working memory."""

    def __init__(self):
        self.calls = 0
        self.lock = threading.Lock()

    def __call__(self):
        with self.lock:
            self.calls += 1


@pytest.mark.parametrize("ttl_seconds", [60.0, 0.001, 0])
@pytest.mark.parametrize("max_entries", [2, 100])
def test_d28_no_answer_is_older_than_an_acknowledged_write(ttl_seconds, max_entries):
    board, counted = Board(), Counted()
    store = create_working_memory(Plain(), ttl_seconds=ttl_seconds, max_entries=max_entries)
    memory = store.working_memory

    def work(seed):
        dice = random.Random(seed)
        for number in range(300 * ROUNDS):
            query, limit = dice.choice(QUERIES), dice.choice([5, 10])
            action = dice.random()
            if action < 0.8:
                least = board.acknowledged[query]
                counted()
                answer = store.search(query, limit=limit)
                board.check(query, least, answer["seen"])
                assert answer["limit"] == limit
                answer["seen"] = -1
            elif action < 0.85:
                memory.invalidate(dice.choice([query, None]))
            elif action < 0.9:
                memory.stats()
            else:
                board.write(query, number, store.store)

    run_all([lambda seed=seed: work(seed) for seed in range(8)])

    told = memory.stats()
    assert board.faults == []
    assert told.calls == counted.calls
    assert told.in_flight == 0
    assert told.entries <= max_entries
    kept = told.misses - told.expired - told.evicted - told.invalidated - told.entries
    assert kept >= 0


@pytest.mark.parametrize("backend", ["in_memory", "hybrid"])
def test_d28_in_front_of_a_service_in_threads_and_tasks(tmp_path, backend):
    board, counted = Board(), Counted()
    options = {"counter": ApproximateCounter(), "embedder": FakeEmbedder(), "backend": backend}
    with HierMem.open(tmp_path / "memory", **options) as hiermem:
        service = hiermem.tenant("acme").memory
        twin = AsyncHierMem(hiermem).tenant("acme").memory
        memory = WorkingMemory(twin)
        for query in QUERIES:
            service.store(f"{query} 0", id=query, namespace=query)

        def store(query, number):
            service.update(query, content=f"{query} {number}")

        def seen_in(result):
            return int(result[0].content.split()[1])

        def in_thread(seed):
            dice = random.Random(seed)
            for number in range(40 * ROUNDS):
                query = dice.choice(QUERIES)
                if dice.random() < 0.2:
                    board.write(query, number, store)
                    continue
                least = board.acknowledged[query]
                counted()
                board.check(query, least, seen_in(memory.search(namespace=query)))

        async def task(seed):
            dice = random.Random(seed)
            for _ in range(15 * ROUNDS):
                query = dice.choice(QUERIES)
                least = board.acknowledged[query]
                counted()
                board.check(query, least, seen_in(await memory.asearch(namespace=query)))

        async def tasks(seed):
            await asyncio.gather(*(task(f"{seed} {number}") for number in range(4)))

        run_all(
            [lambda seed=seed: in_thread(seed) for seed in range(4)]
            + [lambda seed=seed: asyncio.run(tasks(seed)) for seed in range(4)]
        )

    assert board.faults == []
    assert memory.stats().calls == counted.calls
    assert memory.stats().in_flight == 0


class Unruly:
    """A searcher that answers, raises, is cancelled or is interrupted, in both colours."""

    def __init__(self, seed):
        self._dice = random.Random(seed)
        self.version = 0
        self.loads = 0

    def _end(self, query, seen):
        chance = self._dice.random()
        if chance < 0.1:
            raise ZeroDivisionError(query)
        if chance < 0.15:
            raise asyncio.CancelledError
        return {"query": query, "seen": seen}

    def search(self, query):
        self.loads += 1
        seen = self.version
        for _ in range(self._dice.randrange(4)):
            time.sleep(0)
        return self._end(query, seen)

    async def asearch(self, query):
        self.loads += 1
        seen = self.version
        for _ in range(self._dice.randrange(6)):
            await asyncio.sleep(0)
        return self._end(query, seen)


class AwaitedOnly:
    def __init__(self, unruly):
        self.search = unruly.asearch


class CalledOnly:
    def __init__(self, unruly):
        self.search = unruly.search


FORMS = {"both": lambda unruly: unruly, "awaited": AwaitedOnly, "called": CalledOnly}
EXPECTED = (ZeroDivisionError, asyncio.CancelledError, TimeoutError)


class Storm:
    """Callers in threads and loops that come, wait, leave and end as the dice say."""

    def __init__(self, form, seed):
        self.unruly = Unruly(seed)
        self.seed = seed
        self.memory = WorkingMemory(
            FORMS[form](self.unruly), generation=lambda: self.unruly.version, max_entries=4
        )
        self.faults = []

    def judge(self, query, least, answer):
        if answer["query"] != query or answer["seen"] < least:
            self.faults.append((query, least, answer))

    def in_thread(self, name):
        dice = random.Random(f"{self.seed} {name}")
        for _ in range(60 * ROUNDS):
            query, least = dice.choice(QUERIES), self.unruly.version
            with contextlib.suppress(*EXPECTED):
                self.judge(query, least, self.memory.search(query))
            if dice.random() < 0.05:
                self.unruly.version += 1
            if dice.random() < 0.05:
                self.memory.invalidate(dice.choice([query, None]))

    async def ask(self, dice):
        query, least = dice.choice(QUERIES), self.unruly.version
        patience = dice.random() / 500 if dice.random() < 0.2 else None
        with contextlib.suppress(*EXPECTED):
            answer = await asyncio.wait_for(self.memory.asearch(query), patience)
            self.judge(query, least, answer)

    async def one_loop(self, dice):
        tasks = [asyncio.ensure_future(self.ask(dice)) for _ in range(20)]
        for task in tasks:
            if dice.random() < 0.3:
                await asyncio.sleep(0)
                task.cancel()
        if dice.random() < 0.7:
            await asyncio.gather(*tasks, return_exceptions=True)

    def in_loops(self, name):
        dice = random.Random(f"{self.seed} {name}")
        for _ in range(8 * ROUNDS):
            asyncio.run(self.one_loop(dice))
            if dice.random() < 0.1:
                self.memory.clear()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_no_waiter_is_lost_whatever_becomes_of_loads_callers_and_loops(form, seed):
    storm = Storm(form, seed)
    threads = 0 if form == "awaited" else 4

    run_all(
        [lambda n=n: storm.in_thread(n) for n in range(threads)]
        + [lambda n=n: storm.in_loops(f"loop {n}") for n in range(3)]
    )

    end = time.monotonic() + WATCHDOG_SECONDS
    while storm.memory.stats().in_flight and time.monotonic() < end:
        time.sleep(0)
    assert storm.faults == []
    assert storm.memory.stats().in_flight == 0
    assert storm.unruly.loads > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_children_forked_at_any_moment_answer():
    unruly = Plain()
    memory = WorkingMemory(unruly)
    stop = threading.Event()

    def search_on(seed):
        dice = random.Random(seed)
        while not stop.is_set():
            memory.search(dice.choice(QUERIES), limit=dice.randrange(300))
            if dice.random() < 0.1:
                memory.invalidate()

    def fork_often():
        statuses = []
        for _ in range(10 * ROUNDS):
            child = os.fork()
            if child == 0:
                code = 1
                with contextlib.suppress(BaseException):
                    unruly.kept["tea"] = 7
                    memory.invalidate("tea")
                    answers = memory.search("tea"), asyncio.run(memory.asearch("tea"))
                    code = 0 if answers == ({"seen": 7, "limit": 10},) * 2 else 2
                os._exit(code)
            statuses.append(os.waitstatus_to_exitcode(wait_for(child)))
        stop.set()
        assert statuses == [0] * len(statuses)

    def wait_for(child):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return status
            time.sleep(0)
        stop.set()
        os.kill(child, 9)
        return os.waitpid(child, 0)[1]

    run_all([lambda seed=seed: search_on(seed) for seed in range(4)] + [fork_often])

    assert memory.stats().in_flight == 0
