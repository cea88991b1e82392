"""`hiermem migrate`: a project of claude-flow into a tenant's memory."""

from typing import Annotated

import typer

from hiermem_core.cli.imports import (
    BackupsOption,
    BatchOption,
    DryRunOption,
    ExpiredOption,
    FormatOption,
    ListOption,
    NamespaceOption,
    NoIndexOption,
    OnConflict,
    OnConflictOption,
    import_file,
)
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.errors import InvalidInputError
from hiermem_core.importing import find_stores

_PREFIX = "claude-flow/"


def migrate(
    project: Annotated[
        str, typer.Argument(metavar="[PROJECT]", help="A project's folder, or a file of its.")
    ] = ".",
    *,
    format_: FormatOption = "auto",
    namespace: NamespaceOption = None,
    on_conflict: OnConflictOption = OnConflict.SKIP,
    include_expired: ExpiredOption = False,
    include_backups: BackupsOption = False,
    dry_run: DryRunOption = False,
    batch_size: BatchOption = 500,
    list_only: ListOption = False,
    no_index: NoIndexOption = False,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Migrate the memory of a claude-flow project.

    The same as import, for the formats of claude-flow only; PROJECT is the folder you are in where
    none is given.
    """
    _check(project, format_)
    import_file(
        project,
        format_=format_,
        namespace=namespace,
        on_conflict=on_conflict,
        include_expired=include_expired,
        include_backups=include_backups,
        dry_run=dry_run,
        batch_size=batch_size,
        list_only=list_only,
        no_index=no_index,
        location=location,
        tenant=tenant,
        as_json=as_json,
        quiet=quiet,
    )


def _check(project: str, name: str) -> None:
    """Raise where what is to be migrated is of another system."""
    named = {name} if name != "auto" else {store.format for store in find_stores(project)}
    foreign = sorted(one for one in named if one and not one.startswith(_PREFIX))
    if foreign:
        reason = f"is {', '.join(foreign)}, not of claude-flow; run: hiermem import"
        raise InvalidInputError("source", reason)
