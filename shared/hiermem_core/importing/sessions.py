"""Storing batches of sessions and steps, and what became of each record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import insert, update

from hiermem_core.importing.records import SessionRecord, StepRecord, skipped
from hiermem_core.importing.report import ImportItem
from hiermem_core.models import events
from hiermem_core.models.sessions import Session, Step
from hiermem_core.operations import touched
from hiermem_core.sessions.rows import (
    is_session,
    newest_step,
    session_row,
    sessions_by_id,
    step_row,
    steps_by_id,
)
from hiermem_core.storage.run_tables import sessions, trajectories

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from hiermem_core.importing.entries import Outcome
    from hiermem_core.importing.importer import OnConflict
    from hiermem_core.models.events import Event
    from hiermem_core.storage.database import Database

_EDITED = "the session there is another by now; add --on-conflict overwrite"
_OTHER_STEP = "the step there is another by now; add --on-conflict overwrite"
_APART = "its session there is another; add --on-conflict overwrite, or delete that one"


@dataclass(slots=True)
class _Batch:
    """What a batch of records meets, as its own writes change it."""

    sessions: dict[str, Session]
    steps: dict[str, Step]
    newest: dict[str, int] = field(default_factory=dict)
    changed: dict[str, Session] = field(default_factory=dict)
    logged: dict[str, int] = field(default_factory=dict)


class SessionStoring:
    """Store records of sessions and steps of a tenant, or tell what storing them would do.

    A step whose session is not there starts one; where the source tells of that session later, it
    is given what the source says.

    Args:
        tell: Takes the events of a change, after its commit.
    """

    def __init__(
        self,
        database: Database,
        tenant: str,
        on_conflict: OnConflict,
        *,
        tell: Callable[[Event], None],
        dry_run: bool,
    ) -> None:
        self._database = database
        self._tenant = tenant
        self._overwrites = on_conflict == "overwrite"
        self._tell = tell
        self._dry_run = dry_run
        self._started: set[str] = set()
        self._apart: set[str] = set()

    def store(self, records: Sequence[SessionRecord | StepRecord]) -> list[Outcome]:
        """Store records in one transaction; return what became of each.

        Raises:
            BackendUnavailableError: The storage is full, locked or away. Nothing was stored.
        """
        database = self._database
        with database.read() if self._dry_run else database.write(self._tenant) as connection:
            batch = self._batch(connection, records)
            outcomes = [self._taken(connection, record, batch) for record in records]
        if not self._dry_run:
            for session in batch.changed.values():
                self._tell(events.SessionChanged(self._tenant, session.id, session.status))
            for name, count in batch.logged.items():
                self._tell(events.StepsLogged(self._tenant, name, count, batch.newest[name]))
        return outcomes

    def _batch(
        self, connection: Connection, records: Sequence[SessionRecord | StepRecord]
    ) -> _Batch:
        names = {one.ref if isinstance(one, SessionRecord) else one.session for one in records}
        steps = [str(one.draft.id) for one in records if isinstance(one, StepRecord)]
        return _Batch(
            sessions_by_id(connection, self._tenant, sorted(names)),
            steps_by_id(connection, self._tenant, steps),
        )

    def _taken(
        self, connection: Connection, record: SessionRecord | StepRecord, batch: _Batch
    ) -> Outcome:
        if isinstance(record, SessionRecord):
            return self._take_session(connection, record, batch)
        return self._take_step(connection, record, batch)

    def _take_session(
        self, connection: Connection, record: SessionRecord, batch: _Batch
    ) -> Outcome:
        old = None if record.ref in self._started else batch.sessions.get(record.ref)
        if old is not None and _is_said(record, old):
            return skipped(record.ref, "unchanged", kind="session")
        if old is not None and not self._overwrites:
            self._apart.add(record.ref)
            return _conflict(record, _EDITED)
        session = Session(
            id=record.ref,
            data=record.data,
            status=record.status,
            started_at=record.started_at or (old.started_at if old else record.clock_at),
            ended_at=record.ended_at,
            user_id=old.user_id if old else None,
        )
        self._started.discard(record.ref)
        self._write_session(connection, session, batch)
        return "imported" if old is None else "updated"

    def _take_step(self, connection: Connection, record: StepRecord, batch: _Batch) -> Outcome:
        old = batch.steps.get(str(record.draft.id))
        step = self._step_of(connection, record, old, batch)
        if step == old:
            return skipped(record.ref, "unchanged", kind="step")
        if record.session in self._apart:
            return _conflict(record, _APART)
        if old is not None and not self._overwrites:
            return _conflict(record, _OTHER_STEP)
        if record.session not in batch.sessions:
            self._started.add(record.session)
            started = Session(id=record.session, started_at=step.created_at)
            self._write_session(connection, started, batch)
        self._write_step(connection, step, old, batch)
        return "imported" if old is None else "updated"

    def _step_of(
        self, connection: Connection, record: StepRecord, old: Step | None, batch: _Batch
    ) -> Step:
        """Return the step of a record: where it is, or after the newest."""
        name, draft = record.session, record.draft
        if name not in batch.newest:
            batch.newest[name] = newest_step(connection, self._tenant, name)
        return Step(
            id=str(draft.id),
            session_id=name,
            step=old.step if old else batch.newest[name] + 1,
            action=draft.action,
            state=draft.state,
            reward=draft.reward,
            next_state=draft.next_state,
            created_at=record.created_at or (old.created_at if old else record.clock_at),
        )

    def _write_session(self, connection: Connection, session: Session, batch: _Batch) -> None:
        row, is_new = session_row(self._tenant, session), session.id not in batch.sessions
        batch.sessions[session.id] = batch.changed[session.id] = session
        if self._dry_run:
            return
        touched((session.id,))
        change = update(sessions).where(is_session(self._tenant, session.id))
        connection.execute((insert(sessions) if is_new else change).values(row))

    def _write_step(
        self, connection: Connection, step: Step, old: Step | None, batch: _Batch
    ) -> None:
        batch.steps[step.id] = step
        batch.newest[step.session_id] = max(step.step, batch.newest[step.session_id])
        batch.logged[step.session_id] = batch.logged.get(step.session_id, 0) + 1
        if self._dry_run:
            return
        touched((step.id,))
        is_it = (trajectories.c.tenant == self._tenant) & (trajectories.c.id == step.id)
        change = insert(trajectories) if old is None else update(trajectories).where(is_it)
        connection.execute(change.values(step_row(self._tenant, step)))


def _is_said(record: SessionRecord, session: Session) -> bool:
    """Tell whether a session has every value that the record states."""
    stated = (record.data, record.status, record.ended_at)
    known = (session.data, session.status, session.ended_at)
    return stated == known and record.started_at in {None, session.started_at}


def _conflict(record: SessionRecord | StepRecord, detail: str) -> ImportItem:
    return ImportItem(record.ref, "skipped", "conflict", detail, kind=record.kind)
