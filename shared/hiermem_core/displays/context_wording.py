"""How contexts read, to people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.displays.entry_wording import hit_line
from hiermem_core.displays.printing import table
from hiermem_core.displays.wording import as_turn, explain, turn_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hiermem_core.models.context import Context, Receipt


def context_lines(context: Context) -> Iterator[str]:
    """Yield a context: where the tokens went, what was left out and recalled, the messages."""
    yield receipt_table(context.receipt) + "\n"
    if context.warnings:
        yield "\n".join(map(explain, context.warnings)) + "\n"
    if context.hits:
        yield "\n".join(["recalled, best first:", *map(hit_line, context.hits)]) + "\n"
    yield from (turn_text(as_turn(message)) for message in context.messages)


def receipt_table(receipt: Receipt) -> str:
    """Return where the tokens went: a line for the sum, then one for each section."""
    rows = [(part.name, f"{part.tokens:,}", f"{len(part.ids):,}") for part in receipt.sections]
    told = f"{receipt.total:,} of {receipt.budget:,} tokens, by {receipt.counter}"
    return f"{told}\n\n{table(('section', 'tokens', 'items'), rows)}"
