"""`hiermem export`: all that a tenant has, as JSONL."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hiermem_core.cli.opening import opened_tenant, require_lasting
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import OutputClosed, emit, note
from hiermem_core.cli.progress import progress_bar
from hiermem_core.errors import InvalidInputError

if TYPE_CHECKING:
    from typing import BinaryIO

    from hiermem_core import Tenant
    from hiermem_core.exporting.report import ExportReport


def export(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file to be written; - for standard output.")
    ],
    *,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Add the vectors; an importer spares making them.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Where FILE is there, keep that under another name.")
    ] = False,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Export all that a tenant has.

    Entries with ids, times, versions and time to live; threads with every turn, archived ones too,
    what a framework dumped, and the notes. Expired entries are left out. hiermem import FILE takes
    it back, exactly; every line bears a checksum, so that a cut or an edit is refused. FILE comes
    whole or not at all, and is readable by you alone.
    """
    require_lasting()
    if file == "-" and as_json:
        raise InvalidInputError("export", "writes to standard output; leave out --json")
    with opened_tenant(location, tenant) as owner:
        if file == "-":
            report = _streamed(owner, vectors=vectors)
        else:
            report = _written(owner, file, vectors=vectors, force=force, quiet=quiet)
    if file == "-":
        note(str(report), quiet=quiet)
    else:
        emit({"file": file} | report.to_dict(), [f"{file}: {report}"], as_json=as_json)
    if report.kept is not None:
        note(f"what was there is kept as {report.kept}", quiet=quiet)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _written(
    owner: "Tenant", file: str, *, vectors: bool, force: bool, quiet: bool
) -> "ExportReport":
    stats = owner.stats()
    total = stats.threads + stats.turns + stats.archived_turns + owner.memory.stats().entries
    with progress_bar("exporting", quiet=quiet) as move:

        def tell(done: int) -> None:
            if move is not None:
                move(done, total)

        return owner.export(Path(file), vectors=vectors, replace=force, progress=tell)


def _streamed(owner: "Tenant", *, vectors: bool) -> "ExportReport":
    """Write to standard output.

    Raises:
        OutputClosed: Whoever read it has left.
    """
    if sys.stdout is None:
        raise InvalidInputError("export", "standard output is closed; name a file")
    stream: BinaryIO = sys.stdout.buffer
    try:
        report = owner.export(stream, vectors=vectors)
        stream.flush()
    except BrokenPipeError:
        raise OutputClosed from None
    return report
