"""Threads of several processes, and processes that are killed."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from core.children import finish, run, run_until_killed, start
from core.drivers import troubled_driver

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.errors import BackendError
from hiermem_core.testing import FaultPlan, InjectedFault
from hiermem_core.testing.contracts.samples import asked_and_answered, said
from hiermem_core.testing.contracts.threads import assert_batches_are_whole

APPEND_BATCHES = """
from hiermem_core import ApproximateCounter, HierMem
location, worker, batches, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with HierMem.open(location, counter=ApproximateCounter()) as hiermem:
    thread = hiermem.tenant("acme").thread("t1")
    print("ready", flush=True)
    sys.stdin.readline()
    for batch in range(batches):
        names = [f"{worker}-{batch}.{place}" for place in range(size)]
        thread.append([{"role": "user", "content": name} for name in names])
"""

REPLACE_AND_DIE = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FaultPlan
location, point = sys.argv[1:]
counter = ApproximateCounter()
thread = HierMem.open(location, counter=counter).tenant("acme").thread("t1")
with FaultPlan(point, action="kill"):
    thread.replace([{"role": "user", "content": f"new {place}"} for place in range(5)])
"""

APPEND_AND_DIE = """
import os, signal
from hiermem_core import ApproximateCounter, HierMem
counter = ApproximateCounter()
thread = HierMem.open(sys.argv[1], counter=counter).tenant("acme").thread("t1")
for number in range(int(sys.argv[2])):
    (turn,) = thread.append([{"role": "user", "content": f"turn {number}"}])
    print(turn.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

FORK_AND_APPEND = """
import os
from hiermem_core import ApproximateCounter, HierMem
hiermem = HierMem.open(sys.argv[1], counter=ApproximateCounter())
thread = hiermem.tenant("acme").thread("t1")

def driver():
    with hiermem._services.database.read() as connection:
        return connection.connection.driver_connection

def append(who):
    for number in range(30):
        thread.append([{"role": "user", "content": f"{who} {number}"}])

append("before")
inherited = driver()
child = os.fork()
if child == 0:
    status = 1
    try:
        append("child")
        status = 0 if driver() is not inherited else 2
    finally:
        os._exit(status)
append("parent")
assert driver() is inherited
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

FORK_WHILE_WRITING = """
import os, threading
from hiermem_core import ApproximateCounter, HierMem
hiermem = HierMem.open(sys.argv[1], counter=ApproximateCounter(), busy_seconds=2)
thread = hiermem.tenant("acme").thread("t1")
thread.append([{"role": "user", "content": "before"}])
other = hiermem.tenant("acme").thread("t2")
writing, done = threading.Event(), threading.Event()

def write():
    while not done.is_set():
        other.append([{"role": "user", "content": "text"} for _ in range(100)])
        writing.set()

writer = threading.Thread(target=write)
writer.start()
writing.wait()
for _ in range(10):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            stored = len(thread.turns())
            thread.append([{"role": "user", "content": "child"}])
            assert len(thread.turns()) == stored + 1
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
done.set()
writer.join()
"""

