"""`hiermem move`: a memory to another location."""

from typing import Annotated

import typer

from hiermem_core.cli.options import JsonOption, QuietOption
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.progress import progress_bar

_PARTS = 10_000


def move(
    *,
    source: Annotated[
        str, typer.Option("--from", metavar="LOCATION", help="Folder, .db file or server's URL.")
    ],
    target: Annotated[
        str, typer.Option("--to", metavar="LOCATION", help="Where to; it is made if need be.")
    ],
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Only this one; else all.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Move a memory to another location, such as from a file to a PostgreSQL server, or back.

    Entries, threads with archived turns, notes and vectors; no model is called. Both ends are
    compared at the end, by counts and checksum. What was cut off goes on when it is repeated. A
    target that has other things of a tenant is refused. The source stays as it is: delete it when
    you have seen that all is well. Stop the programs that write to either end before.
    """
    from hiermem_core.importing.moving import move_memories  # noqa: PLC0415 - not for --help

    with progress_bar("moving", quiet=quiet) as bar:

        def tell(share: float) -> None:
            if bar is not None:
                bar(round(share * _PARTS), _PARTS)

        report = move_memories(source, target, tenant=tenant, progress=tell)
    emit(report.to_dict() | {"exit_code": report.exit_code}, [str(report)], as_json=as_json)
    note(f"the memory at {report.source} is as it was", quiet=quiet)
    if report.exit_code:
        raise typer.Exit(report.exit_code)
