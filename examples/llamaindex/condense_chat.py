"""A chat engine whose memory recalls: entries, and what the window of the thread has lost.

Needs `pip install "hiermem-core[llamaindex,embed]"`. The model here is a fake one; put yours in.
"""

import sys

from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.llms.mock import MockLLM

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemChatMemoryBuffer, HierMemRetriever


def main(location: str = "./memory") -> None:
    """Ask a follow-up question; what is recalled stands in the system message only."""
    with HierMem.open(location) as hiermem:
        alice = hiermem.tenant("alice")
        alice.remember("The Saga sails on Mondays")
        memory = HierMemChatMemoryBuffer.from_defaults(
            tenant=alice, chat_store_key="harbour", counting="core", recall_k=3
        )
        engine = CondensePlusContextChatEngine.from_defaults(
            HierMemRetriever(alice), llm=MockLLM(max_tokens=3), memory=memory
        )
        engine.chat("Is the Saga ready?")
        engine.chat("When does it sail?")

        context = memory.get_context("When does the Saga sail?")
        print("recalled:", [hit.content for hit in context.hits][:1])
        print("the model reads first:", context.messages[0].role.value)
        print("stored:", {message.role.value for message in memory.get_all()})


if __name__ == "__main__":
    main(*sys.argv[1:])
