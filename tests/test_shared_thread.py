"""One thread that LangChain and LlamaIndex write in turn; each reads its own and the other's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage
from llamaindex.models import ListeningLLM
from llamaindex.samples import calling

import hiermem_core
import llamaindex_hiermem
from hiermem_core import HierMem, ToolCall
from langchain_hiermem import HISTORY_FIELDS, HierMemChatMessageHistory, history_factory
from llamaindex_hiermem import HierMemChatMemoryBuffer
from llamaindex_hiermem.messages import message_to_turn

CONFIG = {"configurable": {"tenant_id": "alice", "thread_id": "trip"}}
CALL = {"name": "weather", "args": {"city": "Oslo", "days": 2}, "id": "call-1", "type": "tool_call"}

LANGCHAIN_ANSWERS = [
    AIMessage(content="Pack a coat.", id="answer-1", response_metadata={"model": "fake"}),
    AIMessage(content="", id="answer-2", tool_calls=[CALL]),
    AIMessage(content="Take the train.", id="answer-3"),
]
TOOL_RESULT = ToolMessage("4 degrees", tool_call_id="call-1", name="weather", id="result-1")
AFTER_TOOL = AIMessage(content="It is 4 degrees.", id="answer-2b")

READ_BOTH = """
import json, sys
from hiermem_core import HierMem
from langchain_core.messages import messages_to_dict
from langchain_hiermem import HierMemChatMessageHistory
from llamaindex_hiermem import HierMemChatMemoryBuffer

