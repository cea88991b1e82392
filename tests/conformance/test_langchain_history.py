"""LangChain's own tests of chat message histories, run on `HierMemChatMessageHistory`."""

from __future__ import annotations

import pytest
from conformance.upstream import Upstream

pytestmark = pytest.mark.timeout(600)

SHIM = '''
"""Histories that are made as upstream makes its own, each of a thread of its own."""

from itertools import count

from hiermem_core import HierMem
from langchain_hiermem import HierMemChatMessageHistory

HIERMEM = HierMem.open(":memory:", local_embedder=False)
NUMBERS = count()


class InMemoryChatMessageHistory(HierMemChatMessageHistory):
    """Also made of messages; equal to one that holds the same."""

    def __init__(self, messages=()):
        super().__init__(HIERMEM, tenant_id="upstream", thread_id=f"t{next(NUMBERS)}")
        if messages:
            self.add_messages(messages)

    def __eq__(self, other):
        return self.messages == other.messages

    __hash__ = None
'''

IMPORTS = {
    r"from langchain_core\.chat_history import \(\s*BaseChatMessageHistory,\s*InMemory\w+,\s*\)": (
        "from langchain_core.chat_history import BaseChatMessageHistory\n"
        "from shim import InMemoryChatMessageHistory"
    ),
    r"from langchain_core\.chat_history import InMemoryChatMessageHistory": (
        "from shim import InMemoryChatMessageHistory"
    ),
    r"from tests\.unit_tests\.pydantic_utils import": "from pydantic_utils import",
}

CORE = Upstream("langchain-core", "1.8.3", SHIM, IMPORTS, folder="tests/unit_tests")


def test_the_tests_of_a_runnable_with_history(tmp_path):
    passed, failed, told = CORE.run(tmp_path, "runnables/test_history.py", ["pydantic_utils.py"])

    assert failed == [], told
    assert passed == 23


def test_the_test_of_a_history_in_memory(tmp_path):
    """The others of this file are of the base class, or of what it warns of."""
    passed, failed, told = CORE.run(
        tmp_path, "chat_history/test_chat_history.py", only="test_in_memory_history_initialization"
    )

    assert failed == [], told
    assert passed == 1
