"""An import that is killed: whole batches remain, and the same command completes it."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest

from hiermem_core import HierMem

LINES = 3000
BATCH = 100

IMPORTING = f"""
import sys
from hiermem_core import HierMem
from hiermem_core.importing import import_memories

with HierMem.open(sys.argv[1]) as memory:
    import_memories(
        sys.argv[2],
        memory.tenant("alice"),
        batch_size={BATCH},
        progress=lambda step: print(step.found, flush=True),
    )
"""

DYING = f"""
import sys
from hiermem_core import HierMem
from hiermem_core.importing import import_memories
from hiermem_core.testing import FaultPlan

with HierMem.open(sys.argv[1]) as memory, FaultPlan(sys.argv[3], action="kill", count=4):
    import_memories(sys.argv[2], memory.tenant("alice"), batch_size={BATCH})
"""


@pytest.fixture
def long_talk(conversation):
    return conversation(*[{"role": "user", "content": f"turn {n}"} for n in range(LINES)])


def contents(location):
    with HierMem.open(location, create=False) as memory:
        return [turn.content for turn in memory.tenant("alice").thread("talk").turns()]


@pytest.mark.parametrize("seed", range(3))
def test_a_kill_at_any_moment_leaves_whole_batches_and_loses_nothing_acknowledged(
    long_talk, tmp_path, hiermem, seed
):
    location, chance = tmp_path / "memory", random.Random(seed)
    for _ in range(3):
        acknowledged = killed_import(long_talk, location, chance)
        stored = contents(location)

        assert len(stored) >= acknowledged
        assert len(stored) % BATCH == 0
        assert stored == [f"turn {n}" for n in range(len(stored))]

    run = hiermem("import", long_talk, "--batch-size", BATCH)

    assert run.code == 0
    assert contents(location) == [f"turn {n}" for n in range(LINES)]


def killed_import(source, location, chance):
    """Kill an import after a few of its batches, at a random moment; return what it had told."""
    command = [sys.executable, "-c", IMPORTING, str(location), str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        told = [int(child.stdout.readline()) for _ in range(chance.randint(1, 6))]
        time.sleep(chance.random() / 50)
        child.kill()
        told += [int(line) for line in child.stdout.read().split()]
    return told[-1]


@pytest.mark.parametrize(
    ("point", "batches"), [("rows.before_commit", 3), ("rows.after_commit", 4)]
)
def test_a_kill_beside_a_commit_keeps_exactly_the_batches_committed(
    long_talk, tmp_path, hiermem, point, batches
):
    location = tmp_path / "memory"
    command = [sys.executable, "-c", DYING, str(location), str(long_talk), point]

    assert subprocess.run(command, check=False).returncode == -9
    assert len(contents(location)) == batches * BATCH

    value = hiermem("import", long_talk, "--batch-size", BATCH, "--json").json
    assert value["imported"] == LINES - batches * BATCH
    assert value["reasons"] == {"unchanged": batches * BATCH}
