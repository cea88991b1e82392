"""`hiermem context`: what a model call would get of a thread."""

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
from hiermem_core.cli.output import emit, table
from hiermem_core.cli.wording import explain, say_if_estimated, turn_text, warning_json


def context(
    thread: ThreadArgument,
    *,
    budget: Annotated[
        int, typer.Option("--budget", min=0, metavar="TOKENS", help="Tokens of everything printed.")
    ] = 4000,
    question: Annotated[
        str | None, typer.Option("--question", metavar="TEXT", help="The user's new question.")
    ] = None,
    system: Annotated[
        str, typer.Option("--system", metavar="TEXT", help="The system prompt.")
    ] = "",
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print what a model call gets of a thread within a budget, and what was left out."""
    with opened_tenant(location, tenant) as owner:
        built = owner.thread(thread).context(current=question, budget_tokens=budget, system=system)
    value = {"tenant": owner.name, "thread": thread} | context_json(built)
    emit(value, _lines(built), as_json=as_json)
    say_if_estimated(exact=built.receipt.exact, quiet=quiet)


def context_json(built: core.Context) -> dict[str, Any]:
    """Return a context as plain JSON."""
    receipt = built.receipt
    return {
        "budget": receipt.budget,
        "tokens": receipt.total,
        "counter": receipt.counter,
        "exact_counter": receipt.exact,
        "sections": {section.name: section.tokens for section in receipt.sections},
        "warnings": [warning_json(warning) for warning in built.warnings],
        "notes": built.notes,
        "messages": built.to_openai(),
    }


def _lines(built: core.Context) -> Iterator[str]:
    receipt = built.receipt
    yield f"{receipt.total:,} of {receipt.budget:,} tokens, counted by {receipt.counter}"
    yield ""
    rows = [(part.name, f"{part.tokens:,}", f"{len(part.ids):,}") for part in receipt.sections]
    yield table(("section", "tokens", "turns"), rows)
    yield ""
    yield from map(explain, built.warnings)
    yield from [""] if built.warnings else []
    yield from map(turn_text, built.messages)
