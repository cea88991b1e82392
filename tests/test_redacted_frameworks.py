"""What LangChain and LlamaIndex applications store goes through the redactor, dumps included."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from llama_index.core.llms import ChatMessage

from hiermem_core import HierMem
from hiermem_core.testing.contracts.redacting import CARD, without_cards
from langchain_hiermem import HierMemChatMessageHistory, HierMemStore
from llamaindex_hiermem import HierMemChatMemoryBuffer

CALL = {"name": "pay", "args": {"card": CARD}, "id": "c1", "type": "tool_call"}


@pytest.fixture
def hiermem(tmp_path):
    with HierMem.open(tmp_path / "memory", redactor=without_cards) as one:
        yield one


@pytest.fixture
def leaks(hiermem, tmp_path):
    """Return the files of the location that hold the number."""

    def look():
        files = [path for path in (tmp_path / "memory").rglob("*") if path.is_file()]
        return [path.name for path in files if CARD.encode() in path.read_bytes()]

    return look


def test_a76_a_history_of_langchain_holds_no_number_and_reads_back(hiermem, leaks):
    history = HierMemChatMessageHistory(hiermem, tenant_id="a", thread_id="t")

    history.add_messages(
        [
            HumanMessage(f"My card is {CARD}", additional_kwargs={"raw": {CARD: CARD}}),
            AIMessage("", tool_calls=[CALL], response_metadata={"echo": CARD}),
            ToolMessage(f"paid {CARD}", tool_call_id="c1", artifact={"n": [CARD]}),
            AIMessage("Done.", response_metadata={"model": "fake"}),
        ]
    )

    back = history.messages
    assert [type(message) for message in back] == [HumanMessage, AIMessage, ToolMessage, AIMessage]
    assert back[0].content == "My card is [card]"
    assert back[1].tool_calls[0]["args"] == {"card": "[card]"}
    assert back[3].response_metadata == {"model": "fake"}
    assert CARD not in repr(back)
    assert leaks() == []


def test_a76_a_buffer_of_llamaindex_holds_no_number_and_reads_back(hiermem, leaks):
    memory = HierMemChatMemoryBuffer.from_defaults(tenant=hiermem.tenant("a"), chat_store_key="t")

    memory.put(ChatMessage(role="user", content=f"My card is {CARD}"))
    memory.put(ChatMessage(role="assistant", content="Ok", additional_kwargs={"raw": [CARD]}))

    assert CARD not in repr(memory.get_all())
    assert memory.get()[0].content == "My card is [card]"
    assert leaks() == []


def test_a76_a_store_of_langgraph_holds_no_number(hiermem, leaks):
    store = HierMemStore(hiermem.tenant("a"))

    store.put(("notes",), f"k {CARD}", {"text": f"paid {CARD}", "deep": [{"n": CARD}]})

    item = store.get(("notes",), f"k {CARD}")
    assert item is not None
    assert CARD not in repr(item.value)
    assert leaks() == []
