"""Tools by which a model remembers, recalls and forgets, each user's memories apart.

Needs `pip install "hiermem-core[agents,embed]"`. The model here is a scripted one; put yours in.
"""

import sys

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from hiermem_core import HierMem
from langchain_hiermem import HierMemContext, create_memory_tools


class Scripted(FakeMessagesListChatModel):
    """Calls the tools it was told to call."""

    def bind_tools(self, *_: object, **__: object) -> "Scripted":
        """Take the tools as they are."""
        return self


def main(location: str = "./memory") -> None:
    """Remember something for Alice, and find it for her and not for Bob."""
    fact = {"id": "c1", "name": "remember", "args": {"content": "Alice flies to Kyoto in May"}}
    ask = {"id": "c2", "name": "recall", "args": {"query": "Where does she fly?"}}
    script = [AIMessage("", tool_calls=[fact]), AIMessage("", tool_calls=[ask]), AIMessage("Done.")]
    with HierMem.open(location) as hiermem:
        tools = create_memory_tools(hiermem)
        for user, steps in (("alice", script), ("bob", script[1:])):
            agent = create_agent(Scripted(responses=steps), tools, context_schema=HierMemContext)
            out = agent.invoke({"messages": "hello"}, context=HierMemContext(user))
            print(f"{user} finds:", out["messages"][-2].content)


if __name__ == "__main__":
    main(*sys.argv[1:])
