"""`hiermem patterns` and `hiermem sessions`: ways of doing things, and what agents did."""

from typing import Annotated

import typer

from hiermem_core.cli.opening import opened_tenant
from hiermem_core.cli.options import (
    JsonOption,
    LimitOption,
    LocationOption,
    QuietOption,
    TenantOption,
)
from hiermem_core.cli.output import emit, note
from hiermem_core.cli.plain import pattern_json, session_json, step_json
from hiermem_core.displays.run_wording import patterns_table, sessions_table, step_text
from hiermem_core.errors import InvalidInputError, SessionNotFoundError


def patterns(
    question: Annotated[
        str | None, typer.Argument(metavar="[QUESTION]", help="Only what answers this, best first.")
    ] = None,
    *,
    min_confidence: Annotated[
        float,
        typer.Option("--min-confidence", metavar="X", help="Only from this on, from 0 to 1."),
    ] = 0.0,
    limit: LimitOption = 100,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the patterns, the most confident first, or find those that answer a question."""
    with opened_tenant(location, tenant) as owner:
        if question is None:
            found = owner.patterns.list(min_confidence=min_confidence, limit=limit)
            listed = [pattern_json(one) for one in found]
        else:
            hits = owner.patterns.find(question, k=limit, min_confidence=min_confidence)
            found = [hit.pattern for hit in hits]
            listed = [pattern_json(hit.pattern) | {"score": hit.score} for hit in hits]
    value = {"tenant": owner.name, "patterns": listed}
    emit(value, [patterns_table(found)] if found else [], as_json=as_json)
    note(f"tenant {owner.name} has no such patterns", quiet=quiet or bool(found))


def sessions(
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="Print the steps of this one.")
    ] = None,
    *,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="active, paused, completed, failed, abandoned or expired.",
        ),
    ] = None,
    limit: LimitOption = 100,
    location: LocationOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the sessions of agents, newest first, or print the steps of one, whole."""
    if session is not None and status is not None:
        raise InvalidInputError("status", "is for the list of sessions; leave it out")
    with opened_tenant(location, tenant) as owner:
        if session is None:
            found = owner.sessions(status, limit)  # type: ignore[arg-type]  # checked there
            value = {"tenant": owner.name, "sessions": [session_json(one) for one in found]}
            emit(value, [sessions_table(found)] if found else [], as_json=as_json)
            note(f"tenant {owner.name} has no such sessions", quiet=quiet or bool(found))
            return
        log = owner.session(session)
        known, steps = log.get(), log.steps()
    if known is None:
        raise SessionNotFoundError(session)
    told = {"session": session_json(known), "steps": [step_json(step) for step in steps]}
    emit({"tenant": owner.name} | told, [step_text(step) for step in steps], as_json=as_json)
    note(f"session {session} has no steps", quiet=quiet or bool(steps))
