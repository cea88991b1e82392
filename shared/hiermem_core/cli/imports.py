"""`hiermem import` and `hiermem migrate`: what other systems remember, into a tenant's memory."""

from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hiermem_core.cli.opening import is_stored, opened_tenant
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import OutputClosed, emit, note
from hiermem_core.cli.progress import progress_bar
from hiermem_core.cli.vectors import make_vectors
from hiermem_core.errors import InvalidInputError
from hiermem_core.importing import ImportProgress, find_any_source, find_stores, import_memories

if TYPE_CHECKING:
    from hiermem_core.importing import ImportReport
    from hiermem_core.settings import Options


class OnConflict(StrEnum):
    """What is done where an entry says something else by now."""

    SKIP = "skip"
    OVERWRITE = "overwrite"
    FAIL = "fail"


FormatOption = Annotated[
    str,
    typer.Option("--format", metavar="NAME", help="What it is, as reports name it; else sniffed."),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", metavar="PATH", help="Put all entries below this namespace."),
]
ThreadOption = Annotated[
    str | None,
    typer.Option("--thread", metavar="NAME", help="Rename the thread of a source with one."),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="FIELD=VALUE", help="Only what has this, such as user_id."),
]
AllUsersOption = Annotated[
    bool, typer.Option("--all-users", help="What it has of all its users is this tenant's.")
]
OnConflictOption = Annotated[
    OnConflict,
    typer.Option("--on-conflict", help="Where an entry there says something else by now."),
]
ExpiredOption = Annotated[
    bool, typer.Option("--include-expired", help="Import what is past its expiry, to stay.")
]
BackupsOption = Annotated[
    bool, typer.Option("--include-backups", help="Read a system's own backups too.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Report what would happen, and store nothing.")
]
BatchOption = Annotated[
    int, typer.Option("--batch-size", min=1, max=10_000, metavar="N", help="Records per batch.")
]
ListOption = Annotated[bool, typer.Option("--list", help="Name what is found, and import nothing.")]
NoIndexOption = Annotated[
    bool, typer.Option("--no-index", help="Make no vectors; hiermem reindex makes them.")
]


def import_file(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A file, a folder, or the URL of a database.")
    ],
    *,
    format_: FormatOption = "auto",
    namespace: NamespaceOption = None,
    thread: ThreadOption = None,
    only: OnlyOption = None,
    all_users: AllUsersOption = False,
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
    """Import memories and conversations of other systems.

    SOURCE is a file of chat messages (JSONL or JSON), of LangChain, LlamaIndex, mem0 or
    claude-flow, an export of hiermem, or a project folder of claude-flow, or a folder of Chroma;
    its contents decide. It is never changed. Importing it again stores nothing twice; after an
    interruption the same command goes on. At the end the vectors of what is new are made, where
    the extra `embed` is installed.

    A database is read in one transaction that cannot write, and needs --format, which --list names:
    postgresql+psycopg://user@host/name (extra `postgres`) or sqlite:///path. A password may stand
    in PGPASSWORD or ~/.pgpass instead of the URL; it is never shown. Another schema than the user's
    own is named by adding ?options=-csearch_path%3DSCHEMA.
    """
    if list_only:
        _list(source, as_json=as_json)
    find_any_source(source)
    options = {
        "format": format_,
        "namespace": namespace,
        "thread": thread,
        "only": only_of(only or []),
        "all_users": all_users,
        "on_conflict": str(on_conflict),
        "include_expired": include_expired,
        "include_backups": include_backups,
        "dry_run": dry_run,
        "batch_size": batch_size,
    }
    run_import(
        source, options, location, tenant, makes_vectors=not no_index, as_json=as_json, quiet=quiet
    )


def run_import(
    source: str,
    options: dict[str, Any],
    location: str | None,
    tenant: str | None,
    *,
    makes_vectors: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Import a source, tell what became of it, and end with the report's exit code.

    Args:
        options: Of `import_memories`.
    """
    is_dry = options["dry_run"]
    settings: Options = {} if makes_vectors else {"indexing": False}
    if is_dry and not is_stored(location):
        location = ":memory:"  # nothing is created, and nothing is there to compare with
    with opened_tenant(location, tenant, create=True, **settings) as owner:
        note(f"importing into {owner.location}, tenant {owner.name}", quiet=quiet)
        with progress_bar("importing", quiet=quiet) as move:

            def tell(step: ImportProgress) -> None:
                if move is not None:
                    move(step.read_bytes, step.total_bytes)

            report = import_memories(source, owner, **options, progress=tell)
        vectors = make_vectors(owner, quiet=quiet) if makes_vectors and not is_dry else None
    _end(report, vectors, as_json=as_json)
    if not makes_vectors:
        note("no vectors were made; to make them: hiermem reindex", quiet=quiet)
    raise typer.Exit(report.exit_code)


def only_of(given: list[str]) -> dict[str, str]:
    """Return the values that fields must have.

    Raises:
        InvalidInputError: One is not FIELD=VALUE.
    """
    pairs = [text.partition("=") for text in given]
    if not all(name and sign for name, sign, _ in pairs):
        raise InvalidInputError("only", "give FIELD=VALUE, such as user_id=alice")
    return {name: value for name, _, value in pairs}


def _list(source: str, *, as_json: bool) -> None:
    from dataclasses import asdict  # noqa: PLC0415 - not for --help

    found, stores = find_any_source(source), find_stores(source)
    lines = [str(store) for store in stores] or [f"{found}: holds nothing that is known"]
    emit({"source": str(found), "stores": [asdict(one) for one in stores]}, lines, as_json=as_json)
    raise typer.Exit(0 if any(store.found for store in stores) else 3)


def _end(report: "ImportReport", vectors: Any, *, as_json: bool) -> None:
    with suppress(OutputClosed):  # the exit code is for those who do not read, too
        emit(report.to_dict() | {"vectors": vectors}, [str(report)], as_json=as_json)
