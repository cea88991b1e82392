"""Private threads: they run calls, go when idle, and keep no process alive."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import threading
import weakref

import pytest
from core import children
from core.working.gated import auntil, until, wait_for_child

from hiermem_core import WorkingMemory
from hiermem_core import pool as pools
from hiermem_core.errors import ClosedError
from hiermem_core.pool import Pool

CALLER = contextvars.ContextVar("CALLER", default="nobody")

ASK_WHAT_HANGS = """
import asyncio, threading
from hiermem_core import WorkingMemory

begun = threading.Event()

def hang(*query):
    begun.set()
    threading.Event().wait()

async def leave(memory):
    waiting = asyncio.ensure_future(memory.asearch("tea"))
    while not begun.is_set():
        await asyncio.sleep(0)
    waiting.cancel()

asyncio.run(leave(WorkingMemory({memory})))
"""

LEAVE_A_CALL = """
import asyncio, sys, threading
from hiermem_core import pool as pools

begun, go = threading.Event(), threading.Event()

def call():
    begun.set()
    go.wait()
    print("it ended")

async def leave(pool):
    waiting = asyncio.ensure_future(pool.run(call))
    while not begun.is_set():
        await asyncio.sleep(0)
    waiting.cancel()

pool = pools.Pool()
asyncio.run(leave(pool))
"""


@pytest.fixture
def pool():
    made = Pool(2)
    yield made
    made.close()


@pytest.mark.parametrize("memory", ["hang", "lambda query: query, generation=hang"])
def test_e5_a_load_or_check_that_hangs_keeps_no_process_alive(memory):
    assert ended(ASK_WHAT_HANGS.format(memory=memory)) == (0, "", "")


def test_e2_the_end_of_the_process_waits_for_a_call_that_has_begun():
    let_go_late = "timer = threading.Timer(0.2, go.set); timer.daemon = True; timer.start()"

    assert ended(LEAVE_A_CALL + let_go_late) == (0, "it ended\n", "")


def test_e5_the_end_of_the_process_does_not_wait_for_ever():
    hurry = "pools.LAST_SECONDS = 0.1"

    assert ended(LEAVE_A_CALL + hurry) == (0, "", "")


def ended(script):
    """Return the exit status of a script, what it printed, and what it complained of."""
    return children.finish(children.start(script))


def test_e16_calls_run_with_the_context_of_their_caller(pool):
    CALLER.set("somebody")

    assert pool.submit(CALLER.get).result(10) == "somebody"


def test_calls_run_at_once_up_to_the_most_and_then_wait_their_turn(pool):
    both, go, seen = threading.Barrier(3), threading.Event(), []

    def meet():
        both.wait(10)
        go.wait(10)

    first = [pool.submit(meet) for _ in range(2)]
    both.wait(10)
    later = [pool.submit(seen.append, number) for number in range(20)]
    were_waiting = not any(one.done() for one in later)
    go.set()
    for one in first + later:
        one.result(10)

    assert were_waiting
    assert sorted(seen) == list(range(20))


def test_a_call_that_is_cancelled_before_it_begins_never_does(pool):
    go, seen = threading.Event(), []
    running = [pool.submit(go.wait, 10) for _ in range(2)]

    waiting = pool.submit(seen.append, 1)
    cancelled = waiting.cancel()
    go.set()
    for one in running:
        one.result(10)
    pool.submit(seen.append, 2).result(10)

    assert cancelled
    assert seen == [2]


def test_a_thread_that_is_idle_ends_and_another_one_is_made(monkeypatch):
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.0)
    before = threading.active_count()
    pool = Pool(1)

    for number in range(3):
        assert pool.submit(lambda number=number: number).result(10) == number
        until(lambda: threading.active_count() == before)


def test_a_closed_pool_lets_its_calls_end_and_takes_no_more():
    pool, go = Pool(1), threading.Event()
    running = pool.submit(go.wait, 10)
    waiting = pool.submit(lambda: "late")

    pool.close(wait=False)
    go.set()
    pool.close()
    pool.close()

    assert (running.result(0), waiting.result(0)) == (True, "late")
    with pytest.raises(ClosedError):
        pool.submit(go.wait)


def test_a_call_may_close_the_pool_it_runs_in(pool):
    assert pool.submit(pool.close).result(10) is None


def test_an_error_is_not_kept_by_what_raised_it(pool):
    class Big:
        """What an error's traceback might hold."""

    def fail():
        big = Big()
        held.append(weakref.ref(big))
        raise ZeroDivisionError

    held = []
    gc.disable()
    try:
        error = pool.submit(fail).exception(10)
        was_raised = type(error) is ZeroDivisionError
        del error
        until(lambda: held[0]() is None)
    finally:
        gc.enable()

    assert was_raised


def test_where_no_thread_can_be_made_the_caller_is_told_and_the_next_call_runs(pool, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            pool.submit(lambda: 1)

    assert pool.submit(lambda: 2).result(10) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(pool):
    pool.submit(lambda: 1).result(10)

    child = os.fork()
    if child == 0:
        os._exit(0 if pool.submit(lambda: 7).result(10) == 7 else 1)

    assert wait_for_child(child) == 0


def test_the_tasks_of_loops_that_were_closed_are_let_go(caplog):
    asked = []

    async def hang(query):
        asked.append(query)
        await asyncio.get_running_loop().create_future()

    async def leave(query):
        waiting = asyncio.ensure_future(memory.asearch(query))
        await auntil(lambda: query in asked)
        return waiting

    memory = WorkingMemory(hang)
    waiting = []
    for number in range(5):
        loop = asyncio.new_event_loop()
        waiting.append(loop.run_until_complete(leave(str(number))))
        loop.close()
    for one in waiting:
        one._log_destroy_pending = False
    del waiting, one
    loads = weakref.WeakSet(memory._asking.serving._tasks)
    last = asyncio.new_event_loop()
    last.run_until_complete(leave("last")).cancel()

    gc.collect()

    assert len(loads) == 0
    assert len(memory._asking.serving._tasks) == 1
    assert memory.stats().in_flight == 1
    assert len(memory._asking.serving.table._flights) == 1
    for task in asyncio.all_tasks(last):
        task.cancel()
    last.run_until_complete(asyncio.sleep(0))
    last.close()
    assert [record for record in caplog.records if "selector" not in record.message] == []
