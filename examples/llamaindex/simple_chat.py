"""A chat engine whose memory is on disk, one thread of one tenant.

Needs `pip install "hiermem-core[llamaindex]"`. The model here is a fake one; put yours in.
"""

import sys

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockLLM

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemChatMemoryBuffer


def main(location: str = "./memory") -> None:
    """Chat, and go on with the same thread as a restarted process would."""
    for question in ("My boat is the Saga.", "What is my boat called?"):
        with HierMem.open(location) as hiermem:
            memory = HierMemChatMemoryBuffer.from_defaults(
                tenant=hiermem.tenant("alice"), chat_store_key="harbour", token_limit=3000
            )
            engine = SimpleChatEngine.from_defaults(llm=MockLLM(max_tokens=3), memory=memory)
            print(f"{question} -> {engine.chat(question)}")
            print("stored:", [message.content for message in memory.get_all()][-4:])


if __name__ == "__main__":
    main(*sys.argv[1:])
