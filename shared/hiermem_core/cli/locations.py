"""`hiermem init` and `hiermem stats`: the memory as a whole."""

from dataclasses import asdict

import typer

from hiermem_core.cli.opening import find_place, named_tenant, opened
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import emit, note, table
from hiermem_core.cli.wording import ESTIMATED


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
        counts, health = hiermem.tenant(name).stats(), hiermem.health()
    facts = asdict(counts)
    shown = facts | {"health": ": ".join(filter(None, (health.status, health.last_error)))}
    rows = [(name.replace("_", " "), str(fact)) for name, fact in shown.items()]
    emit(facts | {"health": asdict(health)}, [table(rows[0], rows[1:])], as_json=as_json)
    note(ESTIMATED, quiet=quiet or counts.exact_counter)
    if health.status == "unhealthy":
        raise typer.Exit(1)
