"""Updates of notes in the background."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from hiermem_core import AsyncHierMem, HierMem
from hiermem_core.testing import ScriptedModel
from hiermem_core.testing.contracts import HostMemoryContract, UpdatingContract
from hiermem_core.testing.contracts.learning_base import reply
from hiermem_core.testing.contracts.samples import asked_and_answered
from hiermem_core.testing.contracts.updating import held


class TestUpdates(UpdatingContract, HostMemoryContract):
    @pytest.fixture
    def opened(self, tmp_path):
        with ExitStack() as stack:
            yield lambda **options: stack.enter_context(
                HierMem.open(tmp_path / "memory", **options)
            )


async def test_awaiting_idleness_holds_no_thread(tmp_path):
    model = ScriptedModel([reply("They spoke.")])
    hiermem = await AsyncHierMem.open(tmp_path, chat_model=model)
    thread = hiermem.tenant("acme").thread("t1")
    with held(model):
        await thread.append(asked_and_answered("abc"))
        await thread.save_context()
        for _ in range(20):
            waiting = asyncio.ensure_future(hiermem.when_idle())
            await asyncio.sleep(0)
            waiting.cancel()
        context = await asyncio.wait_for(thread.context(budget_tokens=500), 30)
        in_time = await hiermem.when_idle(0.05)
    at_last = await hiermem.when_idle(30)
    await hiermem.close()

    assert len(context.messages) > 0
    assert (in_time, at_last) == (False, True)
