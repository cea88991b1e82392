"""`hiermem init` and `hiermem stats`: the memory as a whole."""

from dataclasses import asdict

import typer

import hiermem_core as core
from hiermem_core.cli.opening import opened, opened_tenant
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import emit, note, table
from hiermem_core.cli.wording import say_if_estimated


def init(
    *,
    location: LocationOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Create the memory, unless it is there already."""
    created = not _exists(location)
    with opened(location, create=True) as hiermem:
        value = {"location": hiermem.location, "created": created, "counter": hiermem.counter.id}
        exact = getattr(hiermem.counter, "exact", True)
    told = "created" if created else "is there already"
    emit(value | {"exact_counter": exact}, [f"{value['location']}: {told}"], as_json=as_json)
    say_if_estimated(exact=exact, quiet=quiet)
    note("next: hiermem import FILE --tenant NAME", quiet=quiet)


def stats(
    *,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what a tenant has stored, and whether the storage is healthy."""
    with opened_tenant(location, tenant) as owner:
        counts = owner.stats()
        health = owner.hiermem.health()
    facts = asdict(counts)
    rows = [(name.replace("_", " "), str(fact)) for name, fact in facts.items()]
    rows.append(("health", ": ".join(filter(None, (health.status, health.last_error)))))
    emit(facts | {"health": asdict(health)}, [table(("", ""), rows)], as_json=as_json)
    say_if_estimated(exact=counts.exact_counter, quiet=quiet)
    if health.status == "unhealthy":
        raise typer.Exit(1)


def _exists(location: str | None) -> bool:
    try:
        with opened(location):
            return True
    except core.ConfigurationError:
        return False
