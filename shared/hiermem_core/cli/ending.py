"""How a run ends: one line instead of a traceback, and an exit code."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, cast

import typer

from hiermem_core.cli.app import app
from hiermem_core.cli.output import OutputClosed, flush, note
from hiermem_core.displays.printing import printable
from hiermem_core.errors import (
    ConfigurationError,
    HierMemError,
    InvalidInputError,
    MissingExtraError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SUCCESS = 0
FAILURE = 1
WRONG_USE = 2
INTERRUPTED = 130

_UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])
"""What typer raises for wrong use; it has no public name that all its versions share."""

_WRONG_USE = (ConfigurationError, InvalidInputError, MissingExtraError, _UsageError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an error is one line on stderr.

    Args:
        arguments: Those of the process when `None`.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    _take_any_character()
    command = partial(app, words, prog_name="hiermem", standalone_mode=False)
    code = _ended(command, as_json=as_json)
    if code == INTERRUPTED:
        note("interrupted; what is stored stays, and the same command goes on")
    return max(code, _ended(flush, as_json=as_json))


def exit_code_of(error: Exception) -> int:
    """Return the exit code of an error that ended a command."""
    return WRONG_USE if isinstance(error, _WRONG_USE) else FAILURE


def text_of(error: Exception) -> str:
    """Return an error in one line."""
    if isinstance(error, _UsageError):
        text: str = error.format_message()  # type: ignore[attr-defined]  # click's
    elif isinstance(error, OSError) and error.strerror and not isinstance(error, HierMemError):
        text = ": ".join(filter(None, (error.strerror, str(error.filename or ""))))
    else:
        text = str(error)
    return printable(text, keep="")


def _ended(step: Callable[[], int | None], *, as_json: bool) -> int:
    try:
        return step() or SUCCESS
    except OutputClosed:
        return SUCCESS
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except (_UsageError, HierMemError, OSError) as error:
        return _tell(error, as_json=as_json)


def _tell(error: Exception, *, as_json: bool) -> int:
    if as_json:
        note(json.dumps({"error": text_of(error), "type": type(error).__name__}))
    elif isinstance(error, _UsageError):
        error.show()  # type: ignore[attr-defined]  # click's
    else:
        note(f"error: {text_of(error)}")
    return exit_code_of(error)


def _take_any_character() -> None:
    """Have characters that an output cannot encode shown as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
