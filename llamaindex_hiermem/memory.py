"""Chat memory for LlamaIndex: `ChatMemoryBuffer`, on disk and scoped."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from llama_index.core.base.llms.types import MessageRole
from llama_index.core.bridge.pydantic import Field, PrivateAttr, model_validator
from llama_index.core.memory.types import DEFAULT_CHAT_STORE_KEY, BaseMemory
from llama_index.core.utils import get_tokenizer

from hiermem_core import (
    AsyncHierMem,
    Context,
    HierMem,
    MissingIdentityError,
    Tenant,
    Thread,
    ThreadNotFoundError,
    Turn,
    dump_json,
)
from llamaindex_hiermem.contexts import (
    compat_context,
    core_context,
    counting_with,
    of_messages,
)
from llamaindex_hiermem.dumps import (
    MEMORY,
    PRIVATE_TENANT,
    dump_turns,
    hiermem_of,
    thread_of,
    turns_of,
)
from llamaindex_hiermem.messages import message_to_turn, turn_to_message
from llamaindex_hiermem.window import Count

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage

DEFAULT_TOKEN_LIMIT = 3000
DEFAULT_TOKEN_LIMIT_RATIO = 0.75

_DUMP_VERSION = 1

R = TypeVar("R")

Counting = Literal["compat", "core"]


class HierMemTrimWarning(UserWarning):
    """A memory left messages out to fit its token limit; told once per memory object."""


class HierMemChatMemoryBuffer(BaseMemory):
    """`ChatMemoryBuffer` by changing one line; durable and scoped by naming tenant and thread.

    Whatever is put is stored before `put` returns. `get` never writes, never calls a model, and
    reads the window only, whatever the length of the thread. Messages come back equal to what was
    put, as fresh objects. Making a memory never wipes a thread: only `set` and `reset` do, and
    they archive. One object serves threads, event loops and streaming answers at once.

    Attributes:
        token_limit: Tokens `get` may return.
        tokenizer_fn: Counts in compat mode: the length of what it returns.
        counting: `"compat"` keeps `ChatMemoryBuffer`'s rule: text only, by `tokenizer_fn`.
            `"core"` counts everything, keeps system messages, and never exceeds the limit.
    """

    token_limit: int
    tokenizer_fn: Callable[[str], list[Any]] = Field(
        default_factory=lambda: _default_tokenizer, exclude=True
    )
    counting: Counting = "compat"

    _tenant: Tenant = PrivateAttr()
    _thread: Thread = PrivateAttr()
    _owned: HierMem | None = PrivateAttr(default=None)
    _counter: tuple[Callable[[str], list[Any]], Count] | None = PrivateAttr(default=None)
    _has_warned: bool = PrivateAttr(default=False)

    def __init__(
        self,
        *,
        tenant: Tenant | None = None,
        chat_store_key: str | None = None,
        owned: HierMem | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._owned = owned
        if tenant is None:
            self._owned = HierMem.open(":memory:")
            tenant = self._owned.tenant(PRIVATE_TENANT)
            chat_store_key = chat_store_key or DEFAULT_CHAT_STORE_KEY
        if not chat_store_key:
            raise MissingIdentityError("chat_store_key")
        self._tenant = tenant
        self._thread = tenant.thread(chat_store_key)

    @model_validator(mode="before")
    @classmethod
    def _check(cls, values: Any) -> Any:
        if values.get("token_limit", -1) < 1:
            raise ValueError("Token limit must be set and greater than 0.")
        if values.get("tokenizer_fn") is None:
            return {name: value for name, value in values.items() if name != "tokenizer_fn"}
        return values

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises it."""
        return "HierMemChatMemoryBuffer"

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
        **kwargs: Any,
    ) -> Self:
        """Make a memory.

        Args:
            chat_history: A list that is not empty is an explicit `set`; `[]` touches nothing.
            llm: Gives three quarters of its context window as the limit.
            chat_store_key: The thread; must be named together with `tenant`.
            token_limit: Default 3000 without `llm`.
            tenant: Whose memory this is. Without it the memory lives in this process.

        Raises:
            MissingIdentityError: A tenant without a thread.
            TypeError: A `chat_store` of LlamaIndex; the text shows how to move its messages.
            ValueError: Unknown arguments, or a limit below 1.
        """
        if kwargs:
            raise ValueError(f"Unexpected kwargs: {kwargs}")
        if chat_store is not None:
            raise TypeError(
                f"chat_store must be HierMem's, not {type(chat_store).__name__}; to move its "
                "messages: memory.set(chat_store.get_messages(key))"
            )
        memory = cls(
            tenant=tenant,
            chat_store_key=chat_store_key,
            token_limit=_limit(llm, token_limit),
            tokenizer_fn=tokenizer_fn,
            counting=counting,
        )
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
            input: Kept for recall; the window does not depend on it.
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
        del input, kwargs
        return of_messages(self._build(initial_token_count))

    def get_all(self) -> list[ChatMessage]:
        """Return every message of the thread, in order."""
        return [turn_to_message(turn) for turn in self._turns()]

    def put(self, message: ChatMessage) -> None:
        """Store a message; it survives a kill when this returns."""
        self.put_messages([message])

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Store messages in one transaction; an answer is learned from in the background."""
        self._thread.append([message_to_turn(message) for message in messages])
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

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return what `from_dict` needs, as plain JSON; turns only of a memory in this process."""
        del kwargs
        location = self._tenant.location
        in_process = location == MEMORY
        data = {
            "class_name": self.class_name(),
            "version": _DUMP_VERSION,
            "location": None if in_process else location,
            "tenant": self._tenant.name,
            "thread_id": self._thread.id,
            "token_limit": self.token_limit,
            "counting": self.counting,
        }
        return data | ({"messages": dump_turns(self._turns())} if in_process else {})

    def to_string(self) -> str:
        """Return `to_dict` as JSON text."""
        return dump_json(self.to_dict())

    def to_json(self, **kwargs: Any) -> str:
        """Return `to_dict` as JSON text."""
        del kwargs
        return self.to_string()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **kwargs: Any) -> Self:
        """Return the memory of a dump: the same thread, or for a memory in process its turns.

        Dumps of `ChatMemoryBuffer` become a memory in this process. Turns in a dump fill an empty
        thread only: a thread that went on since is not wiped.

        Args:
            tenant: Use this handle instead of opening the dump's location.
            tokenizer_fn: Counts in compat mode; functions are not in dumps.

        Raises:
            ConfigurationError: The dump's location does not exist.
        """
        tenant, owned = kwargs.get("tenant"), None
        if tenant is None:
            hiermem, owned = hiermem_of(data.get("location"))
            tenant = hiermem.tenant(data.get("tenant") or PRIVATE_TENANT)
        memory = cls(
            tenant=tenant,
            chat_store_key=thread_of(data),
            token_limit=data.get("token_limit", DEFAULT_TOKEN_LIMIT),
            counting=data.get("counting", "compat"),
            tokenizer_fn=kwargs.get("tokenizer_fn"),
            owned=owned,
        )
        turns = turns_of(data)
        if turns and not memory._turns():
            memory._thread.append(turns)
        return memory

    @classmethod
    def from_string(cls, json_str: str, **kwargs: Any) -> Self:
        """Return the memory of a JSON text."""
        return cls.from_dict(json.loads(json_str), **kwargs)

    @classmethod
    def from_json(cls, data_str: str, **kwargs: Any) -> Self:
        """Return the memory of a JSON text."""
        return cls.from_string(data_str, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by `to_dict`."""
        return type(self).from_dict, (self.to_dict(),)

    def __copy__(self) -> Self:
        """Return a memory on the same thread and live service."""
        return type(self)(
            tenant=self._tenant,
            chat_store_key=self._thread.id,
            owned=self._owned,
            **{name: getattr(self, name) for name in type(self).model_fields},
        )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a memory on the same thread and live service."""
        return self.__copy__()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a memory on the same thread and live service, with some fields replaced."""
        del deep
        twin = self.__copy__()
        for name, value in (update or {}).items():
            setattr(twin, name, value)
        return twin

    async def _offload(self, function: Callable[[], R]) -> R:
        return await self._tenant.pool.run(function)

    def _count(self) -> Count:
        tokenizer = self.tokenizer_fn
        if self._counter is None or self._counter[0] is not tokenizer:
            self._counter = tokenizer, counting_with(tokenizer)
        return self._counter[1]

    def _turns(self) -> Sequence[Turn]:
        try:
            return self._thread.turns()
        except ThreadNotFoundError:
            return []

    def _build(self, initial: int) -> Context:
        if self.counting == "compat":
            return compat_context(
                self._thread, limit=self.token_limit, initial=initial, count=self._count()
            )
        context = core_context(self._thread, limit=self.token_limit, initial=initial)
        if not self._has_warned and any(w.code == "turns_trimmed" for w in context.warnings):
            self._has_warned = True
            text = f"thread {self._thread.id!r} exceeds {self.token_limit} tokens"
            warnings.warn(f"{text}; see get_context()", HierMemTrimWarning, stacklevel=4)
        return context


def _default_tokenizer(text: str) -> list[Any]:
    """Tokenize with LlamaIndex's own tokenizer, built at the first call."""
    return list(get_tokenizer()(text))


def _limit(llm: Any, token_limit: int | None) -> int:
    if llm is not None:
        return token_limit or int(llm.metadata.context_window * DEFAULT_TOKEN_LIMIT_RATIO)
    return DEFAULT_TOKEN_LIMIT if token_limit is None else token_limit
