"""How turns, threads and warnings read, to people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.displays.printing import printable, table
from hiermem_core.models.plain import dump_json
from hiermem_core.models.turns import CANONICAL_ROLES, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from hiermem_core.models.threads import ThreadInfo
    from hiermem_core.models.warnings import ContextWarning

_MEANINGS = {
    "turns_trimmed": "left out to fit the budget",
    "turns_not_covered": "left out, and covered by no notes",
    "over_budget": "shortened: the current exchange alone does not fit the budget",
    "tool_result_truncated": "with tool results shortened to fit the budget",
    "orphan_results_dropped": "left out: tool results without their call",
    "pending_calls_dropped": "tool calls left out: they have no result",
    "leading_turns_dropped": "left out: before the first user turn",
    "blank_turns_dropped": "left out: they say nothing",
    "turn_unreadable": "unreadable as stored, shown as placeholders",
    "counter_failed": "the token counter failed, so all figures are estimates",
    "notes_trimmed": "the notes left out to fit the budget",
    "recall_trimmed": "recalled, but left out to fit the budget",
    "recall_failed": "nothing recalled, as the search failed; see: hiermem health",
    "semantic_unavailable": "found by keywords only, as the embedder failed; see: hiermem health",
    "index_rebuilding": (
        "found by keywords only, as the stored vectors are by another embedder; "
        "to make them anew: hiermem reindex --change-embedder"
    ),
    "unknown_namespace": "this namespace holds no entry",
}
_LABELS = {"close": "did you mean"}
_INDENT = "  "

ESTIMATED = "token counts are estimates; for exact ones run: hiermem tokens fetch"

KEYWORDS_ONLY = (
    "found by keywords only; to find by meaning too, install the extra that makes vectors: "
    'pip install "hiermem-core[embed]"'
)


def explain(warning: ContextWarning) -> str:
    """Say a warning in one line: what was left out, how much of it, and why."""
    meaning = _MEANINGS.get(warning.code, "weaker than asked for")
    count = f"{counted(warning.count, 'turn')} " if warning.count else ""
    facts = ", ".join(_facts(warning))
    return f"{warning.code}: {count}{meaning}" + (f" ({facts})" if facts else "")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, such as `1 turn` or `2,000 turns`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def moment_text(moment: datetime | None) -> str:
    """Return a time to the second, in UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%SZ}" if moment else ""


def as_turn(message: Any) -> Turn:
    """Return what a context's message says as a turn; an adapter's context holds its framework's.

    Of such a message nothing is known but its role and its text.
    """
    if isinstance(message, Turn):
        return message
    role = getattr(message, "role", None) or getattr(message, "type", "")
    name = str(getattr(role, "value", role))
    text = getattr(message, "content", "")
    content = text if isinstance(text, str) else str(getattr(message, "text", "") or "")
    return Turn(role=CANONICAL_ROLES.get(name, "user"), content=content)


def turn_text(turn: Turn) -> str:
    """Return a turn for reading: a line about it, then all it says, indented."""
    said = [turn.content or "", *asides(turn)]
    return "\n".join([_heading(turn), indented("\n".join(line for line in said if line))])


def indented(text: str) -> str:
    """Return a text for reading, indented, so that none of it passes for a line of ours."""
    return "\n".join(_INDENT + line for line in printable(text).split("\n"))


def threads_table(threads: Iterable[ThreadInfo], counter: str) -> str:
    """Return a line per thread; tokens by the counter of that id."""
    rows = [
        (
            info.thread_id,
            f"{info.turns:,}",
            f"{info.tokens.get(counter, 0):,}",
            moment_text(info.created_at),
            moment_text(info.updated_at),
        )
        for info in threads
    ]
    return table(("thread", "turns", "tokens", "created", "updated"), rows)


def _heading(turn: Turn) -> str:
    tokens = next(iter(turn.token_counts.values()), None)
    facts = [
        f"#{turn.seq} {turn.role}" if turn.seq else turn.role,
        turn.name,
        f"answers {turn.tool_call_id}" if turn.tool_call_id else "",
        moment_text(turn.created_at),
        "" if tokens is None else counted(tokens, "token"),
        "pinned" if turn.pinned else "",
        "archived" if turn.status == "archived" else "",
    ]
    return printable(", ".join(fact for fact in facts if fact), keep="")


def asides(turn: Turn) -> Iterator[str]:
    """Yield what a turn says beside its text: what it shows, and what it calls."""
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
        yield counted(warning.tokens, "token")
    if last is not None:
        yield f"seq {first} to {last}"
    told = {_LABELS.get(name, name): fact for name, fact in facts.items() if fact != []}
    yield from (f"{name} {_fact_text(fact)}" for name, fact in told.items())


def _fact_text(fact: object) -> str:
    if isinstance(fact, dict):
        return " ".join(f"{name} {_fact_text(value)}" for name, value in fact.items())
    if isinstance(fact, list | tuple):
        return " or ".join(map(str, fact))
    return f"{fact:,}" if isinstance(fact, int) else str(fact)
