"""Output: results to stdout, notes to stderr, nothing that steers a terminal."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from hiermem_core.displays.printing import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class OutputClosed(Exception):  # noqa: N818 - a reader that has had enough is no error
    """Whoever read the output has left."""


def write(text: str) -> None:
    """Print text to stdout, whole, with control characters as escapes.

    Raises:
        OutputClosed: Whoever read it has left.
    """
    _print(printable(text))


def write_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object to stdout, in ASCII."""
    _print(json.dumps(value, indent=2))


def emit(value: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result: as one JSON object, or as lines for people."""
    if as_json:
        write_json(value)
        return
    for line in lines:
        write(line)


def note(text: str, *, quiet: bool = False) -> None:
    """Say something beside the result, on stderr; nothing depends on whether anyone reads it."""
    if quiet or sys.stderr is None:
        return
    with suppress(OSError):
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()


def flush() -> None:
    """Hand on what was printed.

    Raises:
        OutputClosed: Whoever read it has left.
        OSError: It cannot be written, such as on a full disk.
    """
    if sys.stdout is not None:
        with _checked_output():
            sys.stdout.flush()


@contextmanager
def _checked_output() -> Iterator[None]:
    """Write to stdout in a block; what it cannot take is dropped, so that it fails once."""
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise OutputClosed from None
        raise OSError(error.errno, error.strerror, "standard output") from error


def _print(text: str) -> None:
    if sys.stdout is None:
        return
    with _checked_output():
        sys.stdout.write(text + "\n")
