"""One thread of agents of both frameworks, with tool calls, images and thinking."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from llama_index.core.llms import ChatMessage
from llamaindex.samples import agent_of, asking, block, result, thinking, user

from hiermem_core import HierMem
from langchain_hiermem import HierMemChatMessageHistory
from llamaindex_hiermem import HierMemChatMemoryBuffer
from llamaindex_hiermem.messages import message_to_turn

PIXEL = "iVBORw0KGgo="
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def langchain_round(text, place):
    """Give a question with an image, a thought with a call, its result, and an answer."""
    call = {"name": "weather", "args": {"city": text}, "id": f"l{place}", "type": "tool_call"}
    return [
        HumanMessage(
            [
                {"type": "text", "text": text},
                {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
            ],
            id=f"h{place}",
        ),
        AIMessage(
            [{"type": "reasoning", "reasoning": text, "extras": {"signature": "s"}}],
            tool_calls=[call],
            id=f"a{place}",
        ),
        ToolMessage(text, tool_call_id=f"l{place}", name="weather", id=f"t{place}", artifact=[1]),
        AIMessage(text, id=f"b{place}", response_metadata={"model": "fake"}),
    ]


def llamaindex_round(text, place):
    """Give the same, as LlamaIndex has it."""
    picture = block("image", image=PIXEL.encode(), image_mimetype="image/png")
    call = asking(f"i{place}", city=text)
    call.blocks = [*thinking(text, additional_information={"signature": "s"}), *call.blocks]
    return [
        ChatMessage(role="user", blocks=[block("text", text=text), picture]),
        call,
        result(f"i{place}", text),
        ChatMessage(role="assistant", content=text, additional_kwargs={"raw": b"\xff"}),
    ]


ROUNDS = st.lists(st.tuples(st.sampled_from(["langchain", "llamaindex"]), TEXT), max_size=5)


@given(ROUNDS)
def test_l49_a_generated_thread_comes_back_equal_and_whole_to_both(rounds):
    with HierMem.open(":memory:") as hiermem:
        history = HierMemChatMessageHistory(hiermem, tenant_id="alice", thread_id="trip")
        alice = hiermem.tenant("alice")
        memory = HierMemChatMemoryBuffer.from_defaults(tenant=alice, chat_store_key="trip")
        written = []
        for place, (framework, text) in enumerate(rounds):
            if framework == "langchain":
                messages = langchain_round(text, place)
                history.add_messages(messages)
            else:
                messages = llamaindex_round(text, place)
                memory.put_messages(messages)
            written += [(framework, text, message) for message in messages]
        before = alice.thread("trip").turns() if rounds else []

        by_langchain, by_llamaindex = history.messages, memory.get_all()

        assert len(by_langchain) == len(by_llamaindex) == len(written)
        for (framework, text, message), theirs, ours in zip(
            written, by_langchain, by_llamaindex, strict=True
        ):
            assert message == (theirs if framework == "langchain" else ours)
            role = {"human": "user", "ai": "assistant"}.get(theirs.type, theirs.type)
            assert role == ours.role.value
            spoken = [(call["id"], call["args"]) for call in getattr(theirs, "tool_calls", [])]
            assert spoken == [(c.id, dict(c.args)) for c in message_to_turn(ours).tool_calls]
            if role == "tool":
                assert theirs.tool_call_id == ours.additional_kwargs["tool_call_id"]
            if role == "user":
                assert [item["type"] for item in theirs.content_blocks] == ["text", "image"]
                assert ours.blocks[1].image == PIXEL.encode()
            if role != "assistant" or not spoken:
                assert theirs.text == ours.content == text
            elif thinking(""):
                assert theirs.content_blocks[0]["reasoning"] == text
                assert ours.blocks[0].content == text
        assert (alice.thread("trip").turns() if rounds else []) == before


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
@pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning")
def test_l49_agents_of_both_frameworks_continue_one_thread(tmp_path):
    scripted = pytest.importorskip("scripted_agent", exc_type=ImportError)
    read = []

    def reply(messages, **ignored):
        read.append(list(messages))
        answered = messages[-1].role.value == "tool"
        return ChatMessage(role="assistant", content="mild") if answered else asking("c1")

    async def ask_llamaindex(text, memory):
        await agent_of(reply).run(user_msg=text, memory=memory)

    with HierMem.open(tmp_path / "memory") as hiermem:
        alice = hiermem.tenant("alice")
        memory = HierMemChatMemoryBuffer.from_defaults(tenant=alice, chat_store_key="t1")
        agent, chat = scripted.agent_of(hiermem, reply=scripted.asking_tools)
        question = langchain_round("How far is Oslo?", 0)[0]
        agent.invoke({"messages": [question]}, context=scripted.ALICE)
        first = memory.get_all()
        asyncio.run(ask_llamaindex("And warm?", memory))
        agent.invoke({"messages": [HumanMessage("And Bergen?", id="h9")]}, context=scripted.ALICE)

        stored = memory.get_all()
        assert [m.role.value for m in first] == ["user", "assistant", "tool", "assistant"]
        assert read[0][:4] == first
        assert read[0][4] == user("And warm?")
        assert stored[4:6] == [user("And warm?"), asking("c1")]
        assert stored[7] == ChatMessage(role="assistant", content="mild")
        seen = [m for m in chat.seen[-1] if not isinstance(m, SystemMessage)]
        assert [m.type for m in seen] == [*("human", "ai", "tool", "ai") * 2, "human", "ai", "tool"]
        assert seen[0].content_blocks == question.content_blocks
        assert [c["id"] for m in seen[5:6] for c in m.tool_calls] == ["c1"]
        assert seen[6].tool_call_id == "c1"
