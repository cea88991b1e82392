"""Storing a batch of messages: one append per thread, and what became of each message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.errors import (
    BackendError,
    BackendUnavailableError,
    ThreadNotFoundError,
    TurnConflictError,
    VersionConflictError,
)
from hiermem_core.importing.messages import MARK
from hiermem_core.importing.records import item

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core import Thread
    from hiermem_core.importing.records import Message
    from hiermem_core.importing.report import ImportItem
    from hiermem_core.models.turns import Turn

_NEVER = -1
"""A seq no thread has: an append that expects it stores nothing new."""


def store(thread: Thread, messages: Sequence[Message]) -> list[ImportItem | None]:
    """Append messages to their thread in one transaction; say why one was not stored, else `None`.

    A message that stands in the way of the others is taken out of the transaction.

    Raises:
        BackendUnavailableError: The storage is full, locked or away. Nothing was stored.
    """
    while True:
        last_seq, is_open = _end_of(thread)
        turns = [message.turn for message in messages]
        try:
            placed = thread.append(turns, expected_seq=last_seq if is_open else _NEVER)
        except VersionConflictError:
            if not is_open:
                return _apart(thread, messages) or [_continued(messages[0])]
        except TurnConflictError:
            return _apart(thread, messages) or [_conflict(messages[0])]
        except BackendUnavailableError:
            raise
        except BackendError as error:
            return _apart(thread, messages) or [_store_error(messages[0], error)]
        else:
            return list(_outcomes(messages, placed, last_seq))


def _apart(thread: Thread, messages: Sequence[Message]) -> list[ImportItem | None]:
    if len(messages) == 1:
        return []
    return [outcome for message in messages for outcome in store(thread, [message])]


def _end_of(thread: Thread) -> tuple[int, bool]:
    """Return the newest seq, and whether an import may go on from there."""
    try:
        last_seq = thread.info().last_seq
    except ThreadNotFoundError:
        return 0, True
    newest = thread.turns(last=1)
    return last_seq, all(MARK in turn.metadata for turn in newest)


def _outcomes(
    messages: Sequence[Message], placed: Sequence[Turn], last_seq: int
) -> Iterator[ImportItem | None]:
    for message, turn in zip(messages, placed, strict=True):
        if turn.seq > last_seq:
            last_seq = turn.seq
            yield None
        else:
            yield item(message.ref, message.position, "skipped", "unchanged", "")


def _continued(message: Message) -> ImportItem:
    detail = "the thread has newer turns that were not imported; import into another thread"
    return item(message.ref, message.position, "skipped", "thread_continued", detail)


def _conflict(message: Message) -> ImportItem:
    detail = "the thread holds other content under its id; edit the turn there instead"
    return item(message.ref, message.position, "skipped", "conflict", detail)


def _store_error(message: Message, error: BackendError) -> ImportItem:
    return item(message.ref, message.position, "failed", "store_error", str(error))
