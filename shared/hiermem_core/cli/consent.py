"""Consent: a command that destroys asks before, and tells in a dry run what would go."""

import sys
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from hiermem_core.cli.output import note
from hiermem_core.displays.printing import printable
from hiermem_core.errors import InvalidInputError

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
]
YesOption = Annotated[
    bool, typer.Option("--yes", help="Do not ask; needed where there is no terminal.")
]

REFUSAL = 1
"""The exit code where the answer is no."""


def check_can_ask(*, dry_run: bool, yes: bool) -> None:
    """Raise where something would be destroyed that nobody can be asked about.

    Raises:
        InvalidInputError: There is no terminal, and neither option was given.
    """
    if not (dry_run or yes or _is_on_terminal()):
        reason = "there is no terminal to ask on; add --yes, or first --dry-run"
        raise InvalidInputError("consent", reason)


def ask(deed: str, going: Callable[[], str], *, dry_run: bool, yes: bool) -> None:
    """Ask on the terminal about what would go, unless it stays or the answer is given already.

    Args:
        deed: What would be done to it.
        going: Finds what would go, in words; `""`: nothing, which needs no answer.

    Raises:
        typer.Exit: The answer is no.
    """
    told = "" if dry_run or yes else going()
    if told and not _is_agreed(f"{deed}: {told}?"):
        note("nothing was changed")
        raise typer.Exit(REFUSAL)


def counts_text(counts: Mapping[str, int]) -> str:
    """Return what would go, in words; `""`: nothing."""
    from hiermem_core.exporting.report import told  # noqa: PLC0415 - not for --help

    return told(counts) if any(counts.values()) else ""


def _is_agreed(question: str) -> bool:
    """Ask beside the result; whatever is not a clear yes is a no."""
    sys.stderr.write(printable(f"{question} [y/N] ", keep=""))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _is_on_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
