"""How contexts read, to people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.cli.entry_wording import hit_line
from hiermem_core.cli.output import table
from hiermem_core.cli.wording import explain, turn_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core.models.context import Context


def context_lines(context: Context) -> Iterator[str]:
    """Yield a context: where the tokens went, what was left out and recalled, the messages."""
    receipt = context.receipt
    yield f"{receipt.total:,} of {receipt.budget:,} tokens, by {receipt.counter}\n"
    rows = [(part.name, f"{part.tokens:,}", f"{len(part.ids):,}") for part in receipt.sections]
    yield table(("section", "tokens", "items"), rows) + "\n"
    if context.warnings:
        yield "\n".join(map(explain, context.warnings)) + "\n"
    if context.hits:
        yield "\n".join(["recalled, best first:", *map(hit_line, context.hits)]) + "\n"
    yield from map(turn_text, context.messages)
