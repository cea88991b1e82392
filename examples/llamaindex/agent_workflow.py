"""A workflow of agents whose context is saved as JSON and goes on later.

Needs `pip install "hiermem-core[llamaindex]"`. The model here is a fake one; put yours in.
"""

import asyncio
import json
import sys

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.workflow import Context, JsonSerializer

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemChatMemoryBuffer


def fake_model(messages: list[ChatMessage], **_: object) -> ChatMessage:
    """Say how many messages the model was given."""
    return ChatMessage(role="assistant", content=f"I have read {len(messages)} messages.")


async def main(location: str = "./memory") -> None:
    """Run, save the context, restore it, and run again on the same thread."""
    llm = MockFunctionCallingLLM(response_generator=fake_model, is_chat_model=True)
    flow = AgentWorkflow(agents=[FunctionAgent(tools=[], llm=llm)])
    serializer = JsonSerializer(allowed_types=[HierMemChatMemoryBuffer])
    with HierMem.open(location) as hiermem:
        alice, ctx = hiermem.tenant("alice"), Context(flow)
        memory = HierMemChatMemoryBuffer.from_defaults(tenant=alice, chat_store_key="flow")
        print(await flow.run(user_msg="Good morning.", memory=memory, ctx=ctx))
        saved = json.dumps(ctx.to_dict(serializer=serializer))

        restored = Context.from_dict(flow, json.loads(saved), serializer=serializer)
        print(await flow.run(user_msg="And now?", ctx=restored))


asyncio.run(main(*sys.argv[1:]))
