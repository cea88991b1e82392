"""A memory bound to one thread: how it is made, copied, dumped and closed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from llama_index.core.bridge.pydantic import Field, PrivateAttr, model_validator
from llama_index.core.memory.types import DEFAULT_CHAT_STORE_KEY, BaseMemory

from hiermem_core import HierMem, MissingIdentityError, Tenant, Thread, dump_json
from llamaindex_hiermem.counting import default_tokenizer
from llamaindex_hiermem.dumps import dump_turns, thread_of, turns_of
from llamaindex_hiermem.handles import PRIVATE_TENANT, Live, hiermem_of, place_of
from llamaindex_hiermem.reading import all_turns
from llamaindex_hiermem.recalling import TurnRecall

DEFAULT_TOKEN_LIMIT = 3000

_DUMP_VERSION = 1

Counting = Literal["compat", "core"]


class BoundMemory(Live, BaseMemory):
    """What every memory on a thread has: its handles, its copies and its dumps.

    Copies are on the same thread and the same live service. A dump names the place of the thread;
    of a memory in this process it holds the turns.

    Attributes:
        token_limit: Tokens a context may have.
        tokenizer_fn: Counts in compat mode: the length of what it returns.
        counting: `"compat"` or `"core"`.
        recall_k: Recalled entries and turns at most; 0: nothing is recalled.
        log_steps: Log each tool call as a step of the session that bears the thread's name.
    """

    token_limit: int
    tokenizer_fn: Callable[[str], list[Any]] = Field(
        default_factory=lambda: default_tokenizer, exclude=True
    )
    counting: Counting = "compat"
    recall_k: int = Field(default=0, ge=0)
    log_steps: bool = False

    _tenant: Tenant = PrivateAttr()
    _thread: Thread = PrivateAttr()
    _owned: HierMem | None = PrivateAttr(default=None)
    _recall: TurnRecall = PrivateAttr()

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
        self._recall = TurnRecall(tenant, self._thread)

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

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return what `from_dict` needs, as plain JSON; turns only of a memory in this process."""
        del kwargs
        place = place_of(self._tenant)
        in_process = place["location"] is None
        data = {
            "class_name": self.class_name(),
            "version": _DUMP_VERSION,
            **place,
            "thread_id": self._thread.id,
            "token_limit": self.token_limit,
            "counting": self.counting,
            "recall_k": self.recall_k,
        } | ({"log_steps": True} if self.log_steps else {})
        return data | ({"messages": dump_turns(all_turns(self._thread))} if in_process else {})

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
            recall_k=data.get("recall_k", 0),
            log_steps=data.get("log_steps", False),
            tokenizer_fn=kwargs.get("tokenizer_fn"),
            owned=owned,
        )
        turns = turns_of(data)
        if turns and not all_turns(memory._thread):
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

    def __copy__(self) -> Self:
        """Return a memory on the same thread and live service."""
        twin = type(self)(
            tenant=self._tenant,
            chat_store_key=self._thread.id,
            owned=self._owned,
            **{name: getattr(self, name) for name in type(self).model_fields},
        )
        twin._recall = self._recall  # noqa: SLF001 - another of its kind
        return twin
