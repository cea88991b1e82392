"""Sniffing: which reader a text is for. Its contents decide, never its name."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing import chat_jsonl
from hiermem_core.importing.claude_flow import advanced, advanced_exports, swarm_state
from hiermem_core.importing.documents import document_format
from hiermem_core.importing.lines import (
    document_text,
    document_value,
    line_value,
    lines_of,
    may_begin_document,
)
from hiermem_core.importing.mem0_export import chosen
from hiermem_core.importing.openai_messages import FORMAT as OPENAI
from hiermem_core.importing.openai_messages import messages_of, read_conversation
from hiermem_core.importing.reading import Reading
from hiermem_core.importing.records import Message, RecordError, failed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core.importing.records import Record

SHAPES = (
    'messages one per line, {"messages": [...]}, a list of {"role", "content"}, '
    "or a file of a system that is listed in the documentation"
)


class Sniffed(NamedTuple):
    """A format, `None` where there is nothing in the file, and the records."""

    format: str | None
    records: Iterator[Record]


def sniffed(file: BinaryIO, reading: Reading, *, wanted: str | None = None) -> Sniffed:
    """Return what a text file is, and its records in its order.

    Args:
        wanted: The format it is to be.

    Raises:
        InvalidInputError: Its shape is one that no reader knows, or not the one wanted.
    """
    head = list(islice(lines_of(file), 2))
    if not head:
        return Sniffed(None, iter(()))
    found = _export(file, head[0][1], reading)
    if found is None:
        try:
            value = _document(file, [line for _, line in head], reading)
        except RecordError as error:
            position = f"line {head[0][0]}"
            return Sniffed(None, iter([failed(error, ref=position, position=position)]))
        if value is _LINES:
            file.seek(0)
            found = _lines(file, line_value_or_none(head[0][1]), reading)
        else:
            found = _of_document(value, head[0][0], reading, wanted)
    if wanted is not None and found.format != wanted:
        raise InvalidInputError("format", f"the source is {found.format}, not {wanted}")
    return found


def records_of(file: BinaryIO, *, stem: str, thread: str | None = None) -> Iterator[Record]:
    """Yield every record of a text file; see `sniffed`.

    Args:
        stem: The file's name without its ending; names threads that have no name.
        thread: Replaces the name of the thread.
    """
    reading = Reading(now=datetime.now(UTC), stem=stem, thread=thread)
    yield from sniffed(file, reading).records


def check_one_thread(records: Iterator[Record]) -> None:
    """Check that all messages of a source are of one thread.

    Raises:
        InvalidInputError: They are of several.
    """
    first = None
    for record in records:
        if isinstance(record, Message):
            if first not in (None, record.thread):
                raise InvalidInputError("thread", "the source holds several threads; leave it out")
            first = record.thread


_LINES = object()
"""Stands for a file whose lines are values of their own."""


def _document(file: BinaryIO, head: Sequence[bytes], reading: Reading) -> Any:
    """Return the file's one JSON value, or `_LINES` where its lines are values of their own."""
    alone = len(head) == 1
    if not alone and not may_begin_document(head[0]):
        return _LINES
    file.seek(0)
    try:
        return document_value(file, reading.warn)
    except RecordError:
        if alone or not _is_object(head[1]):
            raise
        return _LINES


def _export(file: BinaryIO, line: bytes, reading: Reading) -> Sniffed | None:
    """Return the records of an export that is no JSON, if the file is one."""
    text = line.decode("utf-8", "replace").lstrip()
    if text[:1] in {"{", "[", '"'}:
        return None
    if swarm_state.is_valueless(text):
        reason = "is the CSV export of a swarm, which holds no values; import its state.json"
        raise InvalidInputError("source", reason)
    if not text.startswith(("key,", "memory:", "<")):
        return None
    file.seek(0)
    try:
        whole = document_text(file, reading.warn)
    except RecordError:
        return None
    reader = advanced_exports.reader_of(whole)
    return None if reader is None else Sniffed(advanced.FORMAT, reader(whole, reading))


def line_value_or_none(line: bytes) -> Any:
    """Return the JSON value of a line, `None` of one that has none."""
    try:
        return line_value(line)
    except RecordError:
        return None


def _is_object(line: bytes) -> bool:
    return isinstance(line_value_or_none(line), dict)


def _of_document(value: Any, number: int, reading: Reading, wanted: str | None) -> Sniffed:
    found = document_format(value, wanted) or document_format(value)
    if found is not None:
        return Sniffed(found.name, found.read(value, reading))
    if isinstance(value, dict) and "role" in value:
        record = chat_jsonl.read_line(value, number, stem=reading.stem, thread=reading.thread)
        return Sniffed(chat_jsonl.FORMAT, iter([record]))
    if value in ({}, ""):
        return Sniffed(None, iter(()))
    raise InvalidInputError("source", f"its JSON is no conversation; give {SHAPES}")


def _lines(file: BinaryIO, first: Any, reading: Reading) -> Sniffed:
    name = chat_jsonl.FORMAT if messages_of(first) is None else OPENAI
    return Sniffed(name, _records_of_lines(file, reading))


def _records_of_lines(file: BinaryIO, reading: Reading) -> Iterator[Record]:
    stem, thread = reading.stem, reading.thread
    for number, line in lines_of(file):
        position = f"line {number}"
        try:
            value = line_value(line)
        except RecordError as error:
            yield failed(error, ref=position, position=position)
            continue
        messages = messages_of(value)
        if messages is None and not chosen(value, reading):
            continue
        if messages is None:
            yield chat_jsonl.read_line(value, number, stem=stem, thread=thread)
        else:
            target = thread or f"{stem}/{number}"
            yield from read_conversation(messages, thread=target, position=position)
