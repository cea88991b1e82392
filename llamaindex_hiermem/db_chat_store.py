"""The store of LlamaIndex's `Memory` on the threads of one tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from hiermem_core import NotFoundError, Tenant, ThreadNotFoundError, Turn
from llamaindex_hiermem.dumps import dump_turns, load_turns
from llamaindex_hiermem.handles import Live, dumped_tenant, place_of, tenant_of
from llamaindex_hiermem.messages import message_to_turn, turn_to_message
from llamaindex_hiermem.reading import threads_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hiermem_core import Thread

_DUMP_VERSION = 1


class HierMemDBChatStore(Live, AsyncDBChatStore):
    """The threads of one tenant as the store of `Memory`; a key is the name of a thread.

    What a call adds, moves or deletes is stored when it returns, in one transaction. Messages come
    back equal, as fresh objects, in the order they were put. No call blocks the event loop, and no
    object belongs to one.

    Made by `tenant`, or by `location` and `tenant_id`; without both it lives in this process.

    `Memory` itself leaves its store out of its dumps, and reads and counts its whole queue with
    each put; for agents whose context is saved, use `HierMemChatMemoryBuffer`.

    Example:
        ```python
        store = HierMemDBChatStore(tenant=HierMem.open("./memory").tenant("alice"))
        memory = Memory.from_defaults(session_id="trip", chat_store=store)
        ```
    """

    _tenant: Tenant = PrivateAttr()

    def __init__(
        self,
        *,
        tenant: Tenant | None = None,
        location: str | None = None,
        tenant_id: str | None = None,
    ) -> None:
        super().__init__()
        self._tenant = tenant_of(tenant, location, tenant_id)

    @classmethod
    def class_name(cls) -> str:
        """Return the class name."""
        return "HierMemDBChatStore"

    @property
    def tenant(self) -> Tenant:
        """The tenant whose threads these are."""
        return self._tenant

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return messages in put order; none for a key that is not there.

        Args:
            status: `None`: active and archived ones.
        """
        return await self._tenant.pool.run(self._read, key, status, limit, offset)

    async def count_messages(
        self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE
    ) -> int:
        """Return how many messages a key has; reads none."""
        return await self._tenant.pool.run(self._count, key, status)

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Store a message at the end."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self,
        key: str,
        messages: Sequence[ChatMessage],
        status: MessageStatus = MessageStatus.ACTIVE,
    ) -> None:
        """Store messages at the end, in one transaction."""
        await self._tenant.pool.run(self._add, key, messages, status)

    async def set_messages(
        self,
        key: str,
        messages: Sequence[ChatMessage],
        status: MessageStatus = MessageStatus.ACTIVE,
    ) -> None:
        """Give a key these messages alone, in one transaction; all others go for good."""
        await self._tenant.pool.run(self._set, key, messages, status)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message of a seq for good and return it; `None` where there is none."""
        return await self._tenant.pool.run(self._delete_one, key, idx)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages of a status for good; `None`: all, with the key."""
        await self._tenant.pool.run(self._delete_all, key, status)

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the `n` oldest active messages for good and return them, oldest first."""
        return await self._tenant.pool.run(self._move_oldest, key, n, _delete)

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the `n` oldest active messages and return them, oldest first."""
        return await self._tenant.pool.run(self._move_oldest, key, n, _archive)

    async def get_keys(self) -> list[str]:
        """Return this tenant's keys in the order of their first use."""
        return await self._tenant.pool.run(self._keys)

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` needs, as plain JSON; messages only of a store in this process.

        Archived messages of such a store are not in it.
        """
        place = place_of(self._tenant)
        data = {"class_name": self.class_name(), "version": _DUMP_VERSION, **place}
        if place["location"] is None:
            data["threads"] = {
                key: dump_turns(self._tenant.thread(key).turns()) for key in self._keys()
            }
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the store of a dump: the same threads, or those in it.

        Raises:
            ConfigurationError: The dump's location does not exist.
        """
        store = cls(tenant=dumped_tenant(data))
        for key, turns in data.get("threads", {}).items():
            store.tenant.thread(key).append(load_turns(turns))
        return store

    def __copy__(self) -> Self:
        """Return a store on the same tenant and live service."""
        return type(self)(tenant=self._tenant)

    def _read(
        self, key: str, status: MessageStatus | None, limit: int | None, offset: int | None
    ) -> list[ChatMessage]:
        skipped = offset or 0
        first = None if limit is None else skipped + limit
        try:
            turns = self._tenant.thread(key).turns(first=first, status=_plain(status))
        except ThreadNotFoundError:
            return []
        return [turn_to_message(turn) for turn in turns[skipped:]]

    def _count(self, key: str, status: MessageStatus | None) -> int:
        try:
            return self._tenant.thread(key).count(_plain(status))
        except ThreadNotFoundError:
            return 0

    def _add(self, key: str, messages: Sequence[ChatMessage], status: MessageStatus) -> None:
        thread = self._tenant.thread(key)
        thread.append([message_to_turn(one) for one in messages], status=_plain(status) or "active")
        answers = any(message.role == MessageRole.ASSISTANT for message in messages)
        if answers and status == MessageStatus.ACTIVE:
            thread.save_context()

    def _set(self, key: str, messages: Sequence[ChatMessage], status: MessageStatus) -> None:
        turns = [message_to_turn(message) for message in messages]
        self._tenant.thread(key).replace(turns, old="delete", status=_plain(status) or "active")

    def _delete_one(self, key: str, seq: int) -> ChatMessage | None:
        thread = self._tenant.thread(key)
        try:
            found = thread.turns(after=seq - 1, before=seq + 1, status=None)
            gone = [
                t for t in found if thread.delete_turns([str(t.id)], status=t.status)[str(t.id)]
            ]
        except ThreadNotFoundError:
            return None
        return turn_to_message(gone[0]) if gone else None

    def _delete_all(self, key: str, status: MessageStatus | None) -> None:
        self._tenant.thread(key).delete(_plain(status))

    def _move_oldest(
        self, key: str, n: int, move: Callable[[Thread, Sequence[str]], None]
    ) -> list[ChatMessage]:
        thread = self._tenant.thread(key)
        while True:
            try:
                turns: Sequence[Turn] = thread.turns(first=max(0, n))
                if turns:
                    move(thread, [str(turn.id) for turn in turns])
            except ThreadNotFoundError:
                return []
            except NotFoundError:  # another took some of them meanwhile
                continue
            return [turn_to_message(turn) for turn in turns]

    def _keys(self) -> list[str]:
        return [info.thread_id for info in threads_of(self._tenant)]


def _plain(status: MessageStatus | None) -> Any:
    return None if status is None else MessageStatus(status).value


def _delete(thread: Thread, ids: Sequence[str]) -> None:
    thread.delete_turns(ids)


def _archive(thread: Thread, ids: Sequence[str]) -> None:
    thread.append((), removing=ids)
