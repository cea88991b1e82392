"""Memories to export from and import into."""

from __future__ import annotations

import pytest

from hiermem_core import HierMem
from hiermem_core.testing import FakeClock, FakeEmbedder
from hiermem_core.tokens.counters import ApproximateCounter

BACKENDS = ("sqlite", "chroma", "hybrid", "in_memory")


def opened(location=":memory:", **options):
    """Open a memory whose clock, counter and embedder are fakes."""
    fakes = {"clock": FakeClock(), "counter": ApproximateCounter(), "embedder": FakeEmbedder()}
    return HierMem.open(location, **fakes | {"inline_updates": True} | options)


def body_of(path):
    """Return an export without its header, which says when it was written."""
    return path.read_bytes().split(b"\n", 1)[1]


@pytest.fixture
def hiermem():
    with opened() as memory:
        yield memory


@pytest.fixture
def alice(hiermem):
    """Return a tenant who has a little of everything."""
    tenant = hiermem.tenant("alice")
    fill(tenant)
    return tenant


@pytest.fixture
def export(alice, tmp_path):
    """Return the path of an export of hers."""
    path = tmp_path / "alice.jsonl"
    alice.export(path)
    return path


def fill(tenant):
    """Store a little of everything."""
    tenant.remember(
        "likes tea",
        id="e1",
        key="drink",
        namespace="profile/food",
        tags=["hot", "größe"],
        metadata={"n": 1, "deep": [1, 1.0, None, {"é": ""}]},
        ttl=3600,
        user_id="u1",
    )
    tenant.remember("said twice")
    tenant.remember("said twice")
    tenant.remember("in parts", id="e3", passages=["one", "two"], derived_from=["e1"])
    chat = tenant.thread("chat 1")
    chat.append([{"role": "user", "content": "old", "id": "q0"}])
    chat.replace(
        [
            {"role": "user", "content": "昨日は雨でした", "id": "q1"},
            {"role": "assistant", "content": "Det regnade", "id": "a1"},
        ]
    )
    chat.edit_turn("q1", "edited")
    chat.delete_turns([])
    tenant.thread("empty").append([{"role": "user", "content": "x", "id": "x"}])
    tenant.thread("empty").delete_turns(["x"])
