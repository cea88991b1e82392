"""Agents on a scripted chat model, and what may be wrong with what they send to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from pydantic import Field

from langchain_hiermem import HierMemContext, HierMemMiddleware, count_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

ALICE = HierMemContext("alice", "t1")
BOB = HierMemContext("bob", "t1")


@tool
def look_up(place: str) -> str:
    """Look up a place."""
    return f"{place} is far away"


def called(call_id, place="Oslo", text="", **facts):
    """Give an AI message that calls the tool."""
    call = {"id": call_id, "name": "look_up", "args": {"place": place}}
    return AIMessage(text, tool_calls=[call], **facts)


def asking_tools(messages):
    """Call the tool for each question, then answer with how many messages were read."""
    newest = messages[-1]
    if newest.type == "tool":
        return AIMessage(f"answer to {len(messages)} messages")
    return called(f"c-{newest.id}", str(newest.content)[-20:])


def answering(messages):
    """Answer with how many messages were read."""
    return AIMessage(f"answer to {len(messages)} messages")


class ScriptedChat(BaseChatModel):
    """A chat model that replies by a function, streams by words, and keeps what it was sent."""

    reply: Any = answering
    seen: list[Any] = Field(default_factory=list)
    fails_at: int = -1

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **options: Any):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        if len(self.seen) == self.fails_at:
            self.fails_at = -1
            raise ConnectionError("the provider hung up")
        self.seen.append([message.model_copy(deep=True) for message in messages])
        message = self.reply(messages).model_copy(deep=True)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs: Any):
        message = self._generate(messages).generations[0].message
        chunks = [AIMessageChunk(f"{word} ") for word in str(message.content).split()]
        for place, call in enumerate(message.tool_calls):
            shown = {"id": call["id"], "name": call["name"], "index": place}
            half = f'{{"place": "{call["args"]["place"]}"}}'
            chunks.append(AIMessageChunk("", tool_call_chunks=[{**shown, "args": half}]))
        chunks.append(AIMessageChunk("", chunk_position="last"))
        for chunk in chunks:
            generation = ChatGenerationChunk(message=chunk)
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.content), chunk=generation)
            yield generation


def agent_of(
    hiermem,
    *,
    reply: Callable[..., Any] = answering,
    tools=(look_up,),
    budget_tokens=4000,
    prompt=None,
    contexts=None,
    agent_options=None,
    **options,
):
    """Give an agent with the middleware, and its model."""
    model = ScriptedChat(reply=reply)
    options = {"output_reserve": 100, **options}
    if contexts is not None:
        options["on_context"] = contexts.append
    middleware = HierMemMiddleware(hiermem, budget_tokens=budget_tokens, **options)
    agent = create_agent(
        model,
        list(tools),
        system_prompt=prompt,
        middleware=[middleware],
        context_schema=HierMemContext,
        **(agent_options or {}),
    )
    return agent, model


def said(text, **facts):
    """Give the input of a run."""
    return {"messages": [{"role": "user", "content": text, **facts}]}


def problems_of(messages):
    """Return what providers would refuse of a list of messages."""
    problems = []
    body = [message for message in messages if not isinstance(message, SystemMessage)]
    if not body or body[0].type != "human":
        problems.append("does not begin with a user")
    open_calls: dict[str, None] = {}
    for message in body:
        if message.type == "tool":
            if message.tool_call_id not in open_calls:
                problems.append(f"orphan result {message.tool_call_id}")
            open_calls.pop(message.tool_call_id, None)
            continue
        problems += [f"call {call_id} has no result" for call_id in open_calls]
        open_calls = dict.fromkeys(call["id"] for call in getattr(message, "tool_calls", ()))
    return problems + [f"call {call_id} has no result" for call_id in open_calls]


def tokens_of(messages, context, hiermem):
    """Count again what was sent."""
    return 3 + count_tokens(messages, counter=hiermem.counter) + context.receipt.tokens("tools")


def stored(hiermem, tenant="alice", thread="t1"):
    """Return what is stored, a role and content each."""
    if thread not in {one.thread_id for one in hiermem.tenant(tenant).threads()}:
        return []
    return [(turn.role, turn.content) for turn in hiermem.tenant(tenant).thread(thread).turns()]
