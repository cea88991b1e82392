"""Turns, threads and contexts as plain JSON, for programs. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hiermem_core.cli.wording import explain

if TYPE_CHECKING:
    from hiermem_core.models.context import Context, ContextWarning
    from hiermem_core.models.threads import ThreadInfo
    from hiermem_core.models.turns import Turn


def turn_json(turn: Turn) -> dict[str, Any]:
    """Return a turn without the dump of the framework it came from."""
    facts = asdict(turn)
    del facts["replaced"], facts["origin"]
    facts["created_at"] = turn.created_at.isoformat() if turn.created_at else None
    return facts | {"framework": turn.origin.framework if turn.origin else None}


def thread_json(info: ThreadInfo) -> dict[str, Any]:
    """Return what is known about a thread."""
    return {
        "thread": info.thread_id,
        "turns": info.turns,
        "last_seq": info.last_seq,
        "tokens": dict(info.tokens),
        "created_at": info.created_at.isoformat(),
        "updated_at": info.updated_at.isoformat(),
    }


def context_json(context: Context) -> dict[str, Any]:
    """Return a context; its messages in the form of the OpenAI chat API."""
    receipt = context.receipt
    return {
        "budget": receipt.budget,
        "tokens": receipt.total,
        "counter": receipt.counter,
        "exact_counter": receipt.exact,
        "sections": {section.name: section.tokens for section in receipt.sections},
        "warnings": [_warning_json(warning) for warning in context.warnings],
        "notes": context.notes,
        "messages": context.to_openai(),
    }


def _warning_json(warning: ContextWarning) -> dict[str, Any]:
    return asdict(warning) | {"text": explain(warning)}
