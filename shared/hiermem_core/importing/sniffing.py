"""Sniffing: which reader a file is for. Its contents decide, never its name."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing.chat_jsonl import read_line
from hiermem_core.importing.lines import (
    document_value,
    line_value,
    lines_of,
    may_begin_document,
)
from hiermem_core.importing.openai_messages import messages_of, read_conversation
from hiermem_core.importing.records import RecordError, failed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core.importing.records import Record

SHAPES = 'messages one per line, {"messages": [...]}, or a list of {"role", "content"}'


def records_of(file: BinaryIO, *, stem: str, thread: str | None = None) -> Iterator[Record]:
    """Yield every record of a source, in its order.

    Args:
        stem: The file's name without its ending; names threads that have no name.
        thread: Replaces the name of the thread.

    Raises:
        InvalidInputError: It is JSON of a shape that no reader knows.
    """
    head = list(islice(lines_of(file), 2))
    if not head:
        return
    try:
        value = _document(file, [line for _, line in head])
    except RecordError as error:
        position = f"line {head[0][0]}"
        yield failed(error, ref=position, position=position)
        return
    if value is None:
        file.seek(0)
        yield from _records_of_lines(file, stem=stem, thread=thread)
    else:
        yield from _records_of_document(value, head[0][0], stem=stem, thread=thread)


def check_one_thread(file: BinaryIO, *, stem: str) -> None:
    """Check that all messages of a source are of one thread.

    Raises:
        InvalidInputError: They are of several.
    """
    first = None
    for record in records_of(file, stem=stem):
        name = getattr(record, "thread", first)
        if first not in (None, name):
            raise InvalidInputError("thread", "the source holds several threads; leave it out")
        first = name


def _document(file: BinaryIO, head: Sequence[bytes]) -> Any:
    """Return the file's one JSON value, or `None` where its lines are values of their own."""
    alone = len(head) == 1
    if not alone and not may_begin_document(head[0]):
        return None
    file.seek(0)
    try:
        return document_value(file)
    except RecordError:
        if alone or not _is_object(head[1]):
            raise
        return None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(line_value(line), dict)
    except RecordError:
        return False


def _records_of_document(
    value: Any, number: int, *, stem: str, thread: str | None
) -> Iterator[Record]:
    messages = messages_of(value)
    if messages is not None:
        yield from read_conversation(messages, thread=thread or stem)
    elif isinstance(value, dict) and "role" in value:
        yield read_line(value, number, stem=stem, thread=thread)
    else:
        raise InvalidInputError("source", f"its JSON is no conversation; give {SHAPES}")


def _records_of_lines(file: BinaryIO, *, stem: str, thread: str | None) -> Iterator[Record]:
    for number, line in lines_of(file):
        position = f"line {number}"
        try:
            value = line_value(line)
        except RecordError as error:
            yield failed(error, ref=position, position=position)
            continue
        messages = messages_of(value)
        if messages is None:
            yield read_line(value, number, stem=stem, thread=thread)
        else:
            target = thread or f"{stem}/{number}"
            yield from read_conversation(messages, thread=target, position=position)
