"""Entries of several processes, and of processes that are killed."""

from __future__ import annotations

import json

import pytest
from core.children import finish, run, run_until_killed, start
from core.memory_backends import OPTIONS

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeClock, FakeEmbedder
from hiermem_core.testing.contracts.entries_base import ids_of, modes_of, settle

OPEN = """
import json, os, signal, threading
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeClock, FakeEmbedder, FaultPlan
location, options = sys.argv[1], json.loads(sys.argv[2])
def opened():
    given = {"counter": ApproximateCounter(), "embedder": FakeEmbedder(32)}
    return HierMem.open(location, **given, **options)
"""

STORE_AND_STAY = (
    OPEN
    + """
hiermem = opened()
memory = hiermem.tenant("acme").memory
print(memory.store("a lighthouse", namespace="n", key="k", tags=["t"], metadata={"n": [1.0]}))
sys.stdout.flush()
sys.stdin.readline()
assert memory.retrieve(sys.argv[3]) is None
hiermem.close()
"""
)

STORE_AND_DIE = (
    OPEN
    + """
memory = opened().tenant("acme").memory
for number in range(int(sys.argv[3])):
    text = f"lighthouse {number}"
    print(memory.store(text, key=text, tags=[text]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
)

STORE_FIRST = (
    OPEN
    + """
print("ready", flush=True)
sys.stdin.readline()
hiermem = opened()
memory = hiermem.tenant("acme").memory
start = threading.Barrier(4)
def store(number):
    start.wait()
    for step in range(5):
        memory.store(f"fact {sys.argv[3]} {number} {step}", key=f"{sys.argv[3]} {number} {step}")
threads = [threading.Thread(target=store, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
hiermem.close()
"""
)

PURGE_AND_DIE = (
    OPEN
    + """
clock = FakeClock()
clock.advance(60)
options["clock"] = clock
memory = opened().tenant("acme").memory
memory.purge_expired(limit=4)
with FaultPlan(sys.argv[3], action="kill"):
    memory.purge_expired(limit=4)
"""
)

INSERT_AND_DIE = (
    OPEN
    + """
memory = opened().tenant("acme").memory
with FaultPlan(sys.argv[3], action="kill", count=int(sys.argv[4])):
    memory.bulk_insert([f"lighthouse number {n}" for n in range(100)], batch_size=10)
"""
)


FORK_AND_READ = (
    OPEN
    + """
hiermem = opened()
memory = hiermem.tenant("acme").memory
entry_id = memory.store("before")
assert memory.retrieve(entry_id).content == "before"
read_end, write_end = os.pipe()
child = os.fork()
if child == 0:
    status = 1
    try:
        os.read(read_end, 1)
        assert memory.retrieve(entry_id).content == "after"
        memory.store("of the child")
        status = 0
    finally:
        os._exit(status)
memory.update(entry_id, content="after")
os.write(write_end, b"x")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert memory.stats().entries == 2
hiermem.close()
"""
)


@pytest.fixture(params=["sqlite", "chroma", "hybrid_indexed"])
def options(request):
    return OPTIONS[request.param]


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


def opened(location, options, clock=None):
    return HierMem.open(
        location,
        counter=ApproximateCounter(),
        embedder=FakeEmbedder(32),
        clock=clock or FakeClock(),
        **options,
    )


def test_a11_another_process_gets_what_one_stored(location, options):
    opened(location, options).close()
    child = start(STORE_AND_STAY, location, json.dumps(options), "nobody")
    entry_id = child.stdout.readline().strip()
    with opened(location, options) as hiermem:
        memory = hiermem.tenant("acme").memory

        entry = memory.retrieve(entry_id)
        by_key = memory.retrieve(namespace="n", key="k")
        found = {mode: ids_of(memory.search("lighthouse", mode=mode)) for mode in modes_of(memory)}

        assert entry == by_key
        assert (entry.content, entry.tags, entry.metadata) == ("a lighthouse", ("t",), {"n": [1.0]})
        assert all(found[mode] == [entry_id] for mode in set(found) - {"exact", "prefix", "tag"})
        assert memory.delete(entry_id)
    assert finish(child)[0] == 0


def test_a12_what_store_returned_survives_a_kill_right_after(location, options):
    ids = run_until_killed(STORE_AND_DIE, location, json.dumps(options), 5).split()

    with opened(location, options) as hiermem:
        memory = hiermem.tenant("acme").memory
        for number, entry_id in enumerate(ids):
            text = f"lighthouse {number}"
            assert memory.retrieve(entry_id).content == text
            for mode in modes_of(memory):
                assert ids_of(memory.search(text, mode=mode))[:1] == [entry_id]
        settle(memory)
        for mode in modes_of(memory):
            assert ids_of(memory.search("lighthouse 3", mode=mode))[:1] == [ids[3]]
    assert len(ids) == 5


def test_a13_four_processes_that_first_write_to_an_empty_location_all_succeed(location, options):
    children = [start(STORE_FIRST, location, json.dumps(options), worker) for worker in range(4)]
    for child in children:
        assert child.stdout.readline() == "ready\n", finish(child)
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()

    ends = [finish(child) for child in children]

    assert [status for status, _, _ in ends] == [0] * 4, ends
    with opened(location, options) as hiermem:
        memory = hiermem.tenant("acme").memory
        assert memory.stats().entries == 4 * 4 * 5
        assert memory.generation() == 4 * 4 * 5
        settle(memory)


@pytest.mark.parametrize(("point", "left"), [("rows.before_commit", 6), ("rows.after_commit", 2)])
def test_a44_a_purge_that_is_killed_is_finished_by_the_next_and_returns_no_ghost(
    location, options, point, left
):
    clock = FakeClock()
    with opened(location, options, clock) as hiermem:
        memory = hiermem.tenant("acme").memory
        memory.bulk_insert({"content": f"lighthouse {n}", "ttl": 60} for n in range(10))
        living = memory.store("a lighthouse that stays")
        settle(memory)

    run_until_killed(PURGE_AND_DIE, location, json.dumps(options), point)

    clock.advance(60)
    with opened(location, options, clock) as hiermem:
        memory = hiermem.tenant("acme").memory
        assert memory.stats().expired == left
        while True:
            for mode in set(modes_of(memory)) & {"keyword", "semantic", "hybrid"}:
                assert ids_of(memory.search("lighthouse", mode=mode)) == [living]
            if not memory.purge_expired(limit=4).remaining:
                break
        settle(memory)
        assert memory.stats().expired == 0
        assert memory.stats().index.indexed == 1
        assert ids_of(memory.search("lighthouse")) == [living]


@pytest.mark.parametrize(
    ("point", "passing"), [("rows.before_commit", 5), ("rows.after_commit", 7)]
)
def test_a48_a_bulk_insert_that_is_killed_leaves_whole_batches(location, options, point, passing):
    run_until_killed(INSERT_AND_DIE, location, json.dumps(options), point, passing)

    with opened(location, options) as hiermem:
        memory = hiermem.tenant("acme").memory
        contents = [hit.content for hit in memory.search(limit=1000)]
        assert 0 < len(contents) < 100
        assert len(contents) % 10 == 0
        assert set(contents) == {f"lighthouse number {n}" for n in range(len(contents))}
        settle(memory)
        assert memory.stats().index.indexed == len(contents)
        assert memory.stats().index.pending == 0
        for mode in set(modes_of(memory)) & {"keyword", "semantic", "hybrid"}:
            assert len(memory.search("lighthouse", mode=mode, limit=100)) == len(contents)


def test_a_child_forked_after_a_read_sees_what_the_parent_writes_later(location):
    run(FORK_AND_READ, location, json.dumps({"backend": "sqlite"}))
