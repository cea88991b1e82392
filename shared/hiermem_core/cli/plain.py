"""Turns, threads, contexts, entries and hits as plain JSON, for programs. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hiermem_core.displays.wording import explain
from hiermem_core.models.queries import TurnHit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hiermem_core.models.context import Context
    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.events import NotesLearned, UpdateFailed
    from hiermem_core.models.notes import ThreadState
    from hiermem_core.models.patterns import Pattern
    from hiermem_core.models.queries import Hit
    from hiermem_core.models.results import ForgetReceipt
    from hiermem_core.models.sessions import Session, Step
    from hiermem_core.models.threads import ThreadInfo
    from hiermem_core.models.turns import Turn
    from hiermem_core.models.warnings import ContextWarning


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


def notes_json(state: ThreadState, newest: int) -> dict[str, Any]:
    """Return the notes of a thread, and the newest seq in it."""
    facts = [
        {"text": fact.text, "turns": list(fact.seqs), "confirmed": fact.confirmed_seq}
        for fact in state.facts
    ]
    covered = {"covered": state.turn_count, "newest": newest}
    return covered | {"summary": state.summary, "facts": facts}


def notes_counts(state: ThreadState) -> dict[str, int]:
    """Return how much the notes of a thread hold."""
    return {"summaries": 1 if state.summary else 0, "facts": len(state.facts)}


def learning_json(
    due: int, learned: Iterable[NotesLearned], failed: Iterable[UpdateFailed]
) -> dict[str, Any]:
    """Return how many threads were due, what was learned, and what failed."""
    return {
        "due": due,
        "learned": [asdict(event) for event in learned],
        "failed": [asdict(event) for event in failed],
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
        "warnings": warnings_json(context.warnings),
        "notes": context.notes,
        "hits": [hit_json(hit) for hit in context.hits],
        "messages": context.to_openai(),
    }


def entry_json(entry: MemoryEntry) -> dict[str, Any]:
    """Return an entry without its vector."""
    facts = asdict(entry)
    del facts["embedding"]
    for name in ("created_at", "updated_at", "expires_at"):
        moment = facts[name]
        facts[name] = moment.isoformat() if moment else None
    return facts


def hit_json(hit: Hit | TurnHit) -> dict[str, Any]:
    """Return a hit; its `kind` is `entry` or `turn`."""
    if not isinstance(hit, TurnHit):
        return {"kind": "entry"} | entry_json(hit)
    return {"kind": "turn"} | asdict(hit) | {"created_at": hit.created_at.isoformat()}


def warnings_json(warnings: Iterable[ContextWarning]) -> list[dict[str, Any]]:
    """Return warnings with their text."""
    return [asdict(warning) | {"text": explain(warning)} for warning in warnings]


def pattern_json(pattern: Pattern) -> dict[str, Any]:
    """Return a pattern."""
    return asdict(pattern) | _moments(pattern, "created_at", "updated_at")


def session_json(session: Session) -> dict[str, Any]:
    """Return a session without its steps."""
    return asdict(session) | _moments(session, "started_at", "ended_at")


def step_json(step: Step) -> dict[str, Any]:
    """Return a step."""
    return asdict(step) | _moments(step, "created_at")


def _moments(value: Any, *names: str) -> dict[str, str | None]:
    moments = {name: getattr(value, name) for name in names}
    return {name: moment and moment.isoformat() for name, moment in moments.items()}


def receipt_json(receipt: ForgetReceipt) -> dict[str, Any]:
    """Return what a forget did."""
    failed = [{"what": name, "error": error} for name, error in receipt.failed]
    facts = {"counts": dict(receipt.counts), "failed": failed, "at": receipt.at.isoformat()}
    return asdict(receipt) | facts | {"complete": receipt.complete}
