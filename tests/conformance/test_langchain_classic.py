"""Classic LangChain's own tests of its memories, run on `HierMemMemory`."""

from __future__ import annotations

import pytest
from conformance.upstream import Upstream

pytestmark = pytest.mark.timeout(600)

SHIM = '''
"""Memories that are made as upstream makes its own, each of a thread of its own."""

from itertools import count

from hiermem_core import HierMem
from langchain_hiermem import HierMemMemory

HIERMEM = HierMem.open(":memory:", local_embedder=False)
NUMBERS = count()


class Memory(HierMemMemory):
    """Also made without a thread; what is learned is there when a save returns."""

    def __init__(self, **fields):
        super().__init__(
            HIERMEM, **{"tenant_id": "upstream", "thread_id": f"t{next(NUMBERS)}"} | fields
        )

    def save_context(self, inputs, outputs):
        super().save_context(inputs, outputs)
        assert HIERMEM.when_idle(30)

    async def asave_context(self, inputs, outputs):
        await super().asave_context(inputs, outputs)
        assert HIERMEM.when_idle(30)


class ConversationBufferMemory(Memory):
    pass


class ConversationSummaryBufferMemory(Memory):
    pass


class ConversationBufferWindowMemory(Memory):
    def __init__(self, **fields):
        super().__init__(**{"k": 5} | fields)
'''

PUT_IN_PLACE = """
import shim
from langchain_classic import memory
from langchain_classic.chains.conversation import memory as of_chains
from langchain_classic.memory import buffer, buffer_window, summary_buffer

for module in (memory, of_chains, buffer, buffer_window, summary_buffer):
    for name in vars(shim):
        if name.startswith("Conversation") and hasattr(module, name):
            setattr(module, name, getattr(shim, name))
"""

IMPORTS = {r"from tests\.unit_tests\.llms\.fake_llm import": "from fake_llm import"}

CLASSIC = Upstream(
    "langchain-classic", "1.0.8", SHIM, IMPORTS, PUT_IN_PLACE, folder="tests/unit_tests"
)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("chains/test_summary_buffer_memory.py", 6),
        ("chains/test_memory.py", 4),
        ("chains/test_conversation.py", 15),
        ("memory/test_combined_memory.py", 2),
    ],
)
def test_the_tests_of_its_memories(tmp_path, name, count):
    passed, failed, told = CLASSIC.run(tmp_path, name, ["llms/fake_llm.py"])

    assert failed == [], told
    assert passed == count