hiermem = HierMem.open(sys.argv[1], create=False)
history = HierMemChatMessageHistory(hiermem, tenant_id="alice", thread_id="trip")
memory = HierMemChatMemoryBuffer.from_defaults(
    tenant=hiermem.tenant("alice"), chat_store_key="trip"
)
print(json.dumps(messages_to_dict(history.messages)))
print(json.dumps([repr(message) for message in memory.get_all()]))
history.add_user_message("From another process.")
"""


class ListeningModel(GenericFakeChatModel):
    """A model that keeps what it was asked."""

    asked: list[Any]

    def _generate(self, messages, *arguments, **options):
        self.asked.append(list(messages))
        return super()._generate(messages, *arguments, **options)


class Talk:
    """A durable thread, a LangChain chain and a LlamaIndex chat engine on it."""

    def __init__(self, hiermem):
        self.model = ListeningModel(messages=iter(LANGCHAIN_ANSWERS), asked=[])
        prompt = ChatPromptTemplate.from_messages(
            [
                ("system", "You plan trips."),
                MessagesPlaceholder("history"),
                ("human", "{question}"),
            ]
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="RunnableWithMessageHistory is deprecated")
            self.chain = RunnableWithMessageHistory(
                prompt | self.model,
                history_factory(hiermem),
                history_factory_config=HISTORY_FIELDS,
                input_messages_key="question",
                history_messages_key="history",
            )
        self.history = HierMemChatMessageHistory(hiermem, tenant_id="alice", thread_id="trip")
        self.memory = HierMemChatMemoryBuffer.from_defaults(
            tenant=hiermem.tenant("alice"), chat_store_key="trip"
        )
        self.llm = ListeningLLM(max_tokens=3)
        self.engine = SimpleChatEngine.from_defaults(memory=self.memory, llm=self.llm)
        self.thread = hiermem.tenant("alice").thread("trip")

    def ask_langchain(self, question):
        return self.chain.invoke({"question": question}, config=CONFIG)


@pytest.fixture
def location(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def talk(location):
    """Give a talk of two exchanges each: LangChain, a tool call, LlamaIndex, LangChain again."""
    with HierMem.open(location) as hiermem:
        talk = Talk(hiermem)
        talk.ask_langchain("What do I pack?")
        talk.ask_langchain("How cold is it?")
        talk.history.add_messages([TOOL_RESULT, AFTER_TOOL])
        talk.engine.chat("And in the mountains?")
        talk.engine.chat("And by boat?")
        talk.memory.put_messages(llamaindex_tool_round())
        talk.ask_langchain("How do I get there?")
        yield talk


def llamaindex_tool_round():
    kwargs = {"tool_call_id": "call-2", "name": "timetable"}
    return [
        ChatMessage(role="user", content="When does the boat leave?"),
        calling(ToolCall("call-2", "timetable", {"to": "Bergen"})),
        ChatMessage(role="tool", content="at nine", additional_kwargs=kwargs),
        ChatMessage(role="assistant", content="At nine."),
    ]


def said(messages):
    return [message.content for message in messages]


SAID = [
    "What do I pack?",
    "Pack a coat.",
    "How cold is it?",
    "",
    "4 degrees",
    "It is 4 degrees.",
    "And in the mountains?",
    "text text text",
    "And by boat?",
    "text text text",
    "When does the boat leave?",
    "",
    "at nine",
    "At nine.",
    "How do I get there?",
    "Take the train.",
]


def test_langchain_gets_its_own_messages_back_equal(talk):
    messages = talk.history.messages

    assert messages[1] == LANGCHAIN_ANSWERS[0]
    assert messages[3:6] == [LANGCHAIN_ANSWERS[1], TOOL_RESULT, AFTER_TOOL]
    assert messages[15] == LANGCHAIN_ANSWERS[2]
    assert [messages[n].content for n in (0, 2, 14)] == [SAID[n] for n in (0, 2, 14)]
    assert all(isinstance(messages[n], HumanMessage) for n in (0, 2, 14))


def test_llamaindex_gets_its_own_messages_back_equal(talk):
    messages = talk.memory.get_all()

    assert messages[6:10] == [
        ChatMessage(role="user", content="And in the mountains?"),
        ChatMessage(role="assistant", content="text text text"),
        ChatMessage(role="user", content="And by boat?"),
        ChatMessage(role="assistant", content="text text text"),
    ]
    assert messages[10:14] == llamaindex_tool_round()


def test_both_read_the_whole_talk_in_one_order(talk):
    by_langchain = talk.history.messages
    by_llamaindex = talk.memory.get_all()

    roles = {"human": "user", "ai": "assistant", "tool": "tool"}
    assert [message.text for message in by_langchain] == SAID
    assert [content or "" for content in said(by_llamaindex)] == SAID
    assert [roles[m.type] for m in by_langchain] == [m.role.value for m in by_llamaindex]
    assert talk.memory.get() == by_llamaindex


def test_calls_of_langchain_reach_llamaindex_with_their_results(talk):
    call, result = talk.memory.get_all()[3:5]

    assert message_to_turn(call).tool_calls == (
        ToolCall("call-1", "weather", {"city": "Oslo", "days": 2}),
    )
    assert result.additional_kwargs["tool_call_id"] == "call-1"
    assert result.content == "4 degrees"


def test_calls_of_llamaindex_reach_langchain_with_their_results(talk):
    call, result = talk.history.messages[11:13]

    assert [(c["id"], c["name"], c["args"]) for c in call.tool_calls] == [
        ("call-2", "timetable", {"to": "Bergen"})
    ]
    assert isinstance(result, ToolMessage)
    assert (result.tool_call_id, result.name, result.content) == ("call-2", "timetable", "at nine")


def test_each_model_saw_what_was_said_through_the_other(talk):
    seen_by_llamaindex = said(talk.llm.heard)
    seen_by_langchain = talk.model.asked[-1]

    assert [content or "" for content in seen_by_llamaindex] == SAID[:9]
    assert [m.text for m in seen_by_langchain] == ["You plan trips.", *SAID[:15]]
    assert [m.tool_call_id for m in seen_by_langchain if m.type == "tool"] == ["call-1", "call-2"]


def test_nothing_is_stored_twice_and_each_turn_names_its_framework(talk):
    turns = talk.thread.turns()

    frameworks = ["langchain"] * 6 + ["llamaindex"] * 8 + ["langchain"] * 2
    assert [turn.seq for turn in turns] == list(range(1, 17))
    assert [turn.origin.framework for turn in turns] == frameworks
    assert [turn.call_seq for turn in turns if turn.role == "tool"] == [4, 12]


def test_the_core_window_keeps_calls_of_both_with_their_results(talk):
    for budget in range(40, 400, 9):
        window = talk.thread.context(budget_tokens=budget, recall=False).messages
        called = [call.id for turn in window for call in turn.tool_calls]
        assert called == [turn.tool_call_id for turn in window if turn.role == "tool"]
        assert window[-1].content == "Take the train."


def test_a_second_process_reads_the_same_and_goes_on(talk, location):
    sources = [
        str(Path(package.__file__).parents[1]) for package in (hiermem_core, llamaindex_hiermem)
    ]

    outcome = subprocess.run(
        [sys.executable, "-c", READ_BOTH, str(location)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sources)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert outcome.returncode == 0, outcome.stderr
    by_langchain, by_llamaindex = map(json.loads, outcome.stdout.splitlines())
    assert [m["data"] for m in by_langchain] == [
        json.loads(m.model_dump_json()) for m in talk.history.messages[:16]
    ]
    assert by_llamaindex == [repr(m) for m in talk.memory.get_all()[:16]]
    assert talk.history.messages[16] == HumanMessage("From another process.")
    assert talk.memory.get_all()[16] == ChatMessage(role="user", content="From another process.")


def test_a_turn_edited_through_the_core_reads_the_same_on_both_sides(talk):
    turns = talk.thread.turns()
    for turn in (turns[1], turns[7]):
        talk.thread.edit_turn(turn.id, "edited")

    assert [talk.history.messages[n].text for n in (1, 7)] == ["edited"] * 2
    assert [talk.memory.get_all()[n].content for n in (1, 7)] == ["edited"] * 2
