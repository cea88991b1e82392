"""An agent that remembers by tools, with its conversation on disk.

Needs `pip install "hiermem-core[llamaindex]"` with llama-index-core 0.14.8 or newer. The model here
is a fake one; put yours in.
"""

import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemChatMemoryBuffer, create_memory_tools


def fake_model(messages: list[ChatMessage], **_: object) -> ChatMessage:
    """Remember what the user says, then say so."""
    if messages[-1].role.value == "tool":
        return ChatMessage(role="assistant", content="I will remember that.")
    arguments = {"content": str(messages[-1].content)}
    call = ToolCallBlock(tool_call_id="c1", tool_name="remember", tool_kwargs=arguments)
    return ChatMessage(role="assistant", blocks=[call])


async def main(location: str = "./memory") -> None:
    """Tell an agent something, and look at what it stored."""
    with HierMem.open(location) as hiermem:
        alice = hiermem.tenant("alice")
        llm = MockFunctionCallingLLM(response_generator=fake_model, is_chat_model=True)
        agent = FunctionAgent(tools=create_memory_tools(alice), llm=llm)
        memory = HierMemChatMemoryBuffer.from_defaults(tenant=alice, chat_store_key="agent")

        print("answer:", await agent.run(user_msg="The Saga needs new sails", memory=memory))
        print("entries:", [hit.content for hit in alice.recall("sails", threads=None)])


asyncio.run(main(*sys.argv[1:]))
