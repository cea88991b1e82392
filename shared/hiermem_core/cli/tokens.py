"""`hiermem tokens`: counting, and the vocabularies that make counts exact."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import hiermem_core as core
from hiermem_core.cli.options import JsonOption, QuietOption
from hiermem_core.cli.output import emit, note
from hiermem_core.displays.wording import ESTIMATED, counted

tokens = typer.Typer(help="Count tokens, or make counts exact.", no_args_is_help=True)


@tokens.command()
def fetch(
    encoding: Annotated[
        str | None, typer.Argument(metavar="[ENCODING]", help="Default: that of the settings.")
    ] = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fetch a vocabulary, unless it is at hand.

    It comes from tiktoken's own address. Nothing else that HierMem does uses the network.
    """
    from hiermem_core.tokens import tiktoken_counter as ranks  # noqa: PLC0415 - not for --help

    settings = core.HierMemSettings.read()
    name = encoding or settings.encoding
    folders = ranks.rank_folders(settings.tiktoken_cache_dir)
    try:
        path, told = ranks.find_ranks(name, folders), "is at hand"
    except ranks.RanksNotFoundError:
        note(f"fetching {name} into {folders[0]}", quiet=quiet)
        path, told = _fetched(name, folders[0]), "fetched"
    value = {"encoding": name, "path": str(path), "fetched": told == "fetched"}
    emit(value, [f"{name}: {told}: {path}"], as_json=as_json)


@tokens.command()
def count(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - is standard input.")],
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Count the tokens of a text."""
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    with core.HierMem.open(":memory:") as hiermem:
        counter = hiermem.counter
    figure, exact = counter.count(text), getattr(counter, "exact", True)
    value: dict[str, Any] = {"tokens": figure, "characters": len(text)}
    value |= {"counter": counter.id, "exact_counter": exact}
    emit(value, [f"{counted(figure, 'token')} by {counter.id}"], as_json=as_json)
    note(ESTIMATED, quiet=quiet or exact)


def _fetched(encoding: str, folder: Path) -> Path:
    from hiermem_core.tokens.tiktoken_counter import fetch_ranks  # noqa: PLC0415 - not for --help

    return fetch_ranks(encoding, folder)
