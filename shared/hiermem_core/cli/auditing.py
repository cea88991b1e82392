"""`hiermem audit`: who did what."""

from dataclasses import asdict
from typing import Annotated

import typer

from hiermem_core.cli.opening import opened_tenant
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import emit, note
from hiermem_core.displays.printing import table


def audit(
    *,
    after: Annotated[
        int, typer.Option("--after", min=0, help="Only records of a higher number.")
    ] = 0,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="Records at most.")
    ] = 1000,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print the audit log of a tenant, oldest first: operations, ids and outcomes, no content.

    It is written where HIERMEM_AUDIT is set, or `HierMem.open(audit=True)` is.
    """
    with opened_tenant(location, tenant) as owner:
        records = owner.audit(after=after, limit=limit)
    rows = [
        (
            str(one.number),
            one.at.isoformat(timespec="milliseconds"),
            one.actor or "",
            one.operation,
            one.thread_id or "",
            str(one.count),
            one.outcome,
        )
        for one in records
    ]
    listed = [asdict(one) | {"at": one.at.isoformat()} for one in records]
    lines = table(("number", "at", "actor", "operation", "thread", "count", "outcome"), rows)
    emit({"tenant": owner.name, "records": listed}, [lines] if rows else [], as_json=as_json)
    note("nothing is recorded", quiet=quiet or bool(rows))
