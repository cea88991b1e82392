"""How turns, contexts and warnings read; text for people and JSON for programs. Pure but for notes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hiermem_core.cli.output import note, printable
from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from hiermem_core.models.context import ContextWarning
    from hiermem_core.models.turns import Turn

_MEANINGS = {
    "turns_trimmed": "left out to fit the budget",
    "turns_not_covered": "left out by the cap on exchanges",
    "over_budget": "shortened, since the current exchange alone does not fit the budget",
    "tool_result_truncated": "tool results shortened to fit the budget",
    "orphan_results_dropped": "left out: tool results without their call",
    "pending_calls_dropped": "tool calls left out: they have no result",
    "leading_turns_dropped": "left out: they stand before the first user turn",
    "blank_turns_dropped": "left out: they say nothing",
    "turn_unreadable": "not readable as stored; placeholders stand for them",
    "counter_failed": "the token counter failed; all figures are estimates",
}
_INDENT = "  "


def explain(warning: ContextWarning) -> str:
    """Say a warning in one line: what was left out, how much of it, and why."""
    meaning = _MEANINGS.get(warning.code, "weaker than asked for")
    count = f"{warning.count:,} turns " if warning.count else ""
    facts = ", ".join(_facts(warning))
    return f"{warning.code}: {count}{meaning}" + (f" ({facts})" if facts else "")


def warning_json(warning: ContextWarning) -> dict[str, Any]:
    """Return a warning as plain JSON."""
    return asdict(warning) | {"text": explain(warning)}


def moment_text(moment: datetime | None) -> str:
    """Return a time to the second, in UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%SZ}" if moment else ""


def turn_text(turn: Turn) -> str:
    """Return a turn for reading: a line about it, then all it says, indented."""
    said = [turn.content or "", *_asides(turn)]
    text = printable("\n".join(line for line in said if line))
    return "\n".join([_heading(turn), *(_INDENT + line for line in text.split("\n"))])


def turn_json(turn: Turn) -> dict[str, Any]:
    """Return a turn as plain JSON, without the dump of the framework it came from."""
    facts = {
        name: fact for name, fact in asdict(turn).items() if name not in {"origin", "replaced"}
    }
    facts["created_at"] = turn.created_at.isoformat() if turn.created_at else None
    return facts | {"framework": turn.origin.framework if turn.origin else None}


def say_if_estimated(*, exact: bool, quiet: bool) -> None:
    """Say how to get exact counts, if these are not."""
    if not exact:
        note("token counts are estimates; for exact ones run: hiermem tokens fetch", quiet=quiet)


def _heading(turn: Turn) -> str:
    tokens = next(iter(turn.token_counts.values()), None)
    facts = [
        f"#{turn.seq} {turn.role}" if turn.seq else turn.role,
        turn.name or "",
        f"answers {turn.tool_call_id}" if turn.tool_call_id else "",
        moment_text(turn.created_at),
        "" if tokens is None else f"{tokens:,} tokens",
        "pinned" if turn.pinned else "",
        turn.status if turn.status == "archived" else "",
    ]
    return printable(" · ".join(fact for fact in facts if fact), keep="")


def _asides(turn: Turn) -> Iterator[str]:
    for part in turn.parts:
        if part["type"] not in {"text", "refusal", "tool_call"}:
            yield f"[{part['type']} {part.get('kind', '')}".rstrip() + "]"
    for call in turn.tool_calls:
        args = call.args if isinstance(call.args, str) else dump_json(call.args)
        yield f"calls {call.name} {args} ({call.id})"


def _facts(warning: ContextWarning) -> Iterator[str]:
    facts = dict(warning.detail)
    first, last = facts.pop("first_seq", None), facts.pop("last_seq", None)
    if warning.tokens:
        yield f"{warning.tokens:,} tokens"
    if last is not None:
        yield f"seq {first} to {last}"
    for name, fact in facts.items():
        shown = (
            " ".join(f"{key} {value}" for key, value in fact.items())
            if isinstance(fact, dict)
            else fact
        )
        yield f"{name} {shown}"
