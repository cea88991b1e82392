"""Entries, vectors and the vector index of several processes, and of processes that are killed."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from core.children import finish, run, run_until_killed, start
from core.memory_backends import OPTIONS

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder

SECONDS = 60

HEAD = """
import json, os, signal
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder, FaultPlan
location, options = sys.argv[1], json.loads(sys.argv[2])
embedder = FakeEmbedder(32)
hiermem = HierMem.open(location, embedder=embedder, counter=ApproximateCounter(), **options)
tenant = hiermem.tenant("acme")
memory = tenant.memory
"""

STORE_AND_DIE = (
    HEAD
    + """
point, count = sys.argv[3], int(sys.argv[4])
with FaultPlan(point, action="kill", count=count):
    for number in range(30):
        print(memory.store(f"plum {number}"), flush=True)
        if number % 10 == 9:
            memory.wait_for_index(60)
"""
)

BULK_AND_DIE = (
    HEAD
    + """
with FaultPlan("rows.before_commit", action="kill", count=int(sys.argv[3])):
    memory.bulk_insert([f"plum {number}" for number in range(100)], batch_size=10)
"""
)

STORE_MANY = (
    HEAD
    + """
who = sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
before = memory.generation()
for number in range(250):
    memory.store(f"{who} says {number}", key=f"{who}-{number}")
    after = memory.generation()
    assert after > before, (before, after)
    before = after
hiermem.close()
"""
)

READ_MUCH = (
    HEAD
    + """
print("ready", flush=True)
sys.stdin.readline()
seen, generation = 0, 0
while seen < 1000:
    found = memory.stats().entries
    assert found >= seen and memory.generation() >= generation
    seen, generation = found, memory.generation()
    for hit in memory.search(limit=5):
        assert memory.retrieve(hit.id).content == hit.content
hiermem.close()
"""
)

STORE_AS_GUEST = (
    HEAD
    + """
ids = [memory.store(f"plum {number}") for number in range(50)]
found = [memory.search_semantic(f"plum {number}", 1)[0].id for number in range(50)]
print(json.dumps({"ids": ids, "found": found, "engine": memory.stats().engines["semantic"]}))
hiermem.close()
"""
)

OWN_UNTIL_KILLED = (
    HEAD
    + """
memory.store("first")
memory.wait_for_index(60)
print(memory.stats().engines["semantic"], flush=True)
sys.stdin.readline()
"""
)

FILL_UP = (
    HEAD
    + """
import resource
from pathlib import Path
stored = memory.store("plum")
largest = max(file.stat().st_size for file in Path(location).iterdir())
resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
refused = []
for number in range(200):
    try:
        memory.store("pear " * 1000)
    except Exception as error:  # told by its type to the parent
        refused.append(type(error).__name__)
        break
health = hiermem.health()
parts = {"rows": health.rows.status, "status": health.status, "error": health.last_error}
parts |= {"refused": refused, "there": memory.retrieve(stored) is not None}
print(json.dumps(parts))
"""
)

DELETE = (
    HEAD
    + """
