"""`hiermem reindex`, `doctor` and `health`: looking after a memory."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hiermem_core.cli.opening import opened, require_embedder
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.progress import progress_bar
from hiermem_core.displays.entry_wording import doctor_lines, is_well
from hiermem_core.displays.printing import table
from hiermem_core.displays.wording import counted
from hiermem_core.errors import ConfigurationError, EmbedderMismatchError

if TYPE_CHECKING:
    from hiermem_core.models.health import Health
    from hiermem_core.models.results import ReindexReport
    from hiermem_core.service.vectorising import OnEmbedderChange


def reindex(
    *,
    change_embedder: Annotated[
        bool,
        typer.Option("--change-embedder", help="Replace the vectors of another embedder."),
    ] = False,
    location: LocationOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make the vectors that are missing.

    They are made of the stored text, for all tenants. After an interruption the same command goes
    on. Vectors by another embedder are made anew only
    with --change-embedder; until all are there the old ones answer.
    """
    require_embedder()
    report = _reindexed(location, change="degrade" if change_embedder else "raise", quiet=quiet)
    line = (
        f"{counted(report.embedded, 'vector')} made by {report.model_id} ({report.dimension}); "
        f"{counted(report.rows, 'row')} in all, {report.refused:,} refused"
    )
    emit(asdict(report), [line], as_json=as_json)
    if report.refused:
        note("what was refused is found by keywords; see: hiermem doctor", quiet=quiet)
        raise typer.Exit(1)


def doctor(
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Make everything agree.")] = False,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Only of this one; else of all.")
    ] = None,
    location: LocationOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say where rows and vectors disagree, and repair it.

    Keyword rows are compared too. Ends with exit code 1 where something disagrees.
    """
    del quiet
    with opened(location) as hiermem:
        report = hiermem.doctor(repair=repair, tenant=tenant)
    well = is_well(report, is_repair=repair)
    value = asdict(report) | {"is_sound": report.is_sound, "well": well}
    emit(value, doctor_lines(report, is_repair=repair), as_json=as_json)
    if not well:
        raise typer.Exit(1)


def health(
    *,
    location: LocationOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what works now.

    Ends with exit code 1 where the storage fails; a search that is weaker than usual is told only.
    """
    del quiet
    with opened(location) as hiermem:
        found = hiermem.health()
    emit(asdict(found), [_health_table(found)], as_json=as_json)
    if found.status == "unhealthy":
        raise typer.Exit(1)


def _reindexed(location: str | None, *, change: "OnEmbedderChange", quiet: bool) -> "ReindexReport":
    try:
        with (
            opened(location, on_embedder_change=change) as hiermem,
            progress_bar("making vectors", quiet=quiet) as move,
        ):
            return hiermem.reindex(progress=move)
    except EmbedderMismatchError as error:
        reason = (
            f"vectors here are by {error.stored}, not by {error.given}; leave them to the program "
            "that made them, or replace them all: hiermem reindex --change-embedder"
        )
        raise ConfigurationError("embedder", reason) from error


def _health_table(health: "Health") -> str:
    parts = {name: getattr(health, name) for name in ("rows", "keywords", "index", "embedder")}
    rows = [
        ("all", health.status, "", health.last_error or ""),
        *(
            (name, part.status, f"{part.latency_ms:.1f}", part.message)
            for name, part in parts.items()
            if part is not None
        ),
    ]
    waiting = [
        ("waiting for the index", f"{health.index_lag:,}"),
        ("updates due", f"{health.queue_depth:,}"),
        ("updates given up", f"{health.dead_jobs:,}"),
    ]
    lines = table(("part", "status", "ms", "message"), rows)
    return "\n".join([lines, "", *(f"{name}: {count}" for name, count in waiting)])
