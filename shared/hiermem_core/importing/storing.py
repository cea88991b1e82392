"""Storing a batch of messages: one append per thread, and what became of each message."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from hiermem_core.errors import (
    BackendError,
    BackendUnavailableError,
    InvalidInputError,
    QuotaExceededError,
    RedactionError,
    ThreadNotFoundError,
    TurnConflictError,
    VersionConflictError,
)
from hiermem_core.importing.messages import MARK
from hiermem_core.importing.reading import record_error
from hiermem_core.importing.records import RecordError, failed, item

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core import Thread
    from hiermem_core.errors import HierMemError
    from hiermem_core.importing.records import Message
    from hiermem_core.importing.report import ImportItem, Reason
    from hiermem_core.models.turns import Turn

MISSHAPEN = (InvalidInputError, TypeError, ValueError, RecursionError)
"""What appending raises for a message that no turn can be; what is read is not checked twice."""

_NEVER = -1
"""A seq no thread has: an append that expects it stores nothing new."""


def store(
    thread: Thread, messages: Sequence[Message], *, has_diverged: bool = False
) -> list[ImportItem | None]:
    """Append messages to their thread; say why one was not stored, else `None`.

    Those of one status that follow each other are one transaction. A message that stands in the way
    of the others is taken out of it.

    Args:
        has_diverged: The thread holds another content at an earlier position of this source, so it
            is another conversation, and messages named by their position only are not stored.

    Raises:
        BackendUnavailableError: The storage is full, locked or away. Nothing was stored.
    """
    outcomes: list[ImportItem | None] = []
    for _, run in groupby(messages, key=lambda message: message.is_archived):
        some = list(run)
        outcomes += _store_run(thread, some, has_diverged=has_diverged)
        has_diverged = has_diverged or has_conflict(messages[: len(outcomes)], outcomes)
    return outcomes


def _store_run(
    thread: Thread, messages: Sequence[Message], *, has_diverged: bool = False
) -> list[ImportItem | None]:
    if has_diverged and any(not message.has_id for message in messages):
        return _apart(thread, messages, has_diverged=True)
    while True:
        last_seq, is_open = _end_of(thread)
        try:
            placed = _append(thread, messages, last_seq, is_open=is_open)
        except VersionConflictError:
            if not is_open:
                return _apart(thread, messages) or [continued(messages[0])]
        except TurnConflictError:
            return _apart(thread, messages) or [conflict(messages[0])]
        except MISSHAPEN as error:
            return _apart(thread, messages) or [misshapen(messages[0], error)]
        except BackendUnavailableError:
            raise
        except (QuotaExceededError, RedactionError, BackendError) as error:
            return _apart(thread, messages) or [refused(messages[0], error)]
        else:
            return list(_outcomes(messages, placed, last_seq))


def _append(
    thread: Thread, messages: Sequence[Message], last_seq: int, *, is_open: bool
) -> Sequence[Turn]:
    turns = [message.turn for message in messages]
    if not messages[0].is_archived:
        return thread.append(turns, expected_seq=last_seq if is_open else _NEVER)
    known = thread.known(str(turn.id) for turn in turns)
    fresh = [turn for turn in turns if turn.id not in known]
    if fresh and not is_open:
        raise VersionConflictError(expected=_NEVER, actual=last_seq)
    return thread.append(fresh, status="archived")


def has_conflict(messages: Sequence[Message], outcomes: Sequence[ImportItem | None]) -> bool:
    """Tell whether a message named by its position met other content there."""
    pairs = zip(messages, outcomes, strict=True)
    return any(
        not message.has_id and outcome is not None and outcome.reason == "conflict"
        for message, outcome in pairs
    )


def _apart(
    thread: Thread, messages: Sequence[Message], *, has_diverged: bool = False
) -> list[ImportItem | None]:
    """Store halves of what cannot be stored as one; nothing is returned for a message alone."""
    if has_diverged:
        return [
            outcome
            for message in messages
            for outcome in (_store_run(thread, [message]) if message.has_id else [another(message)])
        ]
    if len(messages) == 1:
        return []
    first, second = messages[: len(messages) // 2], messages[len(messages) // 2 :]
    outcomes = _store_run(thread, first)
    return outcomes + _store_run(thread, second, has_diverged=has_conflict(first, outcomes))


def _end_of(thread: Thread) -> tuple[int, bool]:
    """Return the newest seq, and whether an import may go on from there."""
    try:
        last_seq = thread.info().last_seq
    except ThreadNotFoundError:
        return 0, True
    newest = thread.turns(last=1, status=None)
    return last_seq, all(MARK in turn.metadata for turn in newest)


def _outcomes(
    messages: Sequence[Message], placed: Sequence[Turn], last_seq: int
) -> Iterator[ImportItem | None]:
    fresh = {turn.id for turn in placed if turn.seq > last_seq}
    for message in messages:
        if message.turn.id in fresh:
            fresh.remove(message.turn.id)
            yield None
        else:
            yield unchanged(message)


def unchanged(message: Message) -> ImportItem:
    """Return what a report says of a message that is stored already."""
    return item(message.ref, message.position, "skipped", "unchanged", "")


def continued(message: Message) -> ImportItem:
    """Return what a report says of a message whose thread went on without its source."""
    detail = "the thread has newer turns that were not imported; import into another thread"
    return item(message.ref, message.position, "skipped", "thread_continued", detail)


def conflict(message: Message) -> ImportItem:
    """Return what a report says of a message in whose place another stands."""
    detail = "the thread holds other content under its id; edit the turn there instead"
    return item(message.ref, message.position, "skipped", "conflict", detail)


def another(message: Message) -> ImportItem:
    """Return what a report says of a message of another conversation of the thread's name."""
    detail = "another conversation has this thread's name; add --thread NAME"
    return item(message.ref, message.position, "skipped", "conflict", detail)


def misshapen(message: Message, error: Exception) -> ImportItem:
    """Return what a report says of a message that no turn can be."""
    if isinstance(error, InvalidInputError):
        reason = record_error(error)
    else:
        reason = RecordError("invalid_record", "is not shaped like a message; mend it")
    return failed(reason, ref=message.ref, position=message.position)


def refused(message: Message, error: HierMemError) -> ImportItem:
    """Return what a report says of a message that the core refuses."""
    reason: Reason = "store_error"
    if isinstance(error, QuotaExceededError):
        reason = "quota_exceeded"
    elif isinstance(error, RedactionError):
        reason = "rejected_by_redactor"
    return item(message.ref, message.position, "failed", reason, str(error))
