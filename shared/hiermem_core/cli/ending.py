"""How a run ends: one line instead of a traceback, and an exit code."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, cast

import typer

from hiermem_core.cli.app import app
from hiermem_core.cli.output import OutputClosed, printable
from hiermem_core.errors import (
    ConfigurationError,
    HierMemError,
    InvalidInputError,
    MissingExtraError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SUCCESS = 0
FAILURE = 1
WRONG_USE = 2
INTERRUPTED = 130

_WRONG_USE = (ConfigurationError, InvalidInputError, MissingExtraError)
_UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])
"""What typer raises for wrong use; it has no public name in all of its versions."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are one line on stderr.

    Args:
        arguments: Those of the process when `None`.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _take_any_character()
    code = _run(words)
    return code if _flushed() else max(code, FAILURE)


def exit_code_of(error: Exception) -> int:
    """Return the exit code of an error that ended a command."""
    return WRONG_USE if isinstance(error, (*_WRONG_USE, _UsageError)) else FAILURE


def _run(words: Sequence[str]) -> int:
    try:
        code = app(list(words), prog_name="hiermem", standalone_mode=False) or SUCCESS
    except OutputClosed:
        return SUCCESS
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except _UsageError as error:
        return _tell_wrong_use(error, as_json="--json" in words)
    except (HierMemError, OSError) as error:
        return _tell(error, _text(error), as_json="--json" in words)
    if code == INTERRUPTED:
        print("interrupted; what is stored stays", file=sys.stderr)
    return int(code)


def _tell_wrong_use(error: Exception, *, as_json: bool) -> int:
    if as_json:
        return _tell(error, error.format_message(), as_json=True)  # type: ignore[attr-defined]
    error.show()  # type: ignore[attr-defined]
    return WRONG_USE


def _tell(error: Exception, text: str, *, as_json: bool) -> int:
    line = printable(f"error: {text}", keep="")
    if as_json:
        line = json.dumps({"error": text, "type": type(error).__name__})
    print(line, file=sys.stderr)
    return exit_code_of(error)


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return ": ".join(filter(None, (error.strerror, str(error.filename or ""))))
    return str(error)


def _take_any_character() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _flushed() -> bool:
    """Flush what was printed; a reader that has left is no failure, a full disk is one."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _drop_output()
        print(f"error: {error.strerror}: standard output", file=sys.stderr)
        return False
    return True


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