print(memory.delete(sys.argv[3]))
hiermem.close()
"""
)

NAMES = ("sqlite", "chroma_indexed", "hybrid", "hybrid_indexed")
WITH_INDEX = ("chroma_indexed", "hybrid_indexed")


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


@pytest.fixture
def opened(location):
    handles = []

    def open_one(backend, **options):
        given = {"embedder": FakeEmbedder(32), "counter": ApproximateCounter()}
        handles.append(HierMem.open(location, **OPTIONS[backend], **given | options))
        return handles[-1]

    yield open_one
    for handle in handles:
        handle.close()


def options_of(backend):
    return json.dumps(OPTIONS[backend])


def assert_agrees(hiermem, ids):
    """Hold that rows and index agree, and that every id is found by everything there is."""
    memory = hiermem.tenant("acme").memory
    entries = {entry_id: memory.retrieve(entry_id) for entry_id in ids}
    assert None not in entries.values()
    for _ in range(2):  # before the index has caught up, and after
        for entry_id, entry in entries.items():
            for mode in {"keyword", "semantic"} & set(memory.stats().engines):
                assert entry_id in {hit.id for hit in memory.search(entry.content, mode=mode)}
        assert memory.wait_for_index(SECONDS)
    assert hiermem.doctor() == type(hiermem.doctor())()
    assert memory.stats().index.indexed == memory.stats().entries


POINTS = [
    ("rows.before_commit", 1),
    ("rows.before_commit", 15),
    ("rows.after_commit", 1),
    ("rows.after_commit", 15),
]
INDEX_POINTS = [
    ("index.before_apply", 1),
    ("index.before_apply", 3),
    ("index.after_apply", 1),
    ("index.after_apply", 3),
]


@pytest.mark.parametrize(
    ("backend", "point", "count"),
    [(name, *point) for name in ("sqlite", "hybrid_indexed") for point in POINTS]
    + [(name, *point) for name in WITH_INDEX for point in INDEX_POINTS],
)
def test_a62_after_a_kill_at_a_named_point_rows_and_index_agree(
    opened, location, backend, point, count
):
    printed = run_until_killed(STORE_AND_DIE, location, options_of(backend), point, count)

    hiermem = opened(backend)
    acknowledged = printed.split()
    assert len(acknowledged) <= hiermem.tenant("acme").memory.stats().entries
    assert hiermem.tenant("acme").memory.stats().entries <= len(acknowledged) + 1
    assert_agrees(hiermem, acknowledged)


@pytest.mark.parametrize("backend", NAMES)
def test_a48_a_bulk_insert_killed_between_batches_leaves_whole_batches(opened, location, backend):
    run_until_killed(BULK_AND_DIE, location, options_of(backend), 5)

    hiermem = opened(backend)
    memory = hiermem.tenant("acme").memory
    entries = memory.search(limit=1000)
    assert len(entries) % 10 == 0
    assert 0 < len(entries) < 100
    assert_agrees(hiermem, [entry.id for entry in entries])


@pytest.mark.parametrize("backend", ["sqlite", "hybrid_indexed"])
def test_a66_four_writing_processes_and_two_readers_lose_no_row_and_no_generation(
    opened, location, backend
):
    opened(backend).close()
    options = options_of(backend)
    children = [start(STORE_MANY, location, options, f"writer{n}") for n in range(4)]
    children += [start(READ_MUCH, location, options) for _ in range(2)]
    for child in children:
        assert child.stdout.readline() == "ready\n", finish(child)
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    ends = [finish(child) for child in children]

    assert [status for status, _, _ in ends] == [0] * 6, ends
    memory = opened(backend).tenant("acme").memory
    assert memory.stats().entries == 1000
    assert memory.generation() == 1000
    assert len({entry.key for entry in memory.search(limit=1000)}) == 1000


@pytest.mark.parametrize("backend", ["in_memory", "sqlite", "chroma_indexed", "hybrid"])
def test_a67_sixteen_threads_and_tasks_that_mix_all_operations_end_like_the_reference(
    opened, backend
):
    memory = opened(backend).tenant("acme").memory

    def work(worker):
        dice = random.Random(worker)
        mine = {}
        for step in range(40):
            key = f"{worker}-{dice.randrange(8)}"
            action = dice.choice(["store", "store", "update", "delete", "search", "bulk", "read"])
            if action == "store":
                mine[key] = f"{worker} says {step}"
                memory.store(mine[key], key=key)
            elif action == "bulk":
                mine[key] = f"{worker} says {step}"
                memory.bulk_insert([{"content": mine[key], "key": key}])
            elif action == "delete":
                assert memory.delete(namespace="default", key=key) is (key in mine)
                mine.pop(key, None)
            elif action == "update" and key in mine:
                entry = memory.retrieve(namespace="default", key=key)
                mine[key] += ", changed"
                memory.update(entry.id, content=mine[key])
            elif action == "read" and key in mine:
                assert memory.retrieve(namespace="default", key=key).content == mine[key]
            else:
                memory.search(f"{worker} says", limit=5)
        return mine

    async def as_tasks():
        return await asyncio.gather(*(asyncio.to_thread(work, f"task{n}") for n in range(8)))

    with ThreadPoolExecutor(9) as pool:
        tasks = pool.submit(lambda: asyncio.run(as_tasks()))
        expected = {}
        for one in [*pool.map(work, (f"thread{n}" for n in range(8))), *tasks.result()]:
            expected |= one

    assert memory.wait_for_index(SECONDS)
    stored = {entry.key: entry.content for entry in memory.search(limit=1000)}
    assert stored == expected
    assert memory.stats().index.indexed == len(expected)


@pytest.mark.parametrize("backend", WITH_INDEX)
def test_a68_what_a_second_process_stores_is_found_by_both_and_never_lost(
    opened, location, backend
):
    owner = opened(backend)
    memory = owner.tenant("acme").memory
    memory.store("first")
    assert memory.wait_for_index(SECONDS)

    told = json.loads(run(STORE_AS_GUEST, location, options_of(backend)))

    assert told["found"] == told["ids"]
    assert "another process" in told["engine"]
    assert "Chroma server" in told["engine"]
    found = [memory.search_semantic(f"plum {number}", 1)[0].id for number in range(50)]
    assert found == told["ids"]
    assert_agrees(owner, told["ids"])


@pytest.mark.parametrize("backend", WITH_INDEX)
def test_a68_the_next_open_owns_when_the_owner_is_killed(opened, location, backend):
    owner = start(OWN_UNTIL_KILLED, location, options_of(backend))
    assert owner.stdout.readline().startswith("chroma")
    guest = opened(backend)
    memory = guest.tenant("acme").memory
    ids = [memory.store(f"plum {number}") for number in range(50)]
    assert not memory.wait_for_index(1)
    assert f"pid {owner.pid}" in memory.stats().engines["semantic"]
    guest_health = guest.health()
    owner.send_signal(signal.SIGKILL)
    finish(owner)
    guest.close()

    hiermem = opened(backend)

    assert guest_health.index.status == "healthy"
    assert_agrees(hiermem, ids)
    assert hiermem.tenant("acme").memory.stats().engines["semantic"].startswith("chroma, 51 of 51")


@pytest.mark.parametrize("backend", NAMES)
def test_a69_an_entry_deleted_by_another_process_is_gone_though_it_was_cached(
    opened, location, backend
):
    memory = opened(backend).tenant("acme").memory
    stored, kept = memory.store("plum"), memory.store("pear")
    for entry_id in (stored, stored, kept, kept):
        assert memory.retrieve(entry_id) is not None
    hits = memory.stats().cache.hits

    assert run(DELETE, location, options_of(backend), stored) == "True\n"

    assert hits == 2
    assert memory.retrieve(stored) is None
    assert memory.retrieve(kept) is not None
    assert stored not in {entry.id for entry in memory.search("plum")}


def test_a80_a_file_that_cannot_grow_is_unhealthy_and_writes_raise(opened, location):
    told = json.loads(run(FILL_UP, location, options_of("hybrid")))

    assert told["refused"][0] in {"BackendError", "BackendUnavailableError"}
    assert (told["status"], told["rows"]) == ("unhealthy", "unhealthy")
    assert "SQLITE_" in told["error"]
    assert told["there"]
    hiermem = opened("hybrid")
    assert hiermem.health().status == "healthy"
    assert hiermem.doctor().is_sound
