"""What the tests of the buffer are made of: messages, models, agents, and fresh interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import Memory
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.workflow import JsonSerializer
from llamaindex.models import CallingLLM

import hiermem_core
import llamaindex_hiermem
from hiermem_core import ToolCall, TurnDraft
from llamaindex_hiermem import HierMemChatMemoryBuffer
from llamaindex_hiermem.blocks import block_classes
from llamaindex_hiermem.messages import turn_to_message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WATCHDOG_SECONDS = 60.0
takes_a_store = pytest.mark.skipif(
    "chat_store" not in signature(Memory.from_defaults).parameters,
    reason="Memory of this core takes no store of others",
)
SOURCES = [
    *(
        str(Path(package.__file__ or "").parents[1])
        for package in (hiermem_core, llamaindex_hiermem)
    ),
    str(Path(__file__).parents[1]),
]
CORE = tuple(map(int, version("llama-index-core").split(".")[:3]))
CITY = {"city": "Oslo"}
FACT = "Meetings start at nine"

_LETTERS = {
    "U": MessageRole.USER,
    "A": MessageRole.ASSISTANT,
    "T": MessageRole.TOOL,
    "S": MessageRole.SYSTEM,
    "F": MessageRole.FUNCTION,
    "M": MessageRole.MODEL,
    "D": MessageRole.DEVELOPER,
    "C": MessageRole.CHATBOT,
}


def json_serializer() -> JsonSerializer:
    """Return what restores a memory and nothing else, where the workflows here can be told so."""
    can_be_told = "allowed_types" in signature(JsonSerializer).parameters
    return JsonSerializer(**({"allowed_types": [HierMemChatMemoryBuffer]} if can_be_told else {}))


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def assistant(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def system(text: str) -> ChatMessage:
    return ChatMessage(role="system", content=text)


def block(kind: str, **fields: Any) -> Any:
    if kind not in block_classes():
        pytest.skip(f"this core has no {kind} block")
    return block_classes()[kind](**fields)


def thinking(content: str, **fields: Any) -> list[Any]:
    """Return a thinking block, or none on a core that has no such kind."""
    has_it = "thinking" in block_classes()
    return [block("thinking", content=content, **fields)] if has_it else []


def asking(*call_ids: str, text: str | None = None, **arguments: Any) -> ChatMessage:
    """Return an assistant message that calls `weather` once for each id."""
    return calling(*(ToolCall(one, "weather", arguments or CITY) for one in call_ids), text=text)


def calling(*calls: ToolCall, text: str | None = None) -> ChatMessage:
    """Return an assistant message with these calls, in the form that this core has for them."""
    return turn_to_message(TurnDraft(role="assistant", content=text, tool_calls=calls))


def result(call_id: str, text: str) -> ChatMessage:
    return ChatMessage(role="tool", content=text, additional_kwargs={"tool_call_id": call_id})


def exchange(name: str, *, words: int = 5) -> list[ChatMessage]:
    return [user(f"{name} " + "ask " * (words - 1)), assistant(f"{name} " + "say " * (words - 1))]


def thread_of(notation: str) -> list[ChatMessage]:
    """Return the thread of a notation: `U5` is a user message of five words.

    An assistant message in front of tool messages calls them.
    """
    terms = notation.split()
    messages: list[ChatMessage] = []
    for place, term in enumerate(terms):
        text = " ".join(f"{term}.{place}.{word}" for word in range(int(term[1:])))
        if term[0] == "T":
            messages.append(result(f"call-{place}", text))
        elif (answers := _answers(terms, place)) and term[0] == "A":
            messages.append(asking(*(f"call-{answer}" for answer in answers), text=text))
        else:
            messages.append(ChatMessage(role=_LETTERS[term[0]], content=text))
    return messages


def notation_of(messages: Sequence[ChatMessage]) -> str:
    """Return the notation of messages that `thread_of` made."""
    letters = {role: letter for letter, role in _LETTERS.items()}
    return " ".join(f"{letters[m.role]}{len(str(m.content).split())}" for m in messages)


def _answers(terms: Sequence[str], place: int) -> list[int]:
    answers = []
    for later in range(place + 1, len(terms)):
        if terms[later][0] != "T":
            break
        answers.append(later)
    return answers


def texts(messages: Sequence[ChatMessage]) -> list[str | None]:
    return [message.content for message in messages]


class Facts(BaseRetriever):
    """A retriever that knows one thing."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text="The fjord is deep."), score=1.0)]


class LoopShy(HierMemChatMemoryBuffer):
    """A memory whose sync methods fail on the thread of the loop."""

    def _refuse(self) -> None:
        assert threading.current_thread() is not threading.main_thread()

    def get(self, *arguments: Any, **options: Any) -> list[ChatMessage]:
        self._refuse()
        return super().get(*arguments, **options)

    def get_all(self) -> list[ChatMessage]:
        self._refuse()
        return super().get_all()

    def put(self, message: ChatMessage) -> None:
        self._refuse()
        super().put(message)

    def put_messages(self, messages: Any) -> None:
        self._refuse()
        super().put_messages(messages)

    def set(self, messages: Any) -> None:
        self._refuse()
        super().set(messages)


def weather(city: str = "Oslo") -> str:
    """Return the weather of a city."""
    return f"22 degrees in {city}"


def ask_then_answer(messages: Sequence[ChatMessage], **ignored: Any) -> ChatMessage:
    """Answer as a model does that calls `weather` once for each question."""
    return assistant("It is warm.") if messages[-1].role == "tool" else asking("c1")


def agent_of(
    reply: Callable[..., ChatMessage] = ask_then_answer,
    *,
    tools: Sequence[Any] = (weather,),
    **options: Any,
) -> FunctionAgent:
    return FunctionAgent(tools=list(tools), llm=CallingLLM(reply), **options)


def start_python(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a script in a fresh interpreter that finds the sources and the tests."""
    return subprocess.Popen(
        [sys.executable, "-c", dedent(script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_python(script: str, *arguments: object) -> str:
    """Run a script in a fresh interpreter, and return what it prints."""
    child = start_python(script, *arguments)
    output, errors = child.communicate(timeout=WATCHDOG_SECONDS)
    assert child.returncode == 0, errors
    return output
