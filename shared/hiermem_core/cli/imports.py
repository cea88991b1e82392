"""`hiermem import`: the conversations of a file into threads."""

from contextlib import suppress
from typing import Annotated

import typer

from hiermem_core.cli.opening import opened_tenant
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import OutputClosed, emit, note
from hiermem_core.cli.progress import progress_bar
from hiermem_core.importing import find_source, import_memories


def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSONL or JSON of chat messages.")],
    *,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="NAME", help="Rename the thread of a file with one."),
    ] = None,
    batch_size: Annotated[
        int,
        typer.Option("--batch-size", min=1, max=10_000, metavar="N", help="Records per batch."),
    ] = 500,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Import conversations from JSONL or JSON.

    FILE holds one message per line, {"messages": [...]}, a list of messages, or one such
    conversation per line. Importing it again stores nothing twice; after an interruption the same
    command goes on.
    """
    source = find_source(file)
    with (
        opened_tenant(location, tenant, create=True) as owner,
        progress_bar(quiet=quiet) as progress,
    ):
        note(f"importing into {owner.location}, tenant {owner.name}", quiet=quiet)
        report = import_memories(
            source, owner, thread=thread, batch_size=batch_size, progress=progress
        )
    with suppress(OutputClosed):  # the exit code is for those who do not read, too
        emit(report.to_dict(), [str(report)], as_json=as_json)
    raise typer.Exit(report.exit_code)
