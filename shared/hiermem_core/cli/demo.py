"""`hiermem demo`: the main job on a real conversation, telling what it does while it does it."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

import hiermem_core as core
from hiermem_core.cli.demo_steps import steps
from hiermem_core.cli.options import JsonOption, QuietOption
from hiermem_core.cli.output import note, write, write_json
from hiermem_core.displays.wording import ESTIMATED
from hiermem_core.importing import find_source

QUESTION = "What sentence did Chiyo ask Mara to type at the opening?"

_FILE = Path("examples", "conversation.jsonl")
_FACTS = "conversation_facts.json"
_PACKAGE = Path(core.__file__).parent


def demo(
    *,
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="A conversation of your own.")
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", metavar="TEXT", help="What to ask at its end.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show the main job on a real conversation.

    Imports it into a temporary memory, fits it into four budgets, and recalls what the window has
    lost. Needs no key and no network.
    """
    source = find_source(file or conversation_file())
    asked = question or (None if file else QUESTION)
    value: dict[str, Any] = {}
    with (
        TemporaryDirectory(prefix="hiermem-demo-") as folder,
        core.HierMem.open(folder) as hiermem,
    ):
        facts = None if file else _facts_beside(source)
        for gave, text in steps(hiermem, source, asked, facts=facts, quiet=quiet):
            value |= gave
            if not as_json:
                write(text)
        exact = getattr(hiermem.counter, "exact", True)
    if as_json:
        write_json(value)
    note(ESTIMATED, quiet=quiet or exact)
    note("the temporary memory is gone; to keep one of your own: hiermem init", quiet=quiet)
    raise typer.Exit(value["import"]["exit_code"])


def _facts_beside(source: Path) -> Path | None:
    path = source.with_name(_FACTS)
    return path if path.is_file() else None


def conversation_file() -> Path:
    """Return the conversation that comes with HierMem: in the wheel, or in the checkout.

    Raises:
        InvalidInputError: It is in neither.
    """
    places = (_PACKAGE / _FILE, _PACKAGE.parents[1] / _FILE)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise core.InvalidInputError("file", "the demo conversation is missing; name one by --file")
    return found
