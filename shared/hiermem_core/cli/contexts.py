"""`hiermem context`: what a model call would get of a thread."""

from typing import Annotated

import typer

from hiermem_core.cli.opening import lacks_embedder, opened_tenant
from hiermem_core.cli.options import (
    JsonOption,
    LocationOption,
    QuietOption,
    TenantOption,
    ThreadArgument,
)
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.plain import context_json
from hiermem_core.cli.recalling import ThreadsOption, threads_given
from hiermem_core.displays.context_wording import context_lines
from hiermem_core.displays.wording import ESTIMATED, KEYWORDS_ONLY


def context(
    thread: ThreadArgument,
    *,
    budget: Annotated[
        int, typer.Option("--budget", min=0, metavar="TOKENS", help="Tokens of all the messages.")
    ] = 4000,
    question: Annotated[
        str | None, typer.Option("--question", metavar="TEXT", help="The user's new question.")
    ] = None,
    system: Annotated[
        str, typer.Option("--system", metavar="TEXT", help="The system prompt.")
    ] = "",
    recall: Annotated[
        bool, typer.Option("--recall/--no-recall", help="Look for what the window has lost.")
    ] = True,
    threads: ThreadsOption = None,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print what a model reads of a thread.

    The messages fit the budget; the lines before them say where the tokens went, what was left
    out, and why, and what was recalled: entries, and turns that the window has lost, of this
    thread or of those that --threads says. The notes are in it where the thread has some, unless
    HIERMEM_STRATEGY says otherwise. Nothing is written, and no language model is called.
    """
    from hiermem_core.inspector.reading import profile_showing  # noqa: PLC0415 - not for --help

    threads_recalled = threads_given(threads, default="this")
    with opened_tenant(location, tenant) as owner:
        stored = owner.thread(thread)
        built = stored.context(
            current=question,
            budget_tokens=budget,
            system=system,
            recall=recall,
            recall_threads=threads_recalled,
            profile=profile_showing(stored),
        )
    value = {"tenant": owner.name, "thread": thread} | context_json(built)
    emit(value, context_lines(built), as_json=as_json)
    note(ESTIMATED, quiet=quiet or built.receipt.exact)
    note(KEYWORDS_ONLY, quiet=quiet or not recall or not lacks_embedder())
