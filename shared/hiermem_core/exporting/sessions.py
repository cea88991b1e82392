"""Storing the sessions and steps of an export as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, update

from hiermem_core.exporting.report import AT_HAND, ReadItem
from hiermem_core.models import events
from hiermem_core.operations import touched
from hiermem_core.sessions.rows import (
    find_session,
    is_session,
    session_row,
    sessions_by_id,
    step_row,
    steps_at,
    steps_by_id,
)
from hiermem_core.storage.run_tables import sessions, trajectories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Connection

    from hiermem_core.exporting.entries import OnConflict
    from hiermem_core.exporting.report import Outcome
    from hiermem_core.models.events import Event
    from hiermem_core.models.sessions import Session, Step
    from hiermem_core.storage.database import Database

Outcomes = list["Outcome | ReadItem"]


class SessionTaking:
    """Store sessions of exports.

    Args:
        tell: Takes the events of a change, after its commit.
    """

    def __init__(self, database: Database, *, tell: Callable[[Event], None]) -> None:
        self._database = database
        self._tell = tell

    def take_sessions(
        self, tenant: str, given: Sequence[Session], *, on_conflict: OnConflict, dry_run: bool
    ) -> Outcomes:
        """Store sessions in one transaction; return what became of each."""
        ids = [session.id for session in given]
        if dry_run:
            with self._database.read() as connection:
                return _session_outcomes(
                    given, sessions_by_id(connection, tenant, ids), on_conflict
                )
        with self._database.write(tenant) as connection:
            known = sessions_by_id(connection, tenant, ids)
            outcomes = _session_outcomes(given, known, on_conflict)
            _touch(given, outcomes)
            for session, outcome in zip(given, outcomes, strict=True):
                row = session_row(tenant, session)
                if outcome == "imported":
                    connection.execute(insert(sessions).values(row))
                elif outcome == "updated":
                    change = update(sessions).where(is_session(tenant, session.id))
                    connection.execute(change.values(row))
        for session, outcome in zip(given, outcomes, strict=True):
            if not isinstance(outcome, ReadItem):
                self._tell(events.SessionChanged(tenant, session.id, session.status))
        return outcomes

    def take_steps(
        self,
        tenant: str,
        given: Sequence[Step],
        *,
        is_apart: bool,
        on_conflict: OnConflict,
        dry_run: bool,
    ) -> Outcomes:
        """Store steps of one session in one transaction; return what became of each.

        Args:
            is_apart: The tenant's session of this name holds other steps, as was found before.
        """
        if dry_run:
            with self._database.read() as connection:
                return _step_outcomes(connection, tenant, given, on_conflict, is_apart=is_apart)
        session_id = given[0].session_id
        with self._database.write(tenant) as connection:
            find_session(connection, tenant, session_id, locked=True)
            outcomes = _step_outcomes(connection, tenant, given, on_conflict, is_apart=is_apart)
            _touch(given, outcomes)
            pairs = list(zip(given, outcomes, strict=True))
            old = [step.id for step, outcome in pairs if outcome == "updated"]
            new = [step for step, outcome in pairs if not isinstance(outcome, ReadItem)]
            its = (trajectories.c.tenant == tenant) & trajectories.c.id.in_(old)
            connection.execute(delete(trajectories).where(its))
            if new:
                connection.execute(insert(trajectories), [step_row(tenant, one) for one in new])
        if new:
            self._tell(events.StepsLogged(tenant, session_id, len(new), new[-1].step))
        return outcomes


def _touch(given: Sequence[Session | Step], outcomes: Outcomes) -> None:
    pairs = zip(given, outcomes, strict=True)
    written = [one.id for one, outcome in pairs if not isinstance(outcome, ReadItem)]
    if written:
        touched(written)


def _session_outcomes(
    given: Sequence[Session], known: Mapping[str, Session], on_conflict: OnConflict
) -> Outcomes:
    seen = dict(known)
    outcomes: Outcomes = []
    for session in given:
        stored = seen.setdefault(session.id, session)
        is_new = session.id not in known and stored is session
        outcomes.append("imported" if is_new else _met(session, stored, on_conflict))
    return outcomes


def _met(session: Session, stored: Session, on_conflict: OnConflict) -> Outcome | ReadItem:
    if session == stored:
        return ReadItem("session", session.id, "skipped", AT_HAND)
    if on_conflict == "overwrite":
        return "updated"
    detail = "it was changed since; add --on-conflict overwrite to replace it"
    return ReadItem("session", session.id, "skipped", "conflict", detail)


def _step_outcomes(
    connection: Connection,
    tenant: str,
    given: Sequence[Step],
    on_conflict: OnConflict,
    *,
    is_apart: bool,
) -> Outcomes:
    session_id = given[0].session_id
    placed = steps_at(connection, tenant, session_id, given[0].step, given[-1].step)
    named = steps_by_id(connection, tenant, [step.id for step in given])
    outcomes: Outcomes = []
    for step in given:
        there, same = placed.get(step.step), named.get(step.id)
        outcome = step_outcome(step, there, same, on_conflict=on_conflict, is_apart=is_apart)
        is_apart = is_apart or (isinstance(outcome, ReadItem) and outcome.reason == "conflict")
        outcomes.append(outcome)
    return outcomes


def step_outcome(
    step: Step,
    there: Step | None,
    same: Step | None,
    *,
    on_conflict: OnConflict,
    is_apart: bool,
) -> Outcome | ReadItem:
    """Return what becomes of a step. Pure.

    Args:
        there: The step at its place.
        same: The step of its id, in whatever session.
        is_apart: The session holds other steps, so that nothing is added to it.
    """
    if there == step:
        return ReadItem("step", step.id, "skipped", AT_HAND)
    if there is not None and there == same and on_conflict == "overwrite":
        return "updated"
    if there is not None or same is not None or is_apart:
        detail = "the session holds other steps; import into another tenant"
        return ReadItem("step", step.id, "skipped", "conflict", detail)
    return "imported"