FORK_AND_AWAIT = """
import asyncio, os
from hiermem_core import ApproximateCounter, AsyncHierMem, HierMem
hiermem = AsyncHierMem(HierMem.open(sys.argv[1], counter=ApproximateCounter()))
thread = hiermem.tenant("acme").thread("t1")

async def append(who):
    await asyncio.gather(
        *(thread.append([{"role": "user", "content": f"{who} {n}"}]) for n in range(10))
    )

asyncio.run(append("before"))
child = os.fork()
if child == 0:
    status = 1
    try:
        asyncio.run(asyncio.wait_for(append("child"), 20))
        status = 0
    finally:
        os._exit(status)
asyncio.run(append("parent"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


def opened(location):
    return HierMem.open(location, counter=ApproximateCounter())


def turns_of(location):
    with opened(location) as hiermem:
        return hiermem.tenant("acme").thread("t1").turns()


def contents_of(location):
    return [turn.content for turn in turns_of(location)]


def is_sound(location):
    with sqlite3.connect(location / "memory.db") as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def run_together(children):
    """Let children that wait for a line go at once, and wait for their ends."""
    for child in children:
        assert child.stdout.readline() == "ready\n", finish(child)
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    return [finish(child) for child in children]


def test_b1_batches_of_eight_threads_and_two_processes_are_contiguous_and_without_gap(location):
    opened(location).close()
    children = [start(APPEND_BATCHES, location, f"process{n}", 20, 3) for n in range(2)]
    with opened(location) as hiermem, ThreadPoolExecutor(9) as workers:
        thread = hiermem.tenant("acme").thread("t1")

        def append_batches(worker):
            for batch in range(10):
                thread.append(said(f"thread{worker}-{batch}.{place}" for place in range(3)))

        ends = workers.submit(run_together, children)
        list(workers.map(append_batches, range(8)))
        statuses = [status for status, _, _ in ends.result()]

        turns = thread.turns()
    assert statuses == [0, 0]
    assert [turn.seq for turn in turns] == list(range(1, 3 * (8 * 10 + 2 * 20) + 1))
    assert_batches_are_whole(turns, batches=8 * 10 + 2 * 20, size=3)


def test_four_processes_that_create_and_fill_one_thread_lose_nothing(location):
    children = [start(APPEND_BATCHES, location, f"process{n}", 25, 1) for n in range(4)]

    ends = run_together(children)

    turns = turns_of(location)
    assert [status for status, _, _ in ends] == [0, 0, 0, 0]
    assert [turn.seq for turn in turns] == list(range(1, 101))
    assert len({turn.content for turn in turns}) == 100
    assert is_sound(location)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("rows.before_commit", [f"old {n}" for n in range(9)]),
        ("rows.after_commit", [f"new {n}" for n in range(5)]),
    ],
)
def test_b5_a_replace_that_is_killed_leaves_all_old_or_all_new_turns(location, point, expected):
    with opened(location) as hiermem:
        hiermem.tenant("acme").thread("t1").append(said(f"old {n}" for n in range(9)))

    run_until_killed(REPLACE_AND_DIE, location, point)

    assert contents_of(location) == expected
    assert is_sound(location)


def test_b5_a_replace_that_fails_before_its_commit_leaves_all_old_turns(location):
    with opened(location) as hiermem:
        thread = hiermem.tenant("acme").thread("t1")
        old = thread.append(asked_and_answered("abc"))
        info = thread.info()

        with FaultPlan("rows.before_commit"), pytest.raises(InjectedFault):
            thread.replace(said("xyz"))

        assert thread.turns() == old
        assert thread.turns(status="archived") == []
        assert thread.info() == info


def test_b5_a_replace_that_fails_half_way_leaves_all_old_turns(location):
    error = sqlite3.OperationalError("database or disk is full")
    with troubled_driver() as trouble, opened(location) as hiermem:
        thread = hiermem.tenant("acme").thread("t1")
        old = thread.append(asked_and_answered("abc"))
        trouble.set(1_000, error)
        thread.replace(asked_and_answered("xyz"))
        steps = trouble.written
        thread.replace(old)

        for step in range(1, steps + 1):
            stored = thread.turns()
            trouble.set(step, error)
            with pytest.raises(BackendError):
                thread.replace(said("new"))
            trouble.clear()
            assert thread.turns() == stored

        assert [turn.content for turn in thread.turns()] == [turn.content for turn in old]
        assert steps > 5


def test_what_append_returned_survives_a_kill_right_after(location):
    ids = run_until_killed(APPEND_AND_DIE, location, 40).split()

    assert len(ids) == 40
    assert [turn.id for turn in turns_of(location)] == ids


def test_a_forked_child_opens_connections_of_its_own(location):
    run(FORK_AND_APPEND, location)

    turns = turns_of(location)
    assert [turn.seq for turn in turns] == list(range(1, 91))
    assert len({turn.content for turn in turns}) == 90
    assert is_sound(location)


def test_a_child_forked_while_a_thread_writes_inherits_no_transaction(location):
    run(FORK_WHILE_WRITING, location)

    assert contents_of(location) == ["before", *["child"] * 10]
    assert is_sound(location)


def test_a_forked_child_awaits_on_threads_of_its_own(location):
    run(FORK_AND_AWAIT, location)

    assert len(set(contents_of(location))) == 30
