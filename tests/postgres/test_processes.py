"""Many processes, and killed ones, on one PostgreSQL server."""

from __future__ import annotations

import json

import pytest
from core.children import finish, run, run_until_killed, start
from core.memory_backends import OPTIONS
from core.test_memory_processes import (
    FORK_AND_READ,
    INSERT_AND_DIE,
    PURGE_AND_DIE,
    STORE_AND_DIE,
    STORE_AND_STAY,
    STORE_FIRST,
)
from core.test_processes import (
    APPEND_AND_DIE,
    APPEND_BATCHES,
    FORK_AND_APPEND,
    FORK_AND_AWAIT,
    FORK_WHILE_WRITING,
    REPLACE_AND_DIE,
    run_together,
)
from core.test_update_crashes import LEARN_AND_DIE, TWO_PROCESSES

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeClock, FakeEmbedder, ScriptedModel
from hiermem_core.testing.contracts.entries_base import ids_of, settle
from hiermem_core.testing.contracts.learning_base import reply, seqs, talk_in
from hiermem_core.testing.contracts.samples import said
from hiermem_core.testing.contracts.threads import assert_batches_are_whole

PROCESSES = 8
SERVED = OPTIONS["postgres"]
GIVEN = json.dumps(SERVED)

COUNT_BY_COMPARING = """
from hiermem_core import ApproximateCounter, HierMem, VersionConflictError
location, steps = sys.argv[1], int(sys.argv[2])
with HierMem.open(location, counter=ApproximateCounter(), generation_check_seconds=0) as hiermem:
    memory = hiermem.tenant("acme").memory
    print("ready", flush=True)
    sys.stdin.readline()
    done = refused = 0
    while done < steps:
        entry = memory.retrieve(namespace="n", key="count")
        count = str(int(entry.content) + 1)
        try:
            memory.update(entry.id, content=count, expected_version=entry.version)
            done += 1
        except VersionConflictError:
            refused += 1
    print(refused)
"""

STORE_UNDER_ONE_KEY = """
from hiermem_core import ApproximateCounter, HierMem
location, worker, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
with HierMem.open(location, counter=ApproximateCounter(), generation_check_seconds=0) as hiermem:
    memory = hiermem.tenant("acme").memory
    print("ready", flush=True)
    sys.stdin.readline()
    for step in range(steps):
        print(memory.store(f"{worker} {step}", namespace="n", key="one"))
        memory.store(f"own of {worker} {step}")
"""


def opened(location, **options):
    given = {"counter": ApproximateCounter(), "embedder": FakeEmbedder(32)}
    return HierMem.open(location, **given | SERVED | options)


def turns_of(location):
    with opened(location) as hiermem:
        return hiermem.tenant("acme").thread("t1").turns()


def contents_of(location):
    return [turn.content for turn in turns_of(location)]


def test_b1_eight_processes_on_one_thread_leave_no_gap_and_whole_batches(location):
    opened(location).close()
    children = [
        start(APPEND_BATCHES, location, f"process{number}", 15, 3) for number in range(PROCESSES)
    ]

    ends = run_together(children)

    turns = turns_of(location)
    assert [status for status, _, _ in ends] == [0] * PROCESSES, ends
    assert [turn.seq for turn in turns] == list(range(1, PROCESSES * 15 * 3 + 1))
    assert_batches_are_whole(turns, batches=PROCESSES * 15, size=3)


def test_a_count_that_eight_processes_raise_by_comparing_loses_no_step(location):
    with opened(location) as hiermem:
        memory = hiermem.tenant("acme").memory
        memory.store("0", namespace="n", key="count")
        children = [start(COUNT_BY_COMPARING, location, 15) for _ in range(PROCESSES)]

        ends = run_together(children)

        entry = memory.retrieve(namespace="n", key="count")
        assert [status for status, _, _ in ends] == [0] * PROCESSES, ends
        assert (entry.content, entry.version) == (str(PROCESSES * 15), PROCESSES * 15 + 1)


def test_eight_processes_under_one_key_make_one_entry_and_every_write_a_version(location):
    opened(location).close()
    children = [
        start(STORE_UNDER_ONE_KEY, location, f"process{number}", 10) for number in range(PROCESSES)
    ]

    ends = run_together(children)

    with opened(location) as hiermem:
        memory = hiermem.tenant("acme").memory
        entry = memory.retrieve(namespace="n", key="one")
        ids = {line for _, printed, _ in ends for line in printed.split()}
        assert [status for status, _, _ in ends] == [0] * PROCESSES, ends
        assert ids == {entry.id}
        assert entry.version == PROCESSES * 10
        assert memory.stats().entries == PROCESSES * 10 + 1
        assert memory.generation() == 2 * PROCESSES * 10


