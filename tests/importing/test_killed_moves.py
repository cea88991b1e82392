"""A move that is killed, again and again: repeated it goes on, and all is there once."""

from __future__ import annotations

import random
import time

import pytest
from core.children import finish, run, start
from importing.moved import TENANTS, fill, opened

from hiermem_core.importing.moving import move_memories
from hiermem_core.testing import FakeEmbedder

DYING = """
from hiermem_core.importing.moving import move_memories
from hiermem_core.testing import FaultPlan

source, target, point, count = sys.argv[1:]
with FaultPlan(point, action="kill", count=int(count)):
    move_memories(source, target)
"""

MOVING = """
from hiermem_core.importing.moving import move_memories

print("begun", flush=True)
print(move_memories(*sys.argv[1:]).exit_code)
"""


@pytest.fixture(params=["to servers", "from servers", "between folders"])
def ends(request, tmp_path, servers, monkeypatch):
    """Return a location that is filled and an empty one; the target has a Chroma index."""
    ways = {
        "to servers": (tmp_path / "source", servers),
        "from servers": (servers, tmp_path / "target"),
        "between folders": (tmp_path / "source", tmp_path / "target"),
    }
    source, target = ways[request.param]
    if request.param != "to servers":
        monkeypatch.delenv("HIERMEM_CHROMA")  # a folder beside the file
    fill(source)
    return source, target


def check(source, target, expected):
    """Check that all is at the target, once and searchable, and that the source still has it."""
    again = move_memories(source, target)
    assert [(one.tenant, one.was_there) for one in again.tenants] == [(t, True) for t in TENANTS]
    assert [(one.entries, one.turns) for one in again.tenants] == [(21, 13)] * 2
    assert [one.checksum for one in again.tenants] == expected
    with opened(target, embedder=FakeEmbedder(16)) as hiermem:
        for name in TENANTS:
            memory = hiermem.tenant(name).memory
            assert memory.wait_for_index(30)
            assert memory.stats().engines["semantic"].startswith("chroma")
            found = memory.search("fact", mode="semantic", limit=50)
            assert len({hit.id for hit in found}) == len(found) == 21
        assert hiermem.doctor().is_sound


@pytest.fixture
def expected(ends, tmp_path):
    """Return the checksums of a move that nothing disturbs."""
    report = move_memories(ends[0], tmp_path / "undisturbed")
    return [one.checksum for one in report.tenants]


@pytest.mark.parametrize("point", ["rows.before_commit", "rows.after_commit"])
def test_a_move_killed_at_every_commit_is_completed_by_the_next(ends, expected, point):
    source, target = ends
    opened(target).close()
    kills = 0
    for count in (1, 2, 3, 4):
        status, _, complaints = finish(start(DYING, source, target, point, count))
        assert status in {0, -9}, complaints
        kills += status == -9

    run(MOVING, source, target)

    assert kills > 1
    check(source, target, expected)


def test_a_move_killed_at_any_moment_is_completed(ends, expected):
    source, target = ends
    chance = random.Random(9)
    for _ in range(4):
        child = start(MOVING, source, target)
        assert child.stdout.readline() == "begun\n"
        time.sleep(chance.uniform(0.01, 0.4))
        child.kill()
        finish(child)

    run(MOVING, source, target)

    check(source, target, expected)
