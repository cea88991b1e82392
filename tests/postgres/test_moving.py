"""A move that is killed at any moment goes on when it is repeated, with the vector index on too."""

from __future__ import annotations

import pytest
from core.children import run_until_killed

from hiermem_core import ApproximateCounter, HierMem, move_memories
from hiermem_core.testing import FakeEmbedder

ENTRIES, TURNS = 520, 40
"""More than one transaction takes."""

MOVE_AND_DIE = """
from hiermem_core import move_memories
from hiermem_core.testing import FaultPlan
with FaultPlan(sys.argv[3], action="kill", count=int(sys.argv[4])):
    move_memories(sys.argv[1], sys.argv[2])
"""


def opened(location):
    return HierMem.open(location, counter=ApproximateCounter(), embedder=FakeEmbedder(16))


@pytest.fixture(params=["to a server", "from a server", "between folders"])
def ends(request, tmp_path, location, chroma_server, monkeypatch):
    """Give a filled location and an empty one; vectors go into an index from the first."""
    monkeypatch.setenv("HIERMEM_INDEX_THRESHOLD", "0")
    source, target = tmp_path / "here", tmp_path / "there"
    if request.param != "between folders":
        monkeypatch.setenv("HIERMEM_CHROMA", chroma_server.url)
        source, target = (
            (source, location) if request.param == "to a server" else (location, target)
        )
    with opened(source) as hiermem:
        for name in ("acme", "größe/日本"):
            tenant = hiermem.tenant(name)
            tenant.memory.bulk_insert([f"fact {n} of {name}" for n in range(ENTRIES)])
            roles = ("user", "assistant")
            tenant.thread("t").append(
                [{"role": roles[n % 2], "content": f"turn {n} 🙂"} for n in range(TURNS)]
            )
            assert tenant.memory.wait_for_index(60)
    return str(source), str(target)


@pytest.mark.parametrize(("point", "count"), [("rows.before_commit", 2), ("rows.after_commit", 5)])
def test_what_was_killed_goes_on_and_all_arrives(ends, point, count):
    source, target = ends
    run_until_killed(MOVE_AND_DIE, source, target, point, count)

    report = move_memories(source, target)
    again = move_memories(source, target)

    assert [one.was_there for one in again.tenants] == [True, True]
    assert [one.checksum for one in again.tenants] == [one.checksum for one in report.tenants]
    with opened(target) as there:
        for name in ("acme", "größe/日本"):
            tenant = there.tenant(name)
            assert tenant.memory.wait_for_index(60)
            stats = tenant.memory.stats()
            assert (stats.entries, stats.index.failed) == (ENTRIES, 0)
            assert len(tenant.thread("t").turns()) == TURNS
            assert tenant.memory.search_semantic(f"fact 7 of {name}", 1)[0].content.startswith(
                "fact"
            )
        assert there.doctor().is_sound
