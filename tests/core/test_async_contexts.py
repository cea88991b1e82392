"""What runs for an awaiting caller sees the context of that caller, and keeps its own."""

from __future__ import annotations

import asyncio
import contextvars

import pytest
from core.awaiting import opened

from hiermem_core import AsyncHierMem
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.samples import said
from hiermem_core.tokens.counters import ApproximateCounter

CALLER = contextvars.ContextVar("CALLER", default="nobody")


class Listening(ApproximateCounter):
    """A counter, an embedder and an observer that note whose call they are part of."""

    model_id = "listening"
    dimensions = 32

    def __init__(self):
        super().__init__()
        self.counted_for = set()
        self.embedded_for = set()
        self.told_for = set()

    def embed(self, texts):
        self.embedded_for.add(CALLER.get())
        return FakeEmbedder().embed(texts)

    def count_turn(self, turn):
        self.counted_for.add(CALLER.get())
        return super().count_turn(turn)

    def observe(self, event):
        self.told_for.add(CALLER.get())


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory"


@pytest.mark.anyio
async def test_e16_counter_embedder_and_observer_see_the_context_of_the_awaiting_caller(location):
    listening = Listening()
    given = {"counter": listening, "embedder": listening, "observer": listening.observe}
    with opened(location, **given) as hiermem:
        tenant = AsyncHierMem(hiermem).tenant("acme")

        async def call_as(name):
            CALLER.set(name)
            thread = tenant.thread(name)
            await thread.append(said(["a"]))
            (turn,) = await thread.turns()
            await thread.edit_turn(turn.id, "b")
            await thread.context(current="c", budget_tokens=100)
            await tenant.remember(f"{name} likes tea")
            await tenant.recall("tea")

        await asyncio.gather(*(call_as(f"caller {n}") for n in range(12)))

    assert listening.counted_for == {f"caller {n}" for n in range(12)}
    assert listening.embedded_for == {f"caller {n}" for n in range(12)}
    assert listening.told_for == {f"caller {n}" for n in range(12)}


@pytest.mark.anyio
async def test_e16_what_a_counter_sets_stays_in_its_own_call(location):
    class Setting(ApproximateCounter):
        def count_turn(self, turn):
            CALLER.set("the counter")
            return super().count_turn(turn)

    CALLER.set("the caller")
    with opened(location, counter=Setting()) as hiermem:
        await AsyncHierMem(hiermem).tenant("acme").thread("t1").append(said(["a"]))

    assert CALLER.get() == "the caller"
