"""`hiermem get`, `list`, `namespaces`, `delete` and `purge`: the entries that are there."""

from typing import TYPE_CHECKING, Annotated

import typer

from hiermem_core.cli.consent import DryRunOption, YesOption, ask, check_can_ask, counts_text
from hiermem_core.cli.given import given_fields, given_json
from hiermem_core.cli.opening import opened_tenant
from hiermem_core.cli.options import (
    FilterOption,
    IdArgument,
    JsonOption,
    KeyOption,
    LimitOption,
    LocationOption,
    NamespaceOption,
    PlaceOption,
    QuietOption,
    TagOption,
    TenantOption,
    TypeOption,
    UserOption,
)
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.paging import all_namespaces
from hiermem_core.cli.plain import entry_json, warnings_json
from hiermem_core.cli.remembering import missing_entry
from hiermem_core.displays.entry_wording import entry_lines, entry_text
from hiermem_core.displays.wording import counted, explain
from hiermem_core.errors import InvalidInputError

if TYPE_CHECKING:
    from hiermem_core.service.memory_service import MemoryService

_EXPIRED = ("expired entry", "expired entries")


def get(
    entry_id: IdArgument = None,
    *,
    namespace: PlaceOption = None,
    key: KeyOption = None,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print an entry, by its id, or by its key and namespace."""
    del quiet
    name = _one_name(entry_id, namespace, key)
    with opened_tenant(location, tenant) as owner:
        entry = owner.memory.retrieve(entry_id, namespace=namespace, key=key)
    if entry is None:
        raise missing_entry(name)
    emit({"tenant": owner.name, "entry": entry_json(entry)}, entry_lines(entry), as_json=as_json)


def list_(
    *,
    namespace: NamespaceOption = None,
    filter_: FilterOption = None,
    type_: TypeOption = None,
    tag: TagOption = None,
    user: UserOption = None,
    limit: LimitOption = 100,
    offset: Annotated[
        int, typer.Option("--offset", min=0, metavar="N", help="How many to pass over.")
    ] = 0,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List entries, newest change first."""
    fields = given_fields(
        namespace=namespace,
        filter=given_json("filter", filter_),
        type=type_,
        tags=tag or None,
        user_id=user,
    )
    with opened_tenant(location, tenant) as owner:
        found = owner.memory.search(limit=limit, offset=offset, **fields)
    entries = [entry_json(hit) for hit in found]
    for entry in entries:
        del entry["score"], entry["explanation"]
    value = {"tenant": owner.name, "entries": entries, "warnings": warnings_json(found.warnings)}
    emit(value, map(entry_text, found), as_json=as_json)
    for warning in found.warnings:
        note(explain(warning), quiet=quiet)
    if len(found) == limit > 0:
        note(f"there may be more; to go on: --offset {offset + limit}", quiet=quiet)
    note("there are no such entries", quiet=quiet or bool(found) or not limit)


def namespaces(
    under: Annotated[
        str | None, typer.Argument(metavar="[UNDER]", help="Only this one and those below it.")
    ] = None,
    *,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the namespaces that hold an entry."""
    with opened_tenant(location, tenant) as owner:
        found = list(all_namespaces(owner.memory, under))
    emit({"tenant": owner.name, "namespaces": found}, found, as_json=as_json)
    note(f"tenant {owner.name} has no entries there", quiet=quiet or bool(found))


def delete(
    entry_id: IdArgument = None,
    *,
    namespace: PlaceOption = None,
    key: KeyOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Delete an entry, by its id, or by its key and namespace.

    It is absent at once. To have its bytes erased from the files too: hiermem forget.
    """
    del quiet
    name = _one_name(entry_id, namespace, key)
    check_can_ask(dry_run=dry_run, yes=yes)
    with opened_tenant(location, tenant) as owner:
        memory = owner.memory
        is_there = memory.retrieve(entry_id, namespace=namespace, key=key) is not None
        if is_there:
            ask(f"Delete {name}", lambda: counts_text({"entries": 1}), dry_run=dry_run, yes=yes)
        if not dry_run:
            is_there = memory.delete(entry_id, namespace=namespace, key=key)
    if not is_there:
        raise missing_entry(name)
    value = {"tenant": owner.name, "deleted": name, "dry_run": dry_run}
    emit(value, [f"{name}: {'would be deleted' if dry_run else 'deleted'}"], as_json=as_json)


def purge(
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Remove the entries that have expired, until none remains."""
    del quiet
    check_can_ask(dry_run=dry_run, yes=yes)
    with opened_tenant(location, tenant) as owner:
        memory = owner.memory
        ask(
            "Remove what has expired",
            lambda: counts_text({"entries": memory.stats().expired}),
            dry_run=dry_run,
            yes=yes,
        )
        removed = memory.stats().expired if dry_run else _purged(memory)
    line = f"{'would remove' if dry_run else 'removed'} {counted(removed, *_EXPIRED)}"
    value = {"tenant": owner.name, "removed": removed, "dry_run": dry_run}
    emit(value, [line], as_json=as_json)


def _purged(memory: "MemoryService") -> int:
    """Remove all expired entries; return how many."""
    removed, remaining = 0, 1
    while remaining:
        step = memory.purge_expired()
        removed, remaining = removed + step.removed, step.remaining
    return removed


def _one_name(entry_id: str | None, namespace: str | None, key: str | None) -> str:
    """Return what an entry is called by whoever asks for it.

    Raises:
        InvalidInputError: Neither an id nor a key is given, or both.
    """
    if (entry_id is None) == (key is None):
        raise InvalidInputError("id", "give either ID, or --key KEY and its --namespace")
    if entry_id is not None and namespace is not None:
        raise InvalidInputError("namespace", "belongs to --key; an id needs none")
    return entry_id if entry_id is not None else f"{namespace or 'default'}/{key}"
