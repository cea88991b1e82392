"""`hiermem backup` and `hiermem restore`: a whole location, and its way back."""

from typing import Annotated

import typer

from hiermem_core.cli.consent import DryRunOption, YesOption, ask, check_can_ask
from hiermem_core.cli.opening import find_place, opened
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption
from hiermem_core.cli.output import emit, note

REPLACE = "Replace what is at {}, and keep a backup of it"


def backup(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder to be made.")],
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Where FOLDER is there, keep that under another name.")
    ] = False,
    location: LocationOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Back the whole memory up, all tenants.

    Programs may go on reading and writing meanwhile; FOLDER holds it as of one moment, with a
    checksum, and comes whole or not at all. The vectors are in; the index of them is not, as it is
    built anew from them.
    """
    with opened(location) as hiermem:
        report = hiermem.backup(folder, replace=force)
    emit(report.to_dict(), [str(report)], as_json=as_json)
    if report.kept is not None:
        note(f"what was there is kept as {report.kept}", quiet=quiet)
    note(f"to put it back: hiermem restore {folder}", quiet=quiet)


def restore(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="What hiermem backup has written.")
    ],
    *,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace what is there; it is kept beside as a backup."),
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    location: LocationOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Put a backup back.

    Its checksum is verified first. What the location holds is replaced only with --force, in one
    step, and kept beside it as a backup, which restore takes too. No program may have the location
    open.
    """
    from hiermem_core.exporting.restoring import restore_backup  # noqa: PLC0415 - not for --help

    place = str(find_place(location))
    if force:
        check_can_ask(dry_run=dry_run, yes=yes)
        ask(
            REPLACE.format(place),
            lambda: restore_backup(folder, place, replace=True, dry_run=True).replaced or "",
            dry_run=dry_run,
            yes=yes,
        )
    report = restore_backup(folder, place, replace=force, dry_run=dry_run)
    lines = ["nothing was changed; this would be:"] if dry_run else []
    emit(report.to_dict(), [*lines, str(report)], as_json=as_json)
    note("the index of the vectors is built anew when it is needed", quiet=quiet or dry_run)
