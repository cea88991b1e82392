"""Several processes, killed ones, and scripts that close nothing."""

from __future__ import annotations

import json
import signal

import pytest
from llamaindex.samples import (
    WATCHDOG_SECONDS,
    assistant,
    exchange,
    run_python,
    start_python,
    texts,
    user,
)

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemChatMemoryBuffer

OPEN = """
import asyncio, json, sys, threading
from llama_index.core.llms import ChatMessage
from hiermem_core import HierMem
from hiermem_core.testing import FaultPlan
from llamaindex.samples import assistant, exchange, texts, user
from llamaindex_hiermem import HierMemChatMemoryBuffer

def open_memory():
    tenant = HierMem.open(sys.argv[1]).tenant("alice")
    return HierMemChatMemoryBuffer.from_defaults(
        tenant=tenant, chat_store_key="trip", tokenizer_fn=str.split
    )

def start_together():
    print("ready", flush=True)
    sys.stdin.readline()
"""

SET_AND_DIE = """
memory = open_memory()
with FaultPlan(sys.argv[2], action="kill"):
    memory.set(exchange("new") * 50)
print("not reached")
"""

SET_FOR_EVER = """
memory = open_memory()
print("ready", flush=True)
for n in range(100_000):
    memory.set(exchange(f"e{n}") * 20)
"""

READ_TOGETHER = """
windows = []

def read():
    together.wait()
    windows.append(open_memory().get())

start_together()
together = threading.Barrier(10)
threads = [threading.Thread(target=read) for _ in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(windows))
"""

WRITE = """
memory = open_memory() if sys.argv[3] == "open first" else None
start_together()
memory = memory or open_memory()

def write(name):
    for n in range(25):
        memory.put(user(f"{name} {n}"))

writers = [
    threading.Thread(target=write, args=(f"{sys.argv[2]}.{n}",)) for n in range(int(sys.argv[4]))
]
for writer in writers:
    writer.start()
for writer in writers:
    writer.join()
"""

CLOSE_NOTHING = """
memory = open_memory()

async def main():
    await asyncio.gather(*(memory.aput(user(f"message {n}")) for n in range(20)))
    await memory.aget()
    private = HierMemChatMemoryBuffer.from_defaults()
    await private.aput(user("in this process"))
    print("stored", flush=True)
    ending = sys.argv[2]
    if ending == "raises":
        raise RuntimeError("on purpose")
    if ending == "exits":
        sys.exit(7)

asyncio.run(main())
"""

EXIT_CODES = {"ends": 0, "raises": 1, "exits": 7}


@pytest.fixture
def path(durable_location):
    return durable_location


@pytest.fixture
def open_here(path):
    """Give what opens the location in this process, closed at the end."""
    opened = []

    def open_memory():
        opened.append(HierMem.open(path))
        tenant = opened[-1].tenant("alice")
        return HierMemChatMemoryBuffer.from_defaults(tenant=tenant, chat_store_key="trip")

    yield open_memory
    for hiermem in opened:
        hiermem.close()


def start(script, *arguments):
    return start_python(OPEN + script, *arguments)


def go_together(children):
    """Release children that are ready, and return what they print after."""
    for child in children:
        assert child.stdout.readline() == "ready\n", child.communicate()[1]
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    ended = [child.communicate(timeout=WATCHDOG_SECONDS) for child in children]
    assert [child.returncode for child in children] == [0] * len(children), ended
    return [output for output, _ in ended]


def messages_of(name, messages):
    return [text for text in texts(messages) if text.startswith(f"{name} ")]


@pytest.mark.parametrize(
    ("point", "wanted"),
    [
        ("rows.before_commit", exchange("old")),
        ("rows.after_commit", exchange("new") * 50),
    ],
)
def test_l14_a_process_killed_inside_set_leaves_the_old_thread_or_the_new_one(
    path, open_here, point, wanted
):
    open_here().put_messages(exchange("old"))

    child = start(SET_AND_DIE, path, point)
    output, errors = child.communicate(timeout=WATCHDOG_SECONDS)

    assert (child.returncode, output) == (-signal.SIGKILL, ""), errors
    assert open_here().get_all() == wanted


