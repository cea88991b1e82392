"""`hiermem init` and `hiermem stats`: the memory as a whole."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from hiermem_core.cli.entry_wording import named_counts
from hiermem_core.cli.opening import find_place, lacks_embedder, named_tenant, opened
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import emit, note, table
from hiermem_core.cli.wording import ESTIMATED, KEYWORDS_ONLY

if TYPE_CHECKING:
    from hiermem_core.models.results import IndexStats, MemoryStats


def init(
    *,
    location: LocationOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Create the memory, unless it is there."""
    created = not find_place(location).exists
    with opened(location, create=True) as hiermem:
        counter, place = hiermem.counter, hiermem.location
    exact = getattr(counter, "exact", True)
    value = {"location": place, "created": created}
    value |= {"counter": counter.id, "exact_counter": exact}
    line = f"{place}: {'created' if created else 'is there already'}"
    emit(value, [line], as_json=as_json)
    note(ESTIMATED, quiet=quiet or exact)
    note(KEYWORDS_ONLY, quiet=quiet or not lacks_embedder())
    note("next: hiermem import FILE --tenant NAME", quiet=quiet)


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
