"""A retriever that answers what is asked again from memory, and never misses a write.

Needs `pip install "hiermem-core[langchain,embed]"`. Any retriever can be wrapped.
"""

import asyncio
import sys

from hiermem_core import HierMem
from langchain_hiermem import HierMemRetriever, WorkingMemoryRetriever


async def ask_at_once(retriever: WorkingMemoryRetriever, question: str) -> None:
    """Ask the same thing from twenty tasks."""
    await asyncio.gather(*(retriever.ainvoke(question) for _ in range(20)))


def main(location: str = "./memory") -> None:
    """Ask, ask again, ask at once, write, and ask."""
    with HierMem.open(location) as hiermem:
        alice = hiermem.tenant("alice")
        alice.remember("Prefers meetings in the morning")
        retriever = WorkingMemoryRetriever(HierMemRetriever(alice, k=3))

        for _ in range(2):
            print([one.page_content for one in retriever.invoke("When should we meet?")])
        asyncio.run(ask_at_once(retriever, "What does Alice prefer?"))
        stats = retriever.stats()
        print(f"{stats.hits} from memory, {stats.joined} joined, {stats.misses} asked")

        alice.remember("On Fridays she meets nobody", key="fridays")
        print(len(retriever.invoke("When should we meet?")), "known now")


if __name__ == "__main__":
    main(*sys.argv[1:])