def test_l14_a_process_killed_at_any_moment_of_a_set_leaves_one_whole_thread(path, open_here):
    memory = open_here()
    child = start(SET_FOR_EVER, path)
    assert child.stdout.readline() == "ready\n"
    names = set()
    while len(names) < 5:
        names.add(name_of_whole(memory.get_all()))
        names.add(name_of_whole(memory.get()))
    child.kill()
    child.communicate(timeout=WATCHDOG_SECONDS)

    assert child.returncode == -signal.SIGKILL
    assert name_of_whole(open_here().get_all()).startswith("e")


def name_of_whole(thread):
    """Return the name of the one `set` that a thread is from, whole."""
    name = thread[0].content.split()[0] if thread else ""
    assert thread == (exchange(name) * 20 if thread else [])
    return name


def test_puts_survive_a_kill_right_after_they_return(path, open_here):
    script = """
    import os, signal
    memory = open_memory()
    for n in range(20):
        memory.put(user(f"message {n}"))
    os.kill(os.getpid(), signal.SIGKILL)
    """.replace("\n    ", "\n")

    child = start(script, path)
    child.communicate(timeout=WATCHDOG_SECONDS)

    assert child.returncode == -signal.SIGKILL
    assert texts(open_here().get_all()) == [f"message {n}" for n in range(20)]


def test_l23_twenty_reads_of_a_new_location_start_together(path):
    printed = go_together([start(READ_TOGETHER, path) for _ in range(2)])

    assert [json.loads(output) for output in printed] == [[[]] * 10] * 2


def test_l23_four_processes_write_to_a_new_location_at_once(path, open_here):
    go_together([start(WRITE, path, f"process-{n}", "open late", 1) for n in range(4)])

    stored = open_here().get_all()
    assert len(stored) == 100
    for name in (f"process-{n}.0" for n in range(4)):
        assert messages_of(name, stored) == [f"{name} {n}" for n in range(25)]


def test_l40_two_processes_of_eight_threads_write_to_one_open_file(path, open_here):
    memory = open_here()
    memory.put(user("already here"))

    go_together([start(WRITE, path, f"process-{n}", "open first", 8) for n in range(2)])

    stored = memory.get_all()
    assert len(stored) == 1 + 2 * 8 * 25
    for name in (f"process-{process}.{thread}" for process in range(2) for thread in range(8)):
        assert messages_of(name, stored) == [f"{name} {n}" for n in range(25)]


def test_l32_a_thread_is_back_after_a_restart_and_archived_after_a_reset(path, open_here):
    run_python(OPEN + 'open_memory().put_messages(exchange("old"))', path)
    memory = open_here()
    restarted = memory.get_all()
    run_python(OPEN + "open_memory().reset()", path)

    archived = HierMem.opened(path).tenant("alice").thread("trip").turns(status="archived")

    assert restarted == exchange("old")
    assert memory.get_all() == memory.get() == []
    assert [turn.content for turn in archived] == texts(exchange("old"))


def test_a_write_of_another_process_is_seen_by_the_next_read(path, open_here):
    memory = open_here()
    memory.put(user("hi"))

    run_python(OPEN + 'open_memory().put(assistant("hello"))', path)

    assert memory.get() == [user("hi"), assistant("hello")]


def test_l39_a_script_that_closes_nothing_exits_at_once_with_its_own_code(tmp_path):
    children = {
        ending: start(CLOSE_NOTHING, tmp_path / f"{ending}.db", ending) for ending in EXIT_CODES
    }

    for ending, child in children.items():
        assert child.stdout.readline() == "stored\n", child.communicate()[1]
        _, errors = child.communicate(timeout=WATCHDOG_SECONDS / 10)
        assert child.returncode == EXIT_CODES[ending]
        assert errors.strip().splitlines()[-1:] == (
            ["RuntimeError: on purpose"] if ending == "raises" else []
        )
        with HierMem.open(tmp_path / f"{ending}.db", create=False) as hiermem:
            stored = hiermem.tenant("alice").thread("trip").turns()
        assert sorted(texts(stored)) == sorted(f"message {n}" for n in range(20))
