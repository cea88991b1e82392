"""LlamaIndex's own `Memory`, with its messages and its memory block on disk.

Needs `pip install "hiermem-core[llamaindex]"` with llama-index-core 0.14.24 or newer.
"""

import asyncio
import sys

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemDBChatStore, HierMemMemoryBlock


async def main(location: str = "./memory") -> None:
    """Say more than fits: what falls out of the queue is archived, kept, and found again."""
    with HierMem.open(location) as hiermem:
        alice = hiermem.tenant("alice")
        store = HierMemDBChatStore(tenant=alice)
        memory = Memory.from_defaults(
            session_id="harbour",
            chat_store=store,
            memory_blocks=[HierMemMemoryBlock(tenant=alice, k=2)],
            token_limit=200,
            token_flush_size=20,
        )
        for number in range(12):
            await memory.aput(
                ChatMessage(role="user", content=f"Boat {number} is at pier {number}")
            )
            await memory.aput(ChatMessage(role="assistant", content="That is noted, thank you."))

        print("archived:", await store.count_messages("harbour", "archived") > 0)
        first = (await memory.aget("Where is boat 3?"))[0].content
        print("the model reads:", "Boat 3 is at pier 3" in str(first))


asyncio.run(main(*sys.argv[1:]))
