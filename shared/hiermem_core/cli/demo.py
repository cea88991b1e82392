"""`hiermem demo`: the main job on a real conversation, telling what it does while it does it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

import hiermem_core as core
from hiermem_core.cli.contexts import context_json
from hiermem_core.cli.options import JsonOption, QuietOption
from hiermem_core.cli.output import note, table, write, write_json
from hiermem_core.cli.wording import explain, say_if_estimated
from hiermem_core.importing import find_source, import_memories

BUDGETS = (500, 1000, 4000, 16000)
QUESTION = "What was the reference number of the landlord's offer again?"

_FILE = Path("examples", "conversation.jsonl")
_PACKAGE = Path(core.__file__).parent


def demo(
    *,
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="A conversation of your own.")
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", metavar="TEXT", help="What to ask at the end of it.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Import a conversation into a temporary memory, and fit it into four budgets."""
    source = find_source(file or conversation_file())
    asked = question or (None if file else QUESTION)
    value: dict[str, Any] = {}
    with (
        TemporaryDirectory(prefix="hiermem-demo-") as folder,
        core.HierMem.open(folder) as hiermem,
    ):
        for facts, text in _steps(hiermem, source, asked):
            value |= facts
            if not as_json:
                write(text)
        exact = getattr(hiermem.counter, "exact", True)
    if as_json:
        write_json(value)
    say_if_estimated(exact=exact, quiet=quiet)
    note("the temporary memory is gone; to keep yours: hiermem init", quiet=quiet)


def conversation_file() -> Path:
    """Return the conversation that comes with HierMem: of the checkout, else of the wheel.

    Raises:
        InvalidInputError: It is in neither.
    """
    places = (_PACKAGE.parents[1] / _FILE, _PACKAGE / _FILE)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise core.InvalidInputError("file", "the demo conversation is missing; name one by --file")
    return found


def _steps(
    hiermem: core.HierMem, source: Path, question: str | None
) -> Iterator[tuple[dict[str, Any], str]]:
    """Do the main job; yield after each step what it gave, as JSON and as text."""
    yield {}, f"1. Import {source} into a temporary memory, {hiermem.location}"
    tenant = hiermem.tenant("demo")
    report = import_memories(source, tenant)
    yield {"import": report.to_dict()}, f"{report}\n"
    if not report.threads:
        return
    info = max(tenant.threads(), key=lambda info: info.turns)
    counter = hiermem.counter.id
    figures = f"{info.turns:,} turns, {info.tokens.get(counter, 0):,} tokens by {counter}"
    facts = {"thread": info.thread_id, "turns": info.turns, "tokens": dict(info.tokens)}
    yield facts, f"2. Read back thread {info.thread_id}: {figures}\n"
    asked = f'ask "{question}"' if question else "answer its newest question"
    yield {"question": question}, f"3. Build what a model reads to {asked}, within four budgets"
    tried = {budget: _try(tenant.thread(info.thread_id), budget, question) for budget in BUDGETS}
    yield {"contexts": [_tried_json(one) for one in tried.values()]}, _budgets_table(tried)
    yield {}, "\n4. What was left out of each, and why\n" + "\n".join(_left_out(tried))


def _try(
    thread: core.Thread, budget: int, question: str | None
) -> core.Context | core.BudgetExceededError:
    try:
        return thread.context(current=question, budget_tokens=budget)
    except core.BudgetExceededError as error:
        return error


Tried = core.Context | core.BudgetExceededError


def _tried_json(tried: Tried) -> dict[str, Any]:
    if isinstance(tried, core.Context):
        return context_json(tried)
    return {"budget": tried.available, "error": str(tried), "type": type(tried).__name__}


def _budgets_table(tried: Mapping[int, Tried]) -> str:
    contexts = [one for one in tried.values() if isinstance(one, core.Context)]
    names = list(dict.fromkeys(part.name for one in contexts for part in one.receipt.sections))
    head = ("budget", "used", "turns", "exchanges", "trimmed", *names)
    return table(head, [_row(one, names) for one in contexts])


def _row(context: core.Context, sections: Sequence[str]) -> list[str]:
    receipt, kept = context.receipt, context.messages
    trimmed = sum(warning.count for warning in context.warnings if warning.code == "turns_trimmed")
    exchanges = sum(turn.role == "user" and not turn.pinned for turn in kept)
    figures = (receipt.budget, receipt.total, len(kept), exchanges, trimmed)
    return [f"{figure:,}" for figure in (*figures, *map(receipt.tokens, sections))]


def _left_out(tried: Mapping[int, Tried]) -> Iterator[str]:
    for budget, one in tried.items():
        if isinstance(one, core.BudgetExceededError):
            yield f"{budget:,}: {one}"
        else:
            yield from (f"{budget:,}: {explain(warning)}" for warning in one.warnings)
