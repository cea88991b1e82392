"""`hiermem threads` and `hiermem show`: what is stored."""

from typing import Annotated

import typer

from hiermem_core.cli.opening import opened_tenant
from hiermem_core.cli.options import (
    JsonOption,
    LocationOption,
    QuietOption,
    TenantOption,
    ThreadArgument,
)
from hiermem_core.cli.output import emit, note, write, write_json
from hiermem_core.cli.paging import all_threads, turns_of
from hiermem_core.cli.plain import thread_json, turn_json
from hiermem_core.displays.wording import threads_table, turn_text


def threads(
    *,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List a tenant's threads."""
    with opened_tenant(location, tenant) as owner:
        found = list(all_threads(owner))
        counter = owner.counter.id
    value = {"tenant": owner.name, "threads": [thread_json(info) for info in found]}
    emit(value, [threads_table(found, counter)] if found else [], as_json=as_json)
    if not found:
        note(f"tenant {owner.name} has no threads", quiet=quiet)


def show(
    thread: ThreadArgument,
    *,
    last: Annotated[
        int | None, typer.Option("--last", min=0, metavar="N", help="Only the newest N turns.")
    ] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="The turns that were replaced or removed.")
    ] = False,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print the turns of a thread, whole."""
    del quiet
    with opened_tenant(location, tenant) as owner:
        turns = turns_of(owner.thread(thread), last=last, archived=archived)
        if as_json:
            value = {"tenant": owner.name, "thread": thread}
            write_json(value | {"turns": [turn_json(turn) for turn in turns]})
            return
        for turn in turns:
            write(turn_text(turn))
