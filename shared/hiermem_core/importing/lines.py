"""JSON from a file: line by line in bounded memory, or as one document."""

from __future__ import annotations

from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, BinaryIO

from hiermem_core.importing.records import RecordError
from hiermem_core.models.plain import load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hiermem_core.importing.report import WarningCode

    Warn = Callable[[WarningCode], None]

LINE_LIMIT = 128 * 1024 * 1024
"""Bytes of one line: more than the largest turn, every character of it escaped."""

DOCUMENT_LIMIT = 1024 * 1024 * 1024
"""Bytes of a document that is read whole."""


def _ignore(code: WarningCode) -> None:
    """Take a warning that nobody wants."""


_BOM = b"\xef\xbb\xbf"


def lines_of(file: BinaryIO, *, limit: int = LINE_LIMIT) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of every line that is not blank; one too long is cut after `limit`."""
    number = 0
    while line := file.readline(limit + 1):
        number += 1
        if len(line) > limit:
            _skip_line(file, line)
        if number == 1:
            line = line.removeprefix(_BOM)
        if line.strip():
            yield number, line.rstrip(b"\r\n")


def _skip_line(file: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(LINE_LIMIT)


def line_value(line: bytes, *, limit: int = LINE_LIMIT) -> Any:
    """Return the JSON value of a line.

    Raises:
        RecordError: It is too long, not UTF-8, or not JSON.
    """
    if len(line) > limit:
        raise RecordError("limit_exceeded", f"is longer than {limit} bytes; split it")
    return _value(line)


def document_value(file: BinaryIO, warn: Warn = _ignore, *, limit: int = DOCUMENT_LIMIT) -> Any:
    """Return the JSON value of a whole file.

    Raises:
        RecordError: It is too large, or not JSON.
    """
    return text_value(document_text(file, warn, limit=limit))


def document_text(file: BinaryIO, warn: Warn = _ignore, *, limit: int = DOCUMENT_LIMIT) -> str:
    """Return the text of a whole file; bytes that are no UTF-8 become U+FFFD, with a warning.

    Raises:
        RecordError: It is too large.
    """
    data = file.read(limit + 1)
    if len(data) > limit:
        detail = f"is a document of more than {limit} bytes; write one record per line"
        raise RecordError("limit_exceeded", detail)
    data = data.removeprefix(_BOM)
    try:
        return data.decode()
    except UnicodeDecodeError:
        warn("undecodable_bytes")
        return data.decode("utf-8", "replace")


def may_begin_document(line: bytes) -> bool:
    """Tell whether a line that others follow may be the beginning of one JSON value. Pure.

    No text and no word of JSON runs over a line's end, so in such a line the first thing wrong is
    its end.
    """
    try:
        text = line.decode().rstrip()
        load_json(text)
    except JSONDecodeError as error:
        return error.pos >= len(text)
    except (ValueError, RecursionError):
        return False
    return False


def _value(data: bytes) -> Any:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        detail = f"byte {error.start + 1} is not UTF-8; save it as UTF-8"
        raise RecordError("not_text", detail) from None
    return text_value(text)


def text_value(text: str) -> Any:
    """Return the JSON value of a text.

    Raises:
        RecordError: It is not JSON.
    """
    try:
        return load_json(text)
    except JSONDecodeError as error:
        raise RecordError("invalid_json", _json_detail(error)) from None
    except (ValueError, RecursionError) as error:
        detail = f"is not JSON that can be read ({type(error).__name__}); mend it"
        raise RecordError("invalid_json", detail) from None


def _json_detail(error: JSONDecodeError) -> str:
    line = f"line {error.lineno} " if error.lineno > 1 else ""
    return f"is cut or not JSON ({error.msg} at {line}column {error.colno}); mend it"
