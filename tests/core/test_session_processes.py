"""Processes that log steps of one session, and processes that are killed while they learn."""

from __future__ import annotations

import pytest
from core.children import finish, run_until_killed, start

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder

LOG_STEPS = """
from hiermem_core import ApproximateCounter, HierMem
location, worker, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
with HierMem.open(location, counter=ApproximateCounter(), local_embedder=False) as hiermem:
    session = hiermem.tenant("acme").session("s1")
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(steps):
        session.log(f"{worker} {number}")
"""

LOG_AND_DIE = """
import os, signal
from hiermem_core import ApproximateCounter, HierMem
session = HierMem.open(sys.argv[1], counter=ApproximateCounter(), local_embedder=False).tenant(
    "acme"
).session("s1")
for number in range(7):
    print(session.log(f"do {number}").step, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

LEARN_AND_DIE = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder, FaultPlan
hiermem = HierMem.open(sys.argv[1], counter=ApproximateCounter(), embedder=FakeEmbedder())
patterns = hiermem.tenant("acme").patterns
patterns.learn("kept", {"n": 1})
with FaultPlan(sys.argv[2], action="kill"):
    getattr(patterns, sys.argv[3])(*eval(sys.argv[4]))
"""


def opened(location):
    return HierMem.open(location, counter=ApproximateCounter(), embedder=FakeEmbedder())


def test_i52_steps_of_two_processes_are_numbered_without_a_gap(tmp_path):
    children = [start(LOG_STEPS, tmp_path / "memory", worker, 40) for worker in "ab"]
    for child in children:
        child.stdout.readline()
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    ends = [finish(child) for child in children]

    with opened(tmp_path / "memory") as hiermem:
        steps = hiermem.tenant("acme").session("s1").steps()
        assert [end[0] for end in ends] == [0, 0], ends
        assert [step.step for step in steps] == [*range(1, 81)]
        for worker in "ab":
            mine = [step.action for step in steps if step.action.startswith(worker)]
            assert mine == [f"{worker} {n}" for n in range(40)]


def test_every_step_that_was_acknowledged_survives_a_kill(tmp_path):
    printed = run_until_killed(LOG_AND_DIE, tmp_path / "memory")

    with opened(tmp_path / "memory") as hiermem:
        steps = hiermem.tenant("acme").session("s1").steps()
        assert [step.step for step in steps] == [int(line) for line in printed.split()]


@pytest.mark.parametrize("point", ["rows.before_commit", "rows.after_commit"])
@pytest.mark.parametrize(
    ("call", "arguments", "is_there"),
    [("learn", ("new", {"n": 2}), True), ("delete", ("kept",), False)],
    ids=["learn", "delete"],
)
def test_a_killed_process_leaves_pattern_and_entry_both_or_neither(
    tmp_path, point, call, arguments, is_there
):
    run_until_killed(LEARN_AND_DIE, tmp_path / "memory", point, call, arguments)

    with opened(tmp_path / "memory") as hiermem:
        acme = hiermem.tenant("acme")
        pattern = acme.patterns.get(arguments[0])
        entry = acme.memory.retrieve(namespace="patterns", key=arguments[0])
        is_done = point == "rows.after_commit"
        assert (pattern is not None) == (entry is not None) == (is_there == is_done)
        assert hiermem.doctor().is_sound
