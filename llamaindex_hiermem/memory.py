"""Chat memory for LlamaIndex: `ChatMemoryBuffer`, on disk and scoped."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from llama_index.core.base.llms.types import MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr

from hiermem_core import AsyncHierMem, Context, Tenant, ThreadNotFoundError
from llamaindex_hiermem.bound import DEFAULT_TOKEN_LIMIT, BoundMemory, Counting
from llamaindex_hiermem.chat_store import HierMemChatStore
from llamaindex_hiermem.contexts import (
    Asked,
    compat_context,
    core_context,
    of_messages,
)
from llamaindex_hiermem.counting import LazyCount
from llamaindex_hiermem.messages import message_to_turn, turn_to_message
from llamaindex_hiermem.reading import all_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llama_index.core.base.llms.types import ChatMessage

    from hiermem_core import Turn

DEFAULT_TOKEN_LIMIT_RATIO = 0.75

R = TypeVar("R")


class HierMemTrimWarning(UserWarning):
    """A memory left messages out to fit its token limit; told once per memory object."""


class HierMemChatMemoryBuffer(BoundMemory):
    """`ChatMemoryBuffer` by changing one line; durable and scoped by naming tenant and thread.

    Whatever is put is stored before `put` returns. `get` never writes, never calls a chat model,
    and reads the window only, whatever the length of the thread. Messages come back equal to what
    was put, as fresh objects. Making a memory never wipes a thread: only `set` and `reset` do, and
    they archive. One object serves threads, event loops and streaming answers at once.

    With `recall_k`, what the tenant's entries and older turns of the thread say to the question
    stands in one block in the system message's `{memory}` slot, else in front of the question, or,
    where the question follows, in the system message. It is never stored.

    Attributes:
        token_limit: Tokens `get` may return.
        tokenizer_fn: Counts in compat mode: the length of what it returns.
        counting: `"compat"` keeps `ChatMemoryBuffer`'s rule: text only, by `tokenizer_fn`; what is
            recalled takes only what the window leaves. `"core"` counts everything, keeps system
            messages, never exceeds the limit, and gives recall its share of it.
        recall_k: Recalled entries and turns at most; 0: nothing is recalled.
        log_steps: Log each tool call that is put as a step of the session that bears the thread's
            name: the tool and its arguments, what was said before, and the result.
    """

    _has_warned: bool = PrivateAttr(default=False)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises it."""
        return "HierMemChatMemoryBuffer"

    @property
    def chat_store(self) -> HierMemChatStore:
        """The threads of the tenant, as a chat store of LlamaIndex."""
        return HierMemChatStore(tenant=self._tenant)

    @property
    def chat_store_key(self) -> str:
        """The thread."""
        return self._thread.id

    @classmethod
    def from_defaults(  # noqa: PLR0917 - spelled by LlamaIndex
        cls,
        chat_history: Sequence[ChatMessage] | None = None,
        llm: Any = None,
        chat_store: Any = None,
        chat_store_key: str | None = None,
        token_limit: int | None = None,
        tokenizer_fn: Callable[[str], list[Any]] | None = None,
        *,
        tenant: Tenant | None = None,
        counting: Counting = "compat",
        recall_k: int = 0,
        log_steps: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Make a memory.

        Args:
            chat_history: A list that is not empty is an explicit `set`; `[]` touches nothing.
            llm: Gives three quarters of its context window as the limit.
            chat_store: A `HierMemChatStore`; its tenant is used.
            chat_store_key: The thread; must be named with `tenant` and with `chat_store`.
            token_limit: Default 3000 without `llm`.
            tenant: Whose memory this is. Without it the memory lives in this process.

        Raises:
            MissingIdentityError: A tenant without a thread.
            TypeError: A `chat_store` of LlamaIndex; the text shows how to move its messages.
            ValueError: Unknown arguments, or a limit below 1.
        """
        if kwargs:
            raise ValueError(f"Unexpected kwargs: {kwargs}")
        if chat_store is not None and not isinstance(chat_store, HierMemChatStore):
            raise TypeError(
                f"chat_store must be HierMem's, not {type(chat_store).__name__}; to move its "
                "messages: memory.set(chat_store.get_messages(key))"
            )
        if tenant is None and chat_store is not None:
            tenant = chat_store.tenant
        options: dict[str, Any] = {
            "tenant": tenant,
            "chat_store_key": chat_store_key,
            "token_limit": _limit(llm, token_limit),
            "tokenizer_fn": tokenizer_fn,
            "counting": counting,
            "recall_k": recall_k,
            "log_steps": log_steps,
        }
        memory = cls(**options)
        if chat_history:
            memory.set(chat_history)
        return memory

    def get(
        self,
        input: str | None = None,  # noqa: A002 - spelled by LlamaIndex
        initial_token_count: int = 0,
        **kwargs: Any,
    ) -> list[ChatMessage]:
        """Return the window as fresh messages.

        Args:
            input: What to recall by; default: the newest user message. The window does not depend
                on it.
            initial_token_count: Tokens the caller sends before the messages.

        Raises:
            ValueError: In compat mode, `initial_token_count` alone exceeds the limit.
            BudgetExceededError: In core mode, what must be kept does not fit.
        """
        messages: Any = self.get_context(input, initial_token_count, **kwargs).messages
        return list(messages)

    def get_context(
        self,
        input: str | None = None,  # noqa: A002 - spelled by LlamaIndex
        initial_token_count: int = 0,
        **kwargs: Any,
    ) -> Context:
        """Return the window with warnings and receipt; `messages` are chat messages."""
        del kwargs
        asked = Asked(self.token_limit, initial_token_count, self.recall_k, input)
        if self.counting == "compat":
            return compat_context(self._thread, self._recall, asked, LazyCount(self.tokenizer_fn))
        context = core_context(self._thread, self._recall, asked)
        self._warn_once(context)
        return of_messages(context)

    def get_all(self) -> list[ChatMessage]:
        """Return every message of the thread, in order."""
        return [turn_to_message(turn) for turn in all_turns(self._thread)]

    def put(self, message: ChatMessage) -> None:
        """Store a message; it survives a kill when this returns."""
        self.put_messages([message])

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Store messages in one transaction; an answer is learned from in the background."""
        placed = self._thread.append([message_to_turn(message) for message in messages])
        if self.log_steps:
            self._log_calls(placed)
        if any(message.role == MessageRole.ASSISTANT for message in messages):
            self._thread.save_context()

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Give the thread these messages in one transaction; the old ones are archived."""
        self._thread.replace([message_to_turn(message) for message in messages])

    def reset(self, purge: bool = False) -> None:  # noqa: FBT001, FBT002 - spelled by LlamaIndex
        """Empty the thread and its notes; the turns are archived, or deleted with `purge`."""
        if purge:
            self._thread.delete()
            return
        with suppress(ThreadNotFoundError):
            self._thread.replace([])
            self._thread.reset()

    def close(self) -> None:
        """End a memory that lives in this process only; a HierMem others may use stays open."""
        if self._owned is not None:
            self._owned.close()

    async def aget(
        self,
        input: str | None = None,  # noqa: A002 - spelled by LlamaIndex
        initial_token_count: int = 0,
        **kwargs: Any,
    ) -> list[ChatMessage]:
        """Do `get` without blocking the loop."""
        return await self._offload(lambda: self.get(input, initial_token_count, **kwargs))

    async def aget_context(
        self,
        input: str | None = None,  # noqa: A002 - spelled by LlamaIndex
        initial_token_count: int = 0,
        **kwargs: Any,
    ) -> Context:
        """Do `get_context` without blocking the loop."""
        return await self._offload(lambda: self.get_context(input, initial_token_count, **kwargs))

    async def aget_all(self) -> list[ChatMessage]:
        """Do `get_all` without blocking the loop."""
        return await self._offload(self.get_all)

    async def aput(self, message: ChatMessage) -> None:
        """Do `put` without blocking the loop."""
        await self._offload(lambda: self.put(message))

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Do `put_messages` without blocking the loop."""
        await self._offload(lambda: self.put_messages(messages))

    async def aset(self, messages: Sequence[ChatMessage]) -> None:
        """Do `set` without blocking the loop."""
        await self._offload(lambda: self.set(messages))

    async def areset(self, purge: bool = False) -> None:  # noqa: FBT001, FBT002 - as the sync one
        """Do `reset` without blocking the loop."""
        await self._offload(lambda: self.reset(purge))

    async def aclose(self) -> None:
        """Do `close` without blocking the loop."""
        if self._owned is not None:
            await AsyncHierMem(self._owned).close()

    async def _offload(self, function: Callable[[], R]) -> R:
        return await self._tenant.pool.run(function)

    def _log_calls(self, placed: Sequence[Turn]) -> None:
        """Log the calls that turns answer, with the turn before the first of these."""
        calls = [turn.call_seq for turn in placed if turn.call_seq is not None]
        if calls:
            first, last = max(0, min(calls) - 2), placed[-1].seq + 1
            turns = self._thread.turns(after=first, before=last)
            self._tenant.session(self._thread.id).log_calls(turns)

    def _warn_once(self, context: Context) -> None:
        if not self._has_warned and any(w.code == "turns_trimmed" for w in context.warnings):
            self._has_warned = True
            text = f"thread {self._thread.id!r} exceeds {self.token_limit} tokens"
            warnings.warn(f"{text}; see get_context()", HierMemTrimWarning, stacklevel=4)


def _limit(llm: Any, token_limit: int | None) -> int:
    if llm is not None:
        return token_limit or int(llm.metadata.context_window * DEFAULT_TOKEN_LIMIT_RATIO)
    return DEFAULT_TOKEN_LIMIT if token_limit is None else token_limit
