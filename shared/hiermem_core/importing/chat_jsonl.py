"""The format `chat/jsonl`: one message per line, of one thread or of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.importing.messages import Place, id_text, read_message
from hiermem_core.importing.records import RecordError, failed

if TYPE_CHECKING:
    from hiermem_core.importing.records import Record

FORMAT = "chat/jsonl"

_THREAD_KEYS = ("thread_id", "conversation_id", "session_id")


def read_line(value: Any, number: int, *, stem: str, thread: str | None) -> Record:
    """Return the record of one line.

    Args:
        number: Of the line, from 1.
        stem: Names the thread where the message names none.
        thread: Replaces the thread the message names.
    """
    position = f"line {number}"
    try:
        target = thread or thread_of(value) or stem
    except RecordError as error:
        return failed(error, ref=position, position=position)
    return read_message(value, Place(FORMAT, target, number, position))


def thread_of(value: Any) -> str | None:
    """Return the thread a message names, if it names one.

    Raises:
        RecordError: It names one by something that is no name.
    """
    if not isinstance(value, dict):
        return None
    key = next((key for key in _THREAD_KEYS if value.get(key) not in (None, "")), None)
    if key is None:
        return None
    name = id_text(value[key])
    if name is None:
        raise RecordError("invalid_input", f"{key} must be text")
    return name
