"""A location to move: two tenants with entries, archived turns, notes and vectors."""

from __future__ import annotations

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder, ScriptedModel
from hiermem_core.testing.contracts.learning_base import reply, talk_in

TENANTS = ("acme", "größe/日本 🙂")


def opened(location, **options):
    return HierMem.open(location, counter=ApproximateCounter(), **options)


def fill(location):
    """Store what a test moves."""
    model = ScriptedModel([reply("They spoke.", ["a fact"])])
    given = {"embedder": FakeEmbedder(16), "chat_model": model, "inline_updates": True}
    with opened(location, **given) as hiermem:
        for name in TENANTS:
            tenant = hiermem.tenant(name)
            thread = talk_in(tenant.thread("t1"), 6)
            thread.append([{"role": "user", "content": "put away"}], status="archived")
            tenant.memory.bulk_insert(
                {"content": f"fact {n} é日🙂", "id": f"e{n}", "tags": ["t"], "metadata": {"n": n}}
                for n in range(20)
            )
            tenant.remember("under a key", namespace="a/b", key="k", ttl=10_000)
            tenant.memory.wait_for_index()
