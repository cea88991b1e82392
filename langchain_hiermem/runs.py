"""The messages of a run: which are not stored yet, and what of them is a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.messages import RemoveMessage, SystemMessage

from langchain_hiermem.messages import message_to_turn
from langchain_hiermem.naming import turn_id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from langchain_core.messages import BaseMessage

    from hiermem_core import TurnDraft

_STANDING = frozenset({"system", "developer"})
_PAGE = 64


def start_of_run(
    messages: Sequence[BaseMessage],
    thread_id: str,
    known: Callable[[Collection[str]], Collection[str]],
) -> int:
    """Return the place after the newest message that is stored; 0 where none is.

    Args:
        known: Tells which of some turn ids the thread has; asked for the newest messages first,
            and no further than it takes.
    """
    end = len(messages)
    while end > 0:
        start = max(0, end - _PAGE)
        page = enumerate(messages[start:end], start)
        places = {turn_id_of(message, thread_id): place for place, message in page}
        found = known([turn_id for turn_id in places if turn_id is not None])
        if found:
            return 1 + max(places[turn_id] for turn_id in found)
        end = start
    return 0


def start_of_last_exchange(messages: Sequence[BaseMessage]) -> int:
    """Return the place of the newest user message; 0 where there is none."""
    places = [place for place, message in enumerate(messages) if is_question(message)]
    return places[-1] if places else 0


def is_question(message: BaseMessage) -> bool:
    """Tell whether a message is what a user said."""
    return message.type == "human" and not is_summary(message)


def is_summary(message: BaseMessage) -> bool:
    """Tell whether a message stands for others that LangChain's summarization took out."""
    return bool(message.additional_kwargs.get("lc_source") == "summarization")


def drafts_of(messages: Iterable[BaseMessage], thread_id: str) -> list[TurnDraft]:
    """Return the messages as turns, in order; a removal is none."""
    return [
        message_to_turn(message, turn_id=turn_id_of(message, thread_id))
        for message in messages
        if not isinstance(message, RemoveMessage)
    ]


def shown_drafts_of(messages: Iterable[BaseMessage], thread_id: str) -> list[TurnDraft]:
    """Return the messages as turns that are shown and not stored: without what no model reads."""
    return drafts_of([without_artifact(message) for message in messages], thread_id)


def without_artifact(message: BaseMessage) -> BaseMessage:
    """Return the message without what a tool keeps from the model; that may be large."""
    if getattr(message, "artifact", None) is None:
        return message
    return message.model_copy(update={"artifact": None})


def to_store(messages: Iterable[BaseMessage], thread_id: str) -> list[TurnDraft]:
    """Return what of a run becomes turns: what users, models and tools said."""
    said = [message for message in messages if not is_summary(message)]
    return [draft for draft in drafts_of(said, thread_id) if draft.role not in _STANDING]


def instructions(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the system messages among messages."""
    return [message for message in messages if isinstance(message, SystemMessage)]
