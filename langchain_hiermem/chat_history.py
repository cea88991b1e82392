"""A LangChain chat message history on a HierMem thread."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage
from langchain_core.runnables import ConfigurableFieldSpec

from hiermem_core import (
    HierMem,
    NotFoundError,
    ThreadNotFoundError,
    TurnConflictError,
)
from langchain_hiermem.messages import merge_chunks, turn_to_message
from langchain_hiermem.naming import further
from langchain_hiermem.runs import drafts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hiermem_core import Context, Thread, Turn, TurnDraft

REMOVE_ALL = "__remove_all__"
"""LangGraph's id of a `RemoveMessage` that means every message."""

HISTORY_FIELDS: list[ConfigurableFieldSpec] = [
    ConfigurableFieldSpec(
        id="tenant_id",
        annotation=str,
        name="Tenant",
        description="Whose memory this is.",
        is_shared=True,
    ),
    ConfigurableFieldSpec(
        id="thread_id",
        annotation=str,
        name="Thread",
        description="Which conversation this is.",
        is_shared=True,
    ),
]
"""For `RunnableWithMessageHistory(..., history_factory_config=HISTORY_FIELDS)`."""

_logger = logging.getLogger("langchain_hiermem")
_failed_writes: WeakKeyDictionary[HierMem, dict[tuple[str, str], BaseException]] = (
    WeakKeyDictionary()
)


