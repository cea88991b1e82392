"""Writing and reading sessions: short transactions, a step numbered where it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, update

from hiermem_core.errors import ConflictError, SessionNotFoundError
from hiermem_core.models import events
from hiermem_core.models.ids import new_id
from hiermem_core.models.moments import to_the_millisecond
from hiermem_core.models.sessions import Session, Step
from hiermem_core.operations import touched
from hiermem_core.sessions.rows import (
    find_session,
    is_session,
    newest_step,
    session_row,
    sessions_of,
    step_row,
    steps_by_id,
    steps_of,
)
from hiermem_core.storage.run_tables import sessions, trajectories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from hiermem_core.models.events import Event
    from hiermem_core.models.sessions import SessionStatus
    from hiermem_core.protocols import Clock
    from hiermem_core.sessions.checking import StepDraft
    from hiermem_core.storage.database import Database

_OPEN = frozenset({"active", "paused"})


class SessionStore:
    """Keep the sessions of all tenants.

    Args:
        tell: Takes the events of a change, after its commit.
    """

    def __init__(self, database: Database, *, clock: Clock, tell: Callable[[Event], None]) -> None:
        self._database = database
        self._clock = clock
        self._tell = tell

    def start(
        self,
        tenant: str,
        session_id: str,
        data: Mapping[str, Any] | None = None,
        user_id: str | None = None,
    ) -> Session:
        """Start a session, or have one that is there be active again."""
        now = to_the_millisecond(self._clock.now())
        with self._database.write(tenant) as connection:
            old = find_session(connection, tenant, session_id, locked=True)
            standing = old or Session(id=session_id, started_at=now)
            session = replace(
                standing,
                status="active",
                ended_at=None,
                data=standing.data if data is None else data,
                user_id=user_id or standing.user_id,
            )
            _write(connection, tenant, session, old)
        self._tell(events.SessionChanged(tenant, session_id, session.status))
        return session

    def end(
        self,
        tenant: str,
        session_id: str,
        status: SessionStatus,
        data: Mapping[str, Any] | None = None,
    ) -> Session:
        """Give a session another status.

        Raises:
            SessionNotFoundError: There is none.
        """
        now = to_the_millisecond(self._clock.now())
        with self._database.write(tenant) as connection:
            old = find_session(connection, tenant, session_id, locked=True)
            if old is None:
                raise SessionNotFoundError(session_id)
            session = replace(
                old,
                status=status,
                ended_at=None if status in _OPEN else now,
                data=old.data if data is None else data,
            )
            _write(connection, tenant, session, old)
        self._tell(events.SessionChanged(tenant, session_id, status))
        return session

    def log(self, tenant: str, session_id: str, drafts: Sequence[StepDraft]) -> list[Step]:
        """Store steps after the newest, in a session that is started where it is not there.

        One transaction. A step whose id the session has is returned as it is.

        Raises:
            ConflictError: A step of another session bears the id of one.
        """
        if not drafts:
            return []
        now = to_the_millisecond(self._clock.now())
        with self._database.write(tenant) as connection:
            old = find_session(connection, tenant, session_id, locked=True)
            ids = [draft.id for draft in drafts if draft.id is not None]
            steps = steps_by_id(connection, tenant, ids)
            if any(step.session_id != session_id for step in steps.values()):
                raise ConflictError("a step of another session bears this id; give another")
            last = newest_step(connection, tenant, session_id)
            fresh: list[Step] = []
            logged = []
            for draft in drafts:
                step = None if draft.id is None else steps.get(draft.id)
                if step is None:
                    step = _step(draft, session_id, last + 1 + len(fresh), now)
                    steps[step.id] = step
                    fresh.append(step)
                logged.append(step)
            if fresh and old is None:
                session = Session(id=session_id, started_at=now, user_id=drafts[0].user_id)
                _write(connection, tenant, session, None)
            if fresh:
                touched(step.id for step in fresh)
                rows = [step_row(tenant, step) for step in fresh]
                connection.execute(insert(trajectories), rows)
        if fresh and old is None:
            self._tell(events.SessionChanged(tenant, session_id, "active"))
        if fresh:
            self._tell(events.StepsLogged(tenant, session_id, len(fresh), fresh[-1].step))
        return logged

    def delete(self, tenant: str, session_id: str) -> bool:
        """Delete a session with its steps; say whether there was one."""
        with self._database.write(tenant) as connection:
            gone = delete(sessions).where(is_session(tenant, session_id))
            was_there = connection.execute(gone).rowcount > 0
            if was_there:
                touched((session_id,))
        if was_there:
            self._tell(events.SessionDeleted(tenant, session_id))
        return was_there

    def get(self, tenant: str, session_id: str) -> Session | None:
        """Return a session; `None` where there is none."""
        with self._database.read() as connection:
            return find_session(connection, tenant, session_id)

    def steps(self, tenant: str, session_id: str, *, after: int) -> list[Step]:
        """Return the steps of a session after one, in order."""
        with self._database.read() as connection:
            return list(steps_of(connection, tenant, session_id, after=after))

    def listed(self, tenant: str, status: SessionStatus | None, *, limit: int) -> list[Session]:
        """Return the sessions of a tenant, those started last first."""
        where = () if status is None else (sessions.c.status == status,)
        with self._database.read() as connection:
            return sessions_of(connection, tenant, *where, limit=limit)


def _step(draft: StepDraft, session_id: str, number: int, now: datetime) -> Step:
    return Step(
        id=draft.id or new_id(now),
        session_id=session_id,
        step=number,
        action=draft.action,
        state=draft.state,
        reward=draft.reward,
        next_state=draft.next_state,
        created_at=now,
    )


def _write(connection: Connection, tenant: str, session: Session, old: Session | None) -> None:
    row = session_row(tenant, session)
    if session != old:
        touched((session.id,))
    if old is None:
        connection.execute(insert(sessions).values(row))
    elif session != old:
        connection.execute(update(sessions).where(is_session(tenant, session.id)).values(row))
