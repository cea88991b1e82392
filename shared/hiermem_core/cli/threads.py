"""`hiermem threads` and `hiermem show`: what is stored."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

import hiermem_core as core
from hiermem_core.cli.opening import opened_tenant
from hiermem_core.cli.options import (
    JsonOption,
    LocationOption,
    QuietOption,
    TenantOption,
    ThreadArgument,
)
from hiermem_core.cli.output import emit, table, write, write_json
from hiermem_core.cli.wording import moment_text, turn_json, turn_text

_PAGE = 500


def threads(
    *,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List a tenant's threads, in the order of their first turn."""
    del quiet
    with opened_tenant(location, tenant) as owner:
        counter = owner.hiermem.counter.id
        found = list(_all_threads(owner))
    if not found and not as_json:
        write(f"tenant {owner.name} has no threads")
        return
    rows = [
        (
            info.thread_id,
            f"{info.turns:,}",
            f"{info.tokens.get(counter, 0):,}",
            moment_text(info.created_at),
            moment_text(info.updated_at),
        )
        for info in found
    ]
    value = {"tenant": owner.name, "threads": [_thread_json(info) for info in found]}
    head = ("thread", "turns", "tokens", "created", "updated")
    emit(value, [table(head, rows)] if rows else [], as_json=as_json)


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
        turns = _turns(owner.thread(thread), last=last, archived=archived)
        if as_json:
            value = {"tenant": owner.name, "thread": thread}
            write_json(value | {"turns": [turn_json(turn) for turn in turns]})
            return
        for turn in turns:
            write(turn_text(turn))


def _all_threads(owner: core.Tenant) -> Iterator[core.ThreadInfo]:
    offset = 0
    while page := owner.threads(limit=_PAGE, offset=offset):
        yield from page
        offset += len(page)


def _turns(thread: core.Thread, *, last: int | None, archived: bool) -> Iterator[core.Turn]:
    status: Any = "archived" if archived else "active"
    if last is not None:
        yield from thread.turns(last=last, status=status)
        return
    newest = thread.info().last_seq
    for after in range(0, newest, _PAGE):
        yield from thread.turns(after=after, before=after + _PAGE + 1, status=status)


def _thread_json(info: core.ThreadInfo) -> dict[str, Any]:
    return {
        "thread": info.thread_id,
        "turns": info.turns,
        "last_seq": info.last_seq,
        "tokens": dict(info.tokens),
        "created_at": info.created_at.isoformat(),
        "updated_at": info.updated_at.isoformat(),
    }