class HierMemChatMessageHistory(BaseChatMessageHistory):
    """The whole log of one thread, in order, on disk.

    `messages` is never trimmed; `window` gives the view that fits a token budget. Messages come
    back equal to what was added, by another process too. A view: it opens and closes nothing, does
    nothing when made, and may be made anew for each call.

    `RunnableWithMessageHistory` swallows an error raised while saving. Such an error is logged, a
    failing storage is shown by `hiermem.health()`, and, with `strict`, the next read raises it.
    In bare-message mode it also loses a user message when two runs share a thread: give it
    `history_messages_key`.

    Args:
        strict: Raise a failed write again at the next read of this thread.

    Raises:
        MissingIdentityError: Tenant or thread is empty; neither has a default.

    Example:
        Setup: `pip install "hiermem-core[langchain]"`. Instantiate:
        ```python
        history = HierMemChatMessageHistory(hiermem, tenant_id="alice", thread_id="trip")
        ```
        Use:
        ```python
        history.add_user_message("Where were we?")
        history.window(4000)
        ```
        Async:
        ```python
        await history.aget_messages()
        ```
    """

    def __init__(
        self, hiermem: HierMem, *, tenant_id: str, thread_id: str, strict: bool = False
    ) -> None:
        super().__init__()
        self._hiermem = hiermem
        self._thread: Thread = hiermem.tenant(tenant_id).thread(thread_id)
        self._key = (tenant_id, thread_id)
        self._strict = strict

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # a field there
        """Every message of the thread, in order; a fresh list, empty for a new thread."""
        self._raise_failed_write()
        return [turn_to_message(turn) for turn in self._turns()]

    def window(self, budget: int) -> list[BaseMessage]:
        """Return the messages of the newest whole exchanges that fit `budget` tokens.

        System and pinned messages are always in it. A thread that is not there yet gives none.

        Raises:
            BudgetExceededError: Not even a shortened current exchange fits.
        """
        context = self.context(budget)
        return [] if context is None else [viewed(turn) for turn in context.messages]

    def context(self, budget: int) -> Context | None:
        """Return what `window` is made of: with warnings of what was left out, and the receipt.

        `None` for a thread that is not there yet.

        Raises:
            BudgetExceededError: Not even a shortened current exchange fits.
        """
        self._raise_failed_write()
        try:
            return self._thread.context(budget_tokens=budget, recall=False)
        except ThreadNotFoundError:
            return None

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages in one transaction, in order.

        A message whose id is stored with equal content is stored once. Chunks are merged. A
        `RemoveMessage` takes its message out of the thread. An answer is learned from in the
        background, where the HierMem has a chat model.

        Raises:
            ValueError: A `RemoveMessage` names no message of the thread. Nothing was stored.
        """
        try:
            self._store(messages)
        except Exception as error:  # whatever fails to be saved is raised or logged
            _logger.error(  # noqa: TRY400 - a traceback could hold content
                "messages of thread %s were not stored: %s", self._key[1], type(error).__name__
            )
            if self._strict:
                _failed_writes.setdefault(self._hiermem, {})[self._key] = error
            raise
        if any(isinstance(message, AIMessage) for message in messages):
            self._thread.save_context()

    def clear(self) -> None:
        """Delete this thread's turns, and nothing else."""
        self._thread.delete()

    async def aget_messages(self) -> list[BaseMessage]:
        """Return `messages` without blocking the loop."""
        return await self._hiermem.pool.run(lambda: self.messages)

    async def awindow(self, budget: int) -> list[BaseMessage]:
        """Return `window` without blocking the loop."""
        return await self._hiermem.pool.run(self.window, budget)

    async def acontext(self, budget: int) -> Context | None:
        """Return `context` without blocking the loop."""
        return await self._hiermem.pool.run(self.context, budget)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Do `add_messages` without blocking the loop."""
        await self._hiermem.pool.run(self.add_messages, messages)

    async def aclear(self) -> None:
        """Do `clear` without blocking the loop."""
        await self._hiermem.pool.run(self.clear)

    def _turns(self) -> Sequence[Turn]:
        try:
            return self._thread.turns()
        except ThreadNotFoundError:
            return []

    def _store(self, messages: Sequence[BaseMessage]) -> None:
        """Store; read the thread again if a message to remove was removed meanwhile."""
        full = merge_chunks(messages)
        is_removing = any(isinstance(message, RemoveMessage) for message in full)
        while True:
            stored = self._turns() if is_removing else ()
            fresh, removing = parted(full, {str(t.id): turn_to_message(t).id for t in stored})
            try:
                self._append(drafts_of(fresh, self._thread.id), removing)
            except NotFoundError:
                continue
            return

    def _append(self, drafts: Sequence[TurnDraft], removing: Sequence[str]) -> None:
        """Append; a message whose id stands for another content is a further turn."""
        while True:
            try:
                self._thread.append(drafts, removing=removing)
            except TurnConflictError as conflict:
                drafts = [
                    further(draft) if place in conflict.places else draft
                    for place, draft in enumerate(drafts)
                ]
            else:
                return

    def _raise_failed_write(self) -> None:
        if not self._strict:
            return
        error = _failed_writes.get(self._hiermem, {}).pop(self._key, None)
        if error is not None:
            raise error


def history_factory(
    hiermem: HierMem, *, strict: bool = False
) -> Callable[[str, str], HierMemChatMessageHistory]:
    """Return the factory that `RunnableWithMessageHistory` asks for; it is cheap and does no I/O.

    Example:
        ```python
        RunnableWithMessageHistory(
            chain,
            history_factory(hiermem),
            history_factory_config=HISTORY_FIELDS,
            input_messages_key="question",
            history_messages_key="history",
        )
        ```
    """

    def factory(tenant_id: str, thread_id: str) -> HierMemChatMessageHistory:
        return HierMemChatMessageHistory(
            hiermem, tenant_id=tenant_id, thread_id=thread_id, strict=strict
        )

    return factory


def viewed(turn: Turn) -> BaseMessage:
    """Return the message of a turn in a window; a shortened one keeps its own id."""
    message = turn_to_message(turn)
    if turn.origin is not None and turn.origin.is_stale:
        whole = replace(turn, origin=replace(turn.origin, is_stale=False))
        message.id = turn_to_message(whole).id
    return message


def parted(
    messages: Sequence[BaseMessage], stored: Mapping[str, str | None]
) -> tuple[list[BaseMessage], list[str]]:
    """Return the messages to add, and the ids of the turns to remove.

    Args:
        stored: The message id of each stored turn, by turn id.

    Raises:
        ValueError: A `RemoveMessage` names no message that is stored or comes before it.
    """
    fresh: list[BaseMessage] = []
    removing: list[str] = []
    for message in messages:
        if not isinstance(message, RemoveMessage):
            fresh.append(message)
            continue
        is_all = message.id == REMOVE_ALL
        named = [turn_id for turn_id, name in stored.items() if is_all or name == message.id]
        kept = [one for one in fresh if not is_all and one.id != message.id]
        if not (is_all or named or len(kept) < len(fresh)):
            raise ValueError(f"no message has the id {message.id!r}; read the thread for ids")
        fresh = kept
        removing += named
    return fresh, removing
