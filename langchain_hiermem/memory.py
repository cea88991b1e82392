"""Memory for the chains of classic LangChain: `BaseMemory` on a HierMem thread."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from langchain_classic.base_memory import BaseMemory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import get_buffer_string
from pydantic import Field, PrivateAttr

from hiermem_core import HierMem, Profile, ThreadNotFoundError, ThreadOptions
from langchain_hiermem.chat_history import HierMemChatMessageHistory, viewed
from langchain_hiermem.folding import Folding
from langchain_hiermem.messages import message_to_turn, turn_to_message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hiermem_core import Thread, Turn

DEFAULT_TOKEN_LIMIT = 2000
"""Tokens of the turns beside a summary, unless a limit is given; as in the classic memory."""

_SLOT = "{memory}"
_NOT_INPUTS = "stop"


class HierMemMemory(BaseMemory):
    """What classic chains remember: durable, scoped to a tenant and a thread.

    Without limit it gives the whole thread, with `k` the newest exchanges, with `max_token_limit`
    those that fit, and with `llm` a running summary and the turns since. The summary is made in the
    background; where the model fails, the turns stay and are folded in later. A chain hands over
    texts only, so the tool messages of an agent do not come here; for agents there is
    `HierMemMiddleware`.

    Attributes:
        memory_key: The variable it fills.
        return_messages: Fill it with messages instead of one text.
        k: Exchanges at most.
        max_token_limit: Tokens at most; with `llm` those of the turns, 2,000 unless given.
        llm: Makes the summary. Its own `get_num_tokens` counts if it has one.

    Raises:
        MissingIdentityError: Tenant or thread is empty; neither has a default.

    Example:
        Setup: `pip install "hiermem-core[langchain-classic]"`. Instantiate:
        ```python
        memory = HierMemMemory(hiermem, tenant_id="alice", thread_id="trip", k=5)
        ```
        Use:
        ```python
        ConversationChain(llm=model, memory=memory)
        ```
        Async:
        ```python
        await memory.aload_memory_variables({})
        ```
    """

    tenant_id: str
    thread_id: str
    memory_key: str = "history"
    input_key: str | None = None
    output_key: str | None = None
    return_messages: bool = False
    human_prefix: str = "Human"
    ai_prefix: str = "AI"
    k: int | None = Field(default=None, ge=0)
    max_token_limit: int | None = Field(default=None, ge=0)
    llm: Any = None

    _hiermem: HierMem = PrivateAttr()
    _history: HierMemChatMessageHistory = PrivateAttr()
    _thread: Thread = PrivateAttr()

    def __init__(self, hiermem: HierMem, **fields: Any) -> None:
        super().__init__(**fields)
        self._hiermem = hiermem
        self._history = HierMemChatMessageHistory(
            hiermem, tenant_id=self.tenant_id, thread_id=self.thread_id
        )
        self._thread = hiermem.tenant(self.tenant_id).thread(self.thread_id)

    @property
    def memory_variables(self) -> list[str]:
        """The variable it fills."""
        return [self.memory_key]

    @property
    def chat_memory(self) -> HierMemChatMessageHistory:
        """The whole thread as a chat message history."""
        return self._history

    @property
    def buffer(self) -> Any:
        """What the variable is filled with."""
        messages = self._messages()
        if self.return_messages:
            return messages
        return get_buffer_string(messages, human_prefix=self.human_prefix, ai_prefix=self.ai_prefix)

    def load_memory_variables(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the variable and what it is filled with; notes come first, as a system message.

        Never calls a model. Never writes.
        """
        del inputs
        return {self.memory_key: self.buffer}

    def save_context(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Store an exchange, in one transaction; it survives a kill when this returns.

        Raises:
            ValueError: It is not clear which of the inputs or outputs is meant.
        """
        asked = inputs[self._input_key(inputs)]
        answered = outputs[self._output_key(outputs)]
        messages = [_as_message(asked, HumanMessage), _as_message(answered, AIMessage)]
        if self.llm is None:
            self._history.add_messages(messages)
            return
        self._thread.append([message_to_turn(message) for message in messages])
        self._thread.learn(Folding(self.llm, self._limit, self._hiermem.counter).fold)

    def clear(self) -> None:
        """Delete this thread's turns and notes, and nothing else."""
        self._history.clear()

    async def aload_memory_variables(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Do `load_memory_variables` without blocking the loop."""
        return await self._hiermem.pool.run(self.load_memory_variables, inputs)

    async def asave_context(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Do `save_context` without blocking the loop."""
        await self._hiermem.pool.run(self.save_context, inputs, outputs)

    async def aclear(self) -> None:
        """Do `clear` without blocking the loop."""
        await self._hiermem.pool.run(self.clear)

    @property
    def _limit(self) -> int:
        return DEFAULT_TOKEN_LIMIT if self.max_token_limit is None else self.max_token_limit

    def _messages(self) -> list[BaseMessage]:
        try:
            if self.llm is not None:
                return self._summarised()
            if self.k is not None:
                return self._newest(self.k)
            if self.max_token_limit is not None:
                return self._within(self.max_token_limit)
        except ThreadNotFoundError:
            return []
        return self._history.messages

    def _summarised(self) -> list[BaseMessage]:
        """Return the summary, and the newest turns since that fit."""
        state = self._thread.state()
        folding = Folding(self.llm, self._limit, self._hiermem.counter)
        turns = folding.newest(self._thread.turns(after=state.turn_count))
        return [*_system(state.summary), *_messages_of(turns)]

    def _newest(self, k: int) -> list[BaseMessage]:
        if k == 0:
            return []
        options = ThreadOptions(strategy="sliding_window", window_exchanges=k - 1)
        context = self._thread.context(
            budget_tokens=sys.maxsize, profile=Profile("k", options), recall=False
        )
        return [viewed(turn) for turn in context.messages]

    def _within(self, limit: int) -> list[BaseMessage]:
        context = self._thread.context(budget_tokens=limit, system=_SLOT, recall=False)
        said = [viewed(turn) for turn in context.messages if turn.seq]
        return [*_system(context.notes), *said]

    def _input_key(self, inputs: Mapping[str, Any]) -> str:
        if self.input_key is not None:
            return self.input_key
        left_out = {*self.memory_variables, _NOT_INPUTS}
        names = [name for name in inputs if name not in left_out]
        if len(names) != 1:
            raise ValueError(f"One input key expected got {names}; name it as input_key")
        return names[0]

    def _output_key(self, outputs: Mapping[str, Any]) -> str:
        if self.output_key is not None:
            return self.output_key
        names = list(outputs)
        if len(names) == 1:
            return names[0]
        if "output" not in outputs:
            raise ValueError(f"Got multiple output keys: {names}; name one as output_key")
        text = f"Got multiple output keys: {names}; 'output' is saved, name another as output_key"
        warnings.warn(text, stacklevel=3)
        return "output"


def _as_message(value: Any, kind: type[BaseMessage]) -> BaseMessage:
    """Return a message as it is; a text as one of a kind, the newest of several messages."""
    if isinstance(value, BaseMessage):
        return value
    if isinstance(value, list) and value and isinstance(value[-1], BaseMessage):
        return value[-1]
    return kind(value if isinstance(value, str) else str(value))


def _system(text: str) -> list[BaseMessage]:
    return [SystemMessage(text)] if text else []


def _messages_of(turns: Sequence[Turn]) -> list[BaseMessage]:
    return [turn_to_message(turn) for turn in turns]
