"""A chat store of LlamaIndex on the threads of one tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr, model_serializer
from llama_index.core.storage.chat_store import BaseChatStore, loading

from hiermem_core import (
    NotFoundError,
    Tenant,
    Thread,
    Turn,
    VersionConflictError,
)
from llamaindex_hiermem.dumps import dump_turns, load_turns
from llamaindex_hiermem.handles import Live, dumped_tenant, place_of, tenant_of
from llamaindex_hiermem.messages import message_to_turn, turn_to_message
from llamaindex_hiermem.reading import all_turns, threads_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DUMP_VERSION = 1


class HierMemChatStore(Live, BaseChatStore):
    """The threads of one tenant as a `BaseChatStore`; a key is the name of a thread.

    What is added is stored when the call returns. Messages come back equal, as fresh objects. A
    tenant's keys are its own: another tenant's store has none of them. It never writes a file
    anew and never keeps a caller's list.

    Made by `tenant`, or by `location` and `tenant_id`; without both it lives in this process, and
    only then its dump holds the messages.

    Attributes:
        on_delete: `"archive"`: what is deleted stays readable as archived turns. `"purge"`: it is
            deleted for good.

    Example:
        ```python
        store = HierMemChatStore(tenant=HierMem.open("./memory").tenant("alice"))
        memory = ChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key="trip")
        ```
    """

    on_delete: Literal["archive", "purge"] = "archive"

    _tenant: Tenant = PrivateAttr()

    def __init__(
        self,
        *,
        tenant: Tenant | None = None,
        location: str | None = None,
        tenant_id: str | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._tenant = tenant_of(tenant, location, tenant_id)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises it."""
        return "HierMemChatStore"

    @property
    def tenant(self) -> Tenant:
        """The tenant whose threads these are."""
        return self._tenant

    def set_messages(self, key: str, messages: Sequence[ChatMessage]) -> None:
        """Give a key these messages in one transaction; the old ones are archived, or purged."""
        thread, turns = self._thread(key), [message_to_turn(message) for message in messages]
        if self.on_delete == "purge":
            thread.replace(turns, old="delete")
        else:
            thread.replace(turns)

    def get_messages(self, key: str, **kwargs: Any) -> list[ChatMessage]:
        """Return the messages of a key, in order; none for a key that is not there."""
        del kwargs
        return [turn_to_message(turn) for turn in all_turns(self._thread(key))]

    def add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Store a message at the end, or before the one that stands at `idx`.

        Those behind it keep their ids and get new places; the old places are archived.
        """
        thread, turn = self._thread(key), message_to_turn(message)
        while idx is not None:
            turns = all_turns(thread)
            behind = turns[idx:]
            ids = [str(one.id) for one in behind]
            last_seq = turns[-1].seq if turns else None
            try:
                thread.append([turn, *behind], removing=ids, expected_seq=last_seq)
            except (VersionConflictError, NotFoundError):
                continue
            return
        thread.append([turn])
        if message.role == MessageRole.ASSISTANT:
            thread.save_context()

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Empty a key and return what it had; `None` where that is nothing."""
        return self._removed(key, slice(None))

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message at a place and return it; `None` where there is none."""
        removed = self._removed(key, idx)
        return removed[0] if removed else None

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the newest message and return it; `None` where there is none."""
        return self.delete_message(key, -1)

    def purge(self, key: str) -> bool:
        """Delete a key for good, archived messages too; say whether there was one."""
        return self._thread(key).delete()

    def get_keys(self) -> list[str]:
        """Return this tenant's keys that have messages, in the order of their first use."""
        return [info.thread_id for info in threads_of(self._tenant) if info.turns]

    async def aset_messages(self, key: str, messages: Sequence[ChatMessage]) -> None:
        """Do `set_messages` without blocking the loop."""
        await self._tenant.pool.run(self.set_messages, key, messages)

    async def aget_messages(self, key: str, **kwargs: Any) -> list[ChatMessage]:
        """Do `get_messages` without blocking the loop."""
        return await self._tenant.pool.run(self.get_messages, key, **kwargs)

    async def async_add_message(
        self, key: str, message: ChatMessage, idx: int | None = None
    ) -> None:
        """Do `add_message` without blocking the loop; LlamaIndex spells it so."""
        await self._tenant.pool.run(self.add_message, key, message, idx)

    aadd_message = async_add_message

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """Do `delete_messages` without blocking the loop."""
        return await self._tenant.pool.run(self.delete_messages, key)

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Do `delete_message` without blocking the loop."""
        return await self._tenant.pool.run(self.delete_message, key, idx)

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """Do `delete_last_message` without blocking the loop."""
        return await self._tenant.pool.run(self.delete_last_message, key)

    async def apurge(self, key: str) -> bool:
        """Do `purge` without blocking the loop."""
        return await self._tenant.pool.run(self.purge, key)

    async def aget_keys(self) -> list[str]:
        """Do `get_keys` without blocking the loop."""
        return await self._tenant.pool.run(self.get_keys)

    @model_serializer(mode="wrap")
    def custom_model_dump(self, handler: Any, info: Any) -> dict[str, Any]:
        """Return what `from_dict` needs, as plain JSON; turns only of a store in this process."""
        del handler, info
        place = place_of(self._tenant)
        data = {"class_name": self.class_name(), "version": _DUMP_VERSION, **place}
        data["on_delete"] = self.on_delete
        if place["location"] is None:
            data["threads"] = {
                key: dump_turns(all_turns(self._thread(key))) for key in self.get_keys()
            }
        return data

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return what `from_dict` needs, as plain JSON; turns only of a store in this process."""
        del kwargs
        return self.model_dump()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **kwargs: Any) -> Self:
        """Return the store of a dump: the same threads, or those in it.

        Args:
            tenant: Use this handle instead of opening the dump's location.

        Raises:
            ConfigurationError: The dump's location does not exist.
        """
        tenant = kwargs.get("tenant") or dumped_tenant(data)
        store = cls(tenant=tenant, on_delete=data.get("on_delete", "archive"))
        for key, turns in data.get("threads", {}).items():
            thread = store._thread(key)
            if not all_turns(thread):
                thread.append(load_turns(turns))
        return store

    def __copy__(self) -> Self:
        """Return a store on the same tenant and live service."""
        return type(self)(tenant=self._tenant, on_delete=self.on_delete)

    def _thread(self, key: str) -> Thread:
        return self._tenant.thread(key)

    def _removed(self, key: str, place: int | slice) -> list[ChatMessage] | None:
        """Remove turns and return their messages; `None` where there are none."""
        thread = self._thread(key)
        while turns := _at(all_turns(thread), place):
            ids = [str(turn.id) for turn in turns]
            try:
                if self.on_delete == "purge":
                    thread.delete_turns(ids)
                else:
                    thread.append((), removing=ids)
            except NotFoundError:
                continue
            return [turn_to_message(turn) for turn in turns]
        return None


def _at(turns: Sequence[Turn], place: int | slice) -> Sequence[Turn]:
    if isinstance(place, slice):
        return turns[place]
    return [turns[place]] if -len(turns) <= place < len(turns) else []


_recognized: dict[str, Any] = loading.RECOGNIZED_CHAT_STORES
_recognized.setdefault(HierMemChatStore.class_name(), HierMemChatStore)
