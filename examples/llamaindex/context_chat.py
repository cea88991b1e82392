"""A chat engine that retrieves from long-term memory, and remembers the chat itself.

Needs `pip install "hiermem-core[llamaindex,embed]"`. The model here is a fake one; put yours in.
"""

import sys

from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms.mock import MockLLM

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemChatMemoryBuffer, HierMemRetriever


def main(location: str = "./memory") -> None:
    """Answer from what was remembered of one tenant."""
    with HierMem.open(location) as hiermem:
        alice = hiermem.tenant("alice")
        alice.remember("The Saga is moored at pier seven", namespace="boats")
        alice.remember("Invoice 4711 is due in May", namespace="office")
        memory = HierMemChatMemoryBuffer.from_defaults(tenant=alice, chat_store_key="harbour")
        engine = ContextChatEngine.from_defaults(
            HierMemRetriever(alice, k=2, namespace="boats"),
            llm=MockLLM(max_tokens=3),
            memory=memory,
        )

        answer = engine.chat("Where is the Saga moored?")
        print("answer:", answer)
        print("from:", [found.node.get_content() for found in answer.source_nodes])
        print("stored:", [message.content for message in memory.get_all()][-2:])


if __name__ == "__main__":
    main(*sys.argv[1:])
