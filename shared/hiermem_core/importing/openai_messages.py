"""The format `openai/messages`: a list of messages, bare or under `messages`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.importing.messages import Place, read_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "openai/messages"


def fits(value: Any) -> bool:
    """Tell whether a JSON value is a conversation; one without a message is one too."""
    return messages_of(value) is not None


def read(value: Any, reading: Reading) -> Iterator[Record]:
    """Yield the records of a conversation."""
    return read_conversation(messages_of(value) or [], thread=reading.thread or reading.stem)


def read_conversation(
    messages: Sequence[Any], *, thread: str, position: str = ""
) -> Iterator[Record]:
    """Yield the records of one conversation.

    Args:
        position: Of the conversation in its source, such as `line 7`.
    """
    for index, message in enumerate(messages):
        yield read_message(message, Place(FORMAT, thread, index, f"{position}[{index}]"))


def messages_of(value: Any) -> list[Any] | None:
    """Return the messages of a JSON value that is a conversation, else `None`."""
    if isinstance(value, dict):
        messages = value.get("messages")
        return messages if isinstance(messages, list) else None
    if isinstance(value, list) and (not value or any(map(_has_role, value))):
        return value
    return None


def _has_role(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value and "memory" not in value
