"""`hiermem tokens`: counting, and the vocabularies that make counts exact."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import hiermem_core as core
from hiermem_core.cli.options import JsonOption, QuietOption
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.wording import say_if_estimated

tokens = typer.Typer(help="Count tokens, and fetch what makes counts exact.", no_args_is_help=True)


@tokens.command()
def fetch(
    encoding: Annotated[
        str | None, typer.Argument(metavar="[ENCODING]", help="Default: the setting's encoding.")
    ] = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fetch the vocabulary of an encoding from tiktoken's own address, unless it is at hand."""
    from hiermem_core.tokens import tiktoken_counter as ranks  # noqa: PLC0415 - not for --help

    settings = core.HierMemSettings.read()
    name = encoding or settings.encoding
    folders = ranks.rank_folders(settings.tiktoken_cache_dir)
    try:
        path, fetched = ranks.find_ranks(name, folders), False
    except ranks.RanksNotFoundError:
        note(f"fetching {name} into {folders[0]}", quiet=quiet)
        path, fetched = _fetched(name, folders[0]), True
    told = "fetched" if fetched else "is at hand"
    value = {"encoding": name, "path": str(path), "fetched": fetched}
    emit(value, [f"{name}: {told}: {path}"], as_json=as_json)


@tokens.command()
def count(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - reads standard input.")],
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Count the tokens of a text."""
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    counter = _counter()
    exact = getattr(counter, "exact", True)
    figure = counter.count(text)
    value = {"tokens": figure, "characters": len(text), "counter": counter.id}
    line = f"{figure} tokens by {counter.id}"
    emit(value | {"exact_counter": exact}, [line], as_json=as_json)
    say_if_estimated(exact=exact, quiet=quiet)


def _counter() -> core.TokenCounter:
    with core.HierMem.open(":memory:") as hiermem:
        return hiermem.counter


def _fetched(encoding: str, folder: Path) -> Path:
    from hiermem_core.tokens.tiktoken_counter import fetch_ranks  # noqa: PLC0415 - not for --help

    try:
        return fetch_ranks(encoding, folder)
    except core.ConfigurationError as error:
        raise core.BackendUnavailableError("fetching", str(error)) from error
