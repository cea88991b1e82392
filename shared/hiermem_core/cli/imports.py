"""`hiermem import`: the conversations of a file into threads."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from hiermem_core.cli.opening import opened_tenant
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import OutputClosed, emit, note
from hiermem_core.cli.progress import progress_bar
from hiermem_core.cli.vectors import make_vectors
from hiermem_core.importing import ImportProgress, find_source, import_memories

if TYPE_CHECKING:
    from hiermem_core.settings import Options


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
    no_index: Annotated[
        bool, typer.Option("--no-index", help="Make no vectors; hiermem reindex makes them.")
    ] = False,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Import conversations from JSONL or JSON.

    FILE holds one message per line, {"messages": [...]}, a list of messages, or one such
    conversation per line. Importing it again stores nothing twice; after an interruption the same
    command goes on. At the end the vectors of what is new are made, where the extra `embed` is
    installed.
    """
    source = find_source(file)
    options: Options = {"indexing": False} if no_index else {}
    with opened_tenant(location, tenant, create=True, **options) as owner:
        note(f"importing into {owner.location}, tenant {owner.name}", quiet=quiet)
        with progress_bar("importing", quiet=quiet) as move:

            def tell(step: ImportProgress) -> None:
                if move is not None:
                    move(step.read_bytes, step.total_bytes)

            report = import_memories(
                source, owner, thread=thread, batch_size=batch_size, progress=tell
            )
        vectors = None if no_index else make_vectors(owner, quiet=quiet)
    with suppress(OutputClosed):  # the exit code is for those who do not read, too
        emit(report.to_dict() | {"vectors": vectors}, [str(report)], as_json=as_json)
    if no_index:
        note("no vectors were made; to make them: hiermem reindex", quiet=quiet)
    raise typer.Exit(report.exit_code)
