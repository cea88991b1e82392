"""A graph's long-term memory: one LangGraph store for all users, on disk.

Needs `pip install "hiermem-core[langgraph,embed]"`. Everything stays in the location given.
"""

import sys

from hiermem_core import HierMem
from langchain_hiermem import HierMemStore


def main(location: str = "./memory") -> None:
    """Remember something of two users, and find it again."""
    with HierMem.open(location) as hiermem:
        store = HierMemStore.per_tenant(hiermem, index={"fields": ["text"]})
        # Give it to a graph: builder.compile(store=store); nodes use runtime.store.

        alice = ("alice", "memories")
        store.put(alice, "tea", {"text": "Likes green tea in the morning", "kind": "taste"})
        store.put(alice, "trip", {"text": "Flies to Kyoto in May", "kind": "plan"})
        store.put(("bob", "memories"), "tea", {"text": "Is allergic to green tea"})

        for item in store.search(("alice",), query="What does she drink?", limit=2):
            print(item.namespace, item.key, item.value["text"])
        plans = store.search(alice, filter={"kind": "plan"})
        print("plans:", [item.value["text"] for item in plans])
        print("namespaces:", store.list_namespaces(prefix=("alice",)))


if __name__ == "__main__":
    main(*sys.argv[1:])
