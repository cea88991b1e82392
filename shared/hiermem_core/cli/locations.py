"""`hiermem init` and `hiermem stats`: the memory as a whole."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hiermem_core as core
from hiermem_core.cli.backups import REPLACE
from hiermem_core.cli.consent import DryRunOption, YesOption, ask, check_can_ask
from hiermem_core.cli.opening import find_place, is_stored, lacks_embedder, named_tenant, opened
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import emit, note
from hiermem_core.displays.entry_wording import named_counts
from hiermem_core.displays.printing import table
from hiermem_core.displays.wording import ESTIMATED, KEYWORDS_ONLY
from hiermem_core.errors import InvalidInputError

if TYPE_CHECKING:
    from hiermem_core.exporting.restoring import RestoreReport
    from hiermem_core.models.results import IndexStats, MemoryStats
    from hiermem_core.settings import Options

BACKENDS = ("sqlite", "chroma", "hybrid")


def init(
    *,
    location: Annotated[
        str | None,
        typer.Option(
            "--path",
            "--location",
            metavar="PATH",
            help="Folder, .db file or postgresql+psycopg:// URL of the memory; else "
            "HIERMEM_LOCATION, else your data folder.",
        ),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend", metavar="NAME", help="sqlite, chroma or hybrid; else HIERMEM_BACKEND."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace what is there; it is kept beside as a backup."),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the file, and every part, at the end.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Create the memory, unless it is there.

    With --force one that is there is replaced by an empty one, in one step, and kept beside it as
    a backup, which hiermem restore takes. A memory is the same whatever the backend, which says how
    it is searched; every later command takes it from HIERMEM_BACKEND.
    """
    _check_backend(backend)
    if force:
        check_can_ask(dry_run=dry_run, yes=yes)
    place = find_place(location)
    options: Options = {} if backend is None else {"backend": backend}  # type: ignore[typeddict-item]  # checked
    before = _replaced(str(place), dry_run=dry_run, yes=yes) if force else None
    created = not is_stored(location) or before is not None
    replaced = None if before is None else before.replaced
    kept = None if before is None or before.kept is None else str(before.kept)
    value: dict[str, Any] = {"location": str(place), "created": created}
    value |= {"replaced": replaced, "kept": kept, "dry_run": dry_run}
    if dry_run:
        emit(value, [_would(str(place), replaced, created=created)], as_json=as_json)
        return
    with opened(location, create=True, **options) as hiermem:
        counter = hiermem.counter
        name = hiermem.tenant("-").memory.stats().backend
        faults = _faults(hiermem) if verify else []
    exact = getattr(counter, "exact", True)
    value |= {"counter": counter.id, "exact_counter": exact, "backend": name}
    if verify:
        value |= {"verified": not faults, "faults": faults}
    lines = [f"{place}: {'created' if created else 'is there already'}", *faults]
    emit(value, lines + (["verified"] if verify and not faults else []), as_json=as_json)
    if replaced is not None:
        note(f"in the place of {replaced}, kept at {kept}", quiet=quiet)
    if backend is not None and core.HierMemSettings.read().backend != backend:
        note(f"to search it so from now on: export HIERMEM_BACKEND={backend}", quiet=quiet)
    note(ESTIMATED, quiet=quiet or exact)
    note(KEYWORDS_ONLY, quiet=quiet or not lacks_embedder())
    note("next: hiermem import FILE --tenant NAME", quiet=quiet)
    if faults:
        raise typer.Exit(1)


def stats(
    *,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what a tenant has stored, and how the storage is."""
    name = named_tenant(tenant)
    with opened(location) as hiermem:
        owner = hiermem.tenant(name)
        counts, memory, health = owner.stats(), owner.memory.stats(), hiermem.health()
    facts = asdict(counts)
    shown = facts | _about(memory)
    shown |= {"health": ": ".join(filter(None, (health.status, health.last_error)))}
    rows = [(name.replace("_", " "), str(fact)) for name, fact in shown.items()]
    value = facts | {"memory": asdict(memory), "health": asdict(health)}
    emit(value, [table(rows[0], rows[1:])], as_json=as_json)
    note(ESTIMATED, quiet=quiet or counts.exact_counter)
    note(KEYWORDS_ONLY, quiet=quiet or not lacks_embedder())
    if health.status == "unhealthy":
        raise typer.Exit(1)


def _about(memory: "MemoryStats") -> dict[str, str]:
    """Return what is told of the entries, of the vectors, and of what answers each mode."""
    facts = {
        "entries": f"{memory.entries}",
        "patterns": f"{memory.patterns}" if memory.patterns else "",
        "by namespace": named_counts(memory.entries_by_namespace),
        "by type": named_counts(memory.entries_by_type),
        "expired": f"{memory.expired}" if memory.expired else "",
        "backend": memory.backend,
        "vectors": _vectors(memory.index),
    }
    engines = {f"{mode} search": engine for mode, engine in memory.engines.items()}
    return {name: fact for name, fact in (facts | engines).items() if fact}


def _vectors(index: "IndexStats") -> str:
    by = f" by {index.model_id}" if index.model_id else ""
    more = {"waiting": index.pending, "failed": index.failed, "of a part only": index.shortened}
    told = [f"{count:,} {name}" for name, count in more.items() if count]
    return ", ".join([f"{index.indexed:,}{by}", *told])


def _check_backend(backend: str | None) -> None:
    if backend is not None and backend not in BACKENDS:
        raise InvalidInputError("backend", f"is unknown; use one of {', '.join(BACKENDS)}")


def _replaced(place: str, *, dry_run: bool, yes: bool) -> "RestoreReport | None":
    """Put an empty memory in the place of one that holds something; `None`: none does."""
    from hiermem_core.encryption import codec_in_use  # noqa: PLC0415 - not for --help
    from hiermem_core.exporting.restoring import start_anew  # noqa: PLC0415 - as above
    from hiermem_core.models.moments import to_milliseconds  # noqa: PLC0415 - as above

    now_ms = to_milliseconds(datetime.now(UTC))
    found = start_anew(place, now_ms=now_ms, dry_run=True)
    replaced = found.replaced
    if replaced is None:
        return None
    ask(REPLACE.format(place), lambda: replaced, dry_run=dry_run, yes=yes)
    if dry_run:
        return found
    codec = codec_in_use(None, core.HierMemSettings.read())
    return start_anew(place, now_ms=now_ms, codec=codec)


def _would(place: str, replaced: str | None, *, created: bool) -> str:
    if replaced is not None:
        return f"{place}: would be empty, in the place of {replaced}, which would be kept"
    return f"{place}: would be created" if created else f"{place}: is there already"


def _faults(hiermem: "core.HierMem") -> list[str]:
    """Return what is wrong with a memory, a line each."""
    health, report = hiermem.health(), hiermem.doctor()
    faults = []
    if health.status == "unhealthy":
        faults.append(f"storage: {health.last_error or 'unhealthy'}")
    if not report.is_sound:
        faults.append("rows and vectors disagree; see: hiermem doctor")
    return faults
