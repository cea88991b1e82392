"""Two tenants with equal ids and texts, through LangChain and LlamaIndex."""

from __future__ import annotations

import asyncio
import re

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from llama_index.core.llms import ChatMessage
from scripted_agent import agent_of

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing.contracts import LeakContract
from langchain_hiermem import (
    HierMemChatMessageHistory,
    HierMemContext,
    HierMemMemory,
    HierMemRetriever,
    HierMemStore,
)
from langchain_hiermem import create_memory_tools as langchain_tools
from llamaindex_hiermem import (
    HierMemChatMemoryBuffer,
    HierMemChatStore,
    HierMemDBChatStore,
    HierMemMemoryBlock,
)
from llamaindex_hiermem import HierMemRetriever as LlamaIndexRetriever
from llamaindex_hiermem import create_memory_tools as llamaindex_tools

SCORE = re.compile(r'"score": ?[\d.]+')


def hiermem_of(tenant):
    return HierMem.opened(tenant.location)


def history(tenant, _):
    one = HierMemChatMessageHistory(hiermem_of(tenant), tenant_id=tenant.name, thread_id="t1")
    one.add_messages([HumanMessage("the boat?", id="h1"), AIMessage("It sails.", id="h2")])
    return [(message.type, message.content) for message in one.messages]


def memory(tenant, _):
    one = HierMemMemory(hiermem_of(tenant), tenant_id=tenant.name, thread_id="t2")
    one.save_context({"input": "the boat?"}, {"output": "It sails."})
    return one.load_memory_variables({"input": "boat"})


def retriever(tenant, _):
    found = HierMemRetriever(tenant, k=9).invoke("boat")
    return [(one.id, one.page_content) for one in found]


def store(tenant, _):
    one = HierMemStore(tenant)
    one.put(("a", "b"), "k", {"text": "the boat"})
    found = [(item.key, item.value) for item in one.search(("a",), query="boat")]
    return found, one.get(("a", "b"), "k").value, one.list_namespaces(prefix=("a",))


def agent(tenant, _):
    one, model = agent_of(hiermem_of(tenant), prompt="You help. {memory}")
    context = HierMemContext(tenant_id=tenant.name, thread_id="t1")
    one.invoke(
        {"messages": [{"role": "user", "content": "the boat?", "id": "m1"}]}, context=context
    )
    return [(message.type, message.text) for message in model.seen[-1]]


def tools(make):
    def use(tenant, _):
        texts = []
        for one in make(tenant):
            name = getattr(one, "name", None) or one.metadata.name
            arguments = {"query": "boat"} if name == "recall" else {"content": "a boat"}
            if name in {"recall", "remember"}:
                call = getattr(one, "invoke", None)
                text = str(call(arguments) if call else one.call(**arguments))
                texts.append(SCORE.sub("", text))
        return texts

    return use


def buffer(tenant, _):
    one = HierMemChatMemoryBuffer.from_defaults(tenant=tenant, chat_store_key="t1", recall_k=5)
    one.put(ChatMessage(role="user", content="and the boat?"))
    return [(message.role, message.content) for message in one.get(input="the boat?")]


def chat_store(tenant, _):
    one = HierMemChatStore(tenant=tenant)
    one.add_message("t1", ChatMessage(role="user", content="the boat"))
    said = [(message.role, message.content) for message in one.get_messages("t1")]
    return said, sorted(one.get_keys())


def database_store(tenant, _):
    async def use():
        one = HierMemDBChatStore(tenant=tenant)
        await one.add_message("t1", ChatMessage(role="user", content="the boat"))
        return [(message.role, message.content) for message in await one.get_messages("t1")]

    return asyncio.run(use())


def block(tenant, _):
    one = HierMemMemoryBlock(tenant=tenant, k=9)
    return asyncio.run(one.aget([ChatMessage(role="user", content="the boat?")]))


def nodes(tenant, _):
    found = LlamaIndexRetriever(tenant, k=9).retrieve("boat")
    return sorted(one.node.get_content() for one in found)


class TestLeaks(LeakContract):
    @pytest.fixture
    def open_at(self):
        handles = []

        def open_one(folder, **options):
            given = options | {"backend": "hybrid"}
            handles.append(HierMem.open(folder, counter=ApproximateCounter(), **given))
            return handles[-1]

        yield open_one
        for handle in handles:
            handle.close()

    @pytest.fixture
    def calls(self):
        return {
            "history": history,
            "memory": memory,
            "retriever": retriever,
            "store": store,
            "agent": agent,
            "tools": tools(langchain_tools),
            "buffer": buffer,
            "chat store": chat_store,
            "database store": database_store,
            "block": block,
            "nodes": nodes,
            "tools of llamaindex": tools(llamaindex_tools),
        }
