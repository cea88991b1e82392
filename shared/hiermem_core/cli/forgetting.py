"""`hiermem forget`: erasing for good."""

from typing import Annotated, Any

import typer

from hiermem_core.cli.consent import DryRunOption, YesOption, ask, check_can_ask, counts_text
from hiermem_core.cli.given import given_fields
from hiermem_core.cli.opening import opened_tenant
from hiermem_core.cli.options import JsonOption, LocationOption, QuietOption, TenantOption
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.plain import receipt_json
from hiermem_core.displays.entry_wording import receipt_lines
from hiermem_core.errors import InvalidInputError


def forget(
    *,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", help="An entry; may be given several times."),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="PATH", help="Entries there and below.")
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="NAME", help="A thread with its notes, and its session."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="NAME", help="All that is stored with this user."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="All that the tenant has.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Erase what one option chooses, for good.

    It is unreadable at once; then its bytes are removed from the files, which takes as long as
    writing them anew. What was derived only from it goes too. Copies made earlier are not touched.
    """
    selector = given_fields(
        ids=ids or None,
        namespace=namespace,
        thread_id=thread,
        user_id=user,
        everything=everything or None,
    )
    _check(selector)
    check_can_ask(dry_run=dry_run, yes=yes)
    with opened_tenant(location, tenant) as owner:
        ask(
            "Forget for good",
            lambda: counts_text(owner.forget(**selector, dry_run=True).counts),
            dry_run=dry_run,
            yes=yes,
        )
        receipt = owner.forget(**selector, dry_run=dry_run)
    value = {"tenant": owner.name} | receipt_json(receipt)
    emit(value, receipt_lines(receipt), as_json=as_json)
    is_empty = not any(receipt.counts.values())
    note("nothing of it was stored", quiet=quiet or not is_empty)
    if not dry_run and not receipt.complete:
        raise typer.Exit(1)


def _check(selector: dict[str, Any]) -> None:
    if len(selector) != 1:
        reason = "give exactly one of --id, --namespace, --thread, --user and --everything"
        raise InvalidInputError("forget", reason)
