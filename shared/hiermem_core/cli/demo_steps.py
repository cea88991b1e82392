"""The steps of the demo: import, read back, fit into budgets, say what was left out, recall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hiermem_core as core
from hiermem_core.cli.demo_recall import questions_of, recall_steps
from hiermem_core.cli.plain import context_json
from hiermem_core.cli.vectors import make_vectors
from hiermem_core.displays.printing import table
from hiermem_core.displays.wording import counted, explain
from hiermem_core.importing import import_memories

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    Tried = core.Context | core.BudgetExceededError

BUDGETS = (500, 1000, 4000, 16000)


def steps(
    hiermem: core.HierMem,
    source: Path,
    question: str | None,
    *,
    facts: Path | None,
    quiet: bool,
) -> Iterator[tuple[dict[str, Any], str]]:
    """Do the main job; before and after each step, yield what it gave, as JSON and as text.

    Args:
        facts: Questions with their answers in the conversation.
    """
    yield {}, f"1. Import {source} into a temporary memory"
    tenant = hiermem.tenant("demo")
    report = import_memories(source, tenant)
    vectors = make_vectors(tenant, quiet=quiet)
    yield {"import": report.to_dict() | {"vectors": vectors}}, f"{report}\n"
    if report.threads:
        info = max(tenant.threads(), key=lambda info: info.turns)
        yield _read_back(info, hiermem.counter.id)
        thread = tenant.thread(info.thread_id)
        yield from _fit(thread, question)
        if facts is not None:
            model_id = vectors["model_id"] if vectors else None
            yield from recall_steps(thread, questions_of(facts), model_id)


def _read_back(info: core.ThreadInfo, counter: str) -> tuple[dict[str, Any], str]:
    figures = f"{counted(info.turns, 'turn')}, {counted(info.tokens.get(counter, 0), 'token')}"
    facts = {"thread": info.thread_id, "turns": info.turns, "tokens": dict(info.tokens)}
    return facts, f"2. Read back thread {info.thread_id}: {figures} by {counter}\n"


def _fit(thread: core.Thread, question: str | None) -> Iterator[tuple[dict[str, Any], str]]:
    asked = f'is asked "{question}"' if question else "answers the newest question"
    yield {"question": question}, f"3. Fit what a model reads when it {asked} into four budgets"
    tried = {budget: _try(thread, budget, question) for budget in BUDGETS}
    yield {"contexts": [_tried_json(one) for one in tried.values()]}, _budgets_table(tried)
    yield {}, "\n4. Say what was left out, and why\n" + "\n".join(_left_out(tried))


def _try(thread: core.Thread, budget: int, question: str | None) -> Tried:
    try:
        return thread.context(current=question, budget_tokens=budget)
    except core.BudgetExceededError as error:
        return error


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
