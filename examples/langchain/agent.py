"""An agent that remembers: a budget for each model call, on disk, for many users.

Needs `pip install "hiermem-core[agents,embed]"`. The model here is a fake one; put yours in.
"""

import sys

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel

from hiermem_core import Context, HierMem
from langchain_hiermem import HierMemContext, HierMemMiddleware


def told(context: Context) -> None:
    """Show what a model call gets; leave it out, and what is trimmed is logged."""
    print(f"{len(context.messages)} messages, {context.receipt.total} tokens, {context.warnings}")


def main(location: str = "./memory") -> None:
    """Talk to an agent as two users whose threads have one name."""
    with HierMem.open(location) as hiermem:
        hiermem.tenant("alice").remember("Prefers meetings in the morning")
        agent = create_agent(
            FakeListChatModel(responses=["Nice to meet you.", "You are Ann.", "I do not know."]),
            middleware=[HierMemMiddleware(hiermem, budget_tokens=4000, on_context=told)],
            context_schema=HierMemContext,
        )
        for tenant, text in [("alice", "I am Ann."), ("alice", "Who am I?"), ("bob", "Who am I?")]:
            said = {"messages": [{"role": "user", "content": text}]}
            answer = agent.invoke(said, context=HierMemContext(tenant, "trip"))
            print(f"{tenant}: {text} -> {answer['messages'][-1].content}")


if __name__ == "__main__":
    main(*sys.argv[1:])
