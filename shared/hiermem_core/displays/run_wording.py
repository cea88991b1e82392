"""How patterns, sessions and steps read, to people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.displays.printing import table
from hiermem_core.displays.wording import indented, moment_text
from hiermem_core.models.plain import dump_json
from hiermem_core.models.text import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hiermem_core.models.patterns import Pattern, PatternHit
    from hiermem_core.models.sessions import Session, Step


def pattern_text(pattern: Pattern) -> str:
    """Return a pattern in one line: its name, how well it has done, the beginning of its data."""
    figures = f"confidence {pattern.confidence:.2f}, {used_text(pattern)}"
    return f"{pattern.name}: {figures}: {shortened(dump_json(pattern.data))}"


def pattern_hit_text(hit: PatternHit) -> str:
    """Return a pattern that was found in one line, its score first."""
    return f"{hit.score:.2f}  {pattern_text(hit.pattern)}"


def used_text(pattern: Pattern) -> str:
    """Say how often a pattern was used."""
    return "used once" if pattern.uses == 1 else f"used {pattern.uses:,} times"


def patterns_table(patterns: Iterable[Pattern]) -> str:
    """Return a line per pattern."""
    rows = [
        (one.name, f"{one.confidence:.2f}", f"{one.uses:,}", shortened(dump_json(one.data)))
        for one in patterns
    ]
    return table(("pattern", "confidence", "uses", "data"), rows)


def session_text(session: Session) -> str:
    """Return a session in one line: how it stands, since when, the beginning of its data."""
    about = f": {shortened(dump_json(session.data))}" if session.data else ""
    since = moment_text(session.ended_at or session.started_at)
    return f"{session.id}: {session.status} since {since}{about}"


def sessions_table(sessions: Iterable[Session]) -> str:
    """Return a line per session."""
    rows = [
        (one.id, one.status, moment_text(one.started_at), moment_text(one.ended_at))
        for one in sessions
    ]
    return table(("session", "status", "started", "ended"), rows)


def step_text(step: Step) -> str:
    """Return a step for reading: a line about it, then what was seen, done and got, indented."""
    worth = "" if step.reward is None else f", reward {step.reward:g}"
    heading = f"#{step.step} {moment_text(step.created_at)}{worth}"
    return "\n".join([heading, *map(indented, step_lines(step))])


def step_lines(step: Step) -> Iterator[str]:
    """Yield what was seen, done and got, as far as it was noted."""
    said = {"saw": step.state, "did": step.action, "got": step.next_state}
    for name, value in said.items():
        if value is not None:
            yield f"{name} {value if isinstance(value, str) else dump_json(value)}"