def test_b33_eight_processes_that_learn_one_thread_learn_every_turn_once(location):
    with opened(location):
        children = [start(TWO_PROCESSES, location, f"p{number}") for number in range(PROCESSES)]
        ends = [finish(child) for child in children]

    model = ScriptedModel([reply("The rest.", ["the rest"])])
    with opened(location, chat_model=model, inline_updates=True) as hiermem:
        hiermem.updates.resume()
        thread = hiermem.tenant("acme").thread("t1")
        state, turns = thread.state(), thread.turns()
        sources = [seq for fact in state.facts for source in fact.sources for seq in source]
        assert [status for status, _, _ in ends] == [0] * PROCESSES, ends
        assert [turn.seq for turn in turns] == list(range(1, PROCESSES * 60 + 1))
        assert state.turn_count > PROCESSES * 60 - 6
        assert len(sources) == len(set(sources))
        assert set(sources) <= set(range(1, state.turn_count + 1))


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize(
    "point", ["updates.after_enqueue", "updates.after_model", "updates.before_commit"]
)
def test_b33_after_a_kill_anywhere_the_notes_hold_every_turn_once(location, point, count):
    run_until_killed(LEARN_AND_DIE, location, point, count)

    model = ScriptedModel([reply("All of it.", ["The last fact"])])
    with opened(location, chat_model=model, inline_updates=True) as hiermem:
        thread = hiermem.tenant("acme").thread("t1")
        state = thread.state()
        hiermem.updates.resume()
        talk_in(thread, 3)

        learned = [seq for call in model.calls for seq in seqs(call)]
        texts = [fact.text for fact in thread.state().facts]
        assert learned == list(range(state.turn_count + 1, thread.state().turn_count + 1))
        assert len(texts) == len(set(texts))


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


def test_what_append_returned_survives_a_kill_right_after(location):
    ids = run_until_killed(APPEND_AND_DIE, location, 20).split()

    assert len(ids) == 20
    assert [turn.id for turn in turns_of(location)] == ids


def test_a11_another_process_gets_what_one_stored(location):
    opened(location).close()
    child = start(STORE_AND_STAY, location, GIVEN, "nobody")
    entry_id = child.stdout.readline().strip()
    with opened(location) as hiermem:
        memory = hiermem.tenant("acme").memory

        entry = memory.retrieve(entry_id)
        by_key = memory.retrieve(namespace="n", key="k")

        assert entry == by_key
        assert (entry.content, entry.tags, entry.metadata) == ("a lighthouse", ("t",), {"n": [1.0]})
        assert ids_of(memory.search("lighthouse")) == [entry_id]
        assert memory.delete(entry_id)
    assert finish(child)[0] == 0


def test_a12_what_store_returned_survives_a_kill_right_after(location):
    ids = run_until_killed(STORE_AND_DIE, location, GIVEN, 5).split()

    with opened(location) as hiermem:
        memory = hiermem.tenant("acme").memory
        settle(memory)
        assert len(ids) == 5
        for number, entry_id in enumerate(ids):
            assert memory.retrieve(entry_id).content == f"lighthouse {number}"
            for mode in ("keyword", "semantic", "hybrid"):
                found = ids_of(memory.search(f"lighthouse {number}", mode=mode))
                assert found[:1] == [entry_id]


def test_a13_eight_processes_that_first_open_an_empty_schema_all_succeed(location):
    children = [start(STORE_FIRST, location, GIVEN, number) for number in range(PROCESSES)]

    ends = run_together(children)

    with opened(location) as hiermem:
        memory = hiermem.tenant("acme").memory
        assert [status for status, _, _ in ends] == [0] * PROCESSES, ends
        assert memory.stats().entries == PROCESSES * 4 * 5
        assert memory.generation() == PROCESSES * 4 * 5
        settle(memory)
        assert hiermem.doctor().is_sound


@pytest.mark.parametrize(("point", "left"), [("rows.before_commit", 6), ("rows.after_commit", 2)])
def test_a44_a_purge_that_is_killed_is_finished_by_the_next(location, point, left):
    clock = FakeClock()
    with opened(location, clock=clock) as hiermem:
        memory = hiermem.tenant("acme").memory
        memory.bulk_insert({"content": f"lighthouse {n}", "ttl": 60} for n in range(10))
        living = memory.store("a lighthouse that stays")
        settle(memory)

    run_until_killed(PURGE_AND_DIE, location, GIVEN, point)

    clock.advance(60)
    with opened(location, clock=clock) as hiermem:
        memory = hiermem.tenant("acme").memory
        assert memory.stats().expired == left
        while memory.purge_expired(limit=4).remaining:
            assert ids_of(memory.search("lighthouse")) == [living]
        assert memory.stats().expired == 0
        assert ids_of(memory.search("lighthouse")) == [living]


@pytest.mark.parametrize(
    ("point", "passing"), [("rows.before_commit", 5), ("rows.after_commit", 7)]
)
def test_a48_a_bulk_insert_that_is_killed_leaves_whole_batches(location, point, passing):
    run_until_killed(INSERT_AND_DIE, location, GIVEN, point, passing)

    with opened(location) as hiermem:
        memory = hiermem.tenant("acme").memory
        contents = [hit.content for hit in memory.search(limit=1000)]
        settle(memory)
        assert 0 < len(contents) < 100
        assert len(contents) % 10 == 0
        assert set(contents) == {f"lighthouse number {n}" for n in range(len(contents))}
        for mode in ("keyword", "semantic", "hybrid"):
            assert len(memory.search("lighthouse", mode=mode, limit=100)) == len(contents)


def test_a_child_forked_after_a_read_sees_what_the_parent_writes_later(location):
    run(FORK_AND_READ, location, GIVEN)


def test_a_forked_child_opens_connections_of_its_own(location):
    run(FORK_AND_APPEND, location)

    turns = turns_of(location)
    assert [turn.seq for turn in turns] == list(range(1, 91))
    assert len({turn.content for turn in turns}) == 90


def test_a_child_forked_while_a_thread_writes_inherits_no_transaction(location):
    run(FORK_WHILE_WRITING, location)

    assert contents_of(location) == ["before", *["child"] * 10]


def test_a_forked_child_awaits_on_threads_of_its_own(location):
    run(FORK_AND_AWAIT, location)

    assert len(set(contents_of(location))) == 30
