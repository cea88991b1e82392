"""Sessions and steps as rows of `sessions` and `trajectories`, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from hiermem_core.models.moments import from_milliseconds, to_milliseconds
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.models.sessions import Session, Step
from hiermem_core.storage.database import slices
from hiermem_core.storage.run_tables import sessions, trajectories

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Select, Table

_S, _T = sessions.c, trajectories.c
_PAGE = 500


def session_row(tenant: str, session: Session) -> dict[str, Any]:
    """Return the row of a session."""
    ended_at = session.ended_at
    return {
        "tenant": tenant,
        "id": session.id,
        "session_data": dump_json(session.data),
        "started_at": to_milliseconds(session.started_at),
        "ended_at": None if ended_at is None else to_milliseconds(ended_at),
        "status": session.status,
        "user_id": session.user_id,
    }


def session_of(row: Row[Any]) -> Session:
    """Return the session of a row."""
    return Session(
        id=row.id,
        data=load_json(row.session_data),
        status=row.status,
        started_at=from_milliseconds(row.started_at),
        ended_at=None if row.ended_at is None else from_milliseconds(row.ended_at),
        user_id=row.user_id,
    )


def step_row(tenant: str, step: Step) -> dict[str, Any]:
    """Return the row of a step."""
    return {
        "tenant": tenant,
        "id": step.id,
        "session_id": step.session_id,
        "step": step.step,
        "state": _dumped(step.state),
        "action": step.action,
        "reward": step.reward,
        "next_state": _dumped(step.next_state),
        "created_at": to_milliseconds(step.created_at),
    }


def step_of(row: Row[Any]) -> Step:
    """Return the step of a row."""
    return Step(
        id=row.id,
        session_id=row.session_id,
        step=row.step,
        state=_loaded(row.state),
        action=row.action,
        reward=row.reward,
        next_state=_loaded(row.next_state),
        created_at=from_milliseconds(row.created_at),
    )


def is_session(tenant: str, session_id: str) -> ColumnElement[bool]:
    """Return the condition that a row is a session."""
    return (_S.tenant == tenant) & (_S.id == session_id)


def find_session(
    connection: Connection, tenant: str, session_id: str, *, locked: bool = False
) -> Session | None:
    """Return a session, if it is there.

    Args:
        locked: Nobody else writes to it until the transaction ends.
    """
    query = select(sessions).where(is_session(tenant, session_id))
    row = connection.execute(query.with_for_update() if locked else query).first()
    return None if row is None else session_of(row)


def sessions_by_id(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, Session]:
    """Return those of some sessions that are there, by id."""
    found: dict[str, Session] = {}
    for some in slices(ids):
        query = select(sessions).where(_S.tenant == tenant, _S.id.in_(some))
        found |= {row.id: session_of(row) for row in connection.execute(query)}
    return found


def sessions_of(
    connection: Connection, tenant: str, *where: ColumnElement[bool], limit: int
) -> list[Session]:
    """Return the sessions of a tenant, those started last first."""
    query = select(sessions).where(_S.tenant == tenant, *where)
    page = query.order_by(_S.started_at.desc(), _S.id).limit(limit)
    return [session_of(row) for row in connection.execute(page)]


def every_session(connection: Connection, tenant: str) -> Iterator[Session]:
    """Yield the sessions of a tenant by id, page by page."""
    after = ""
    query = select(sessions).where(_S.tenant == tenant).order_by(_S.id).limit(_PAGE)
    while page := connection.execute(query.where(_S.id > after)).all():
        yield from map(session_of, page)
        after = page[-1].id


def steps_of(
    connection: Connection, tenant: str, session_id: str, *, after: int = 0
) -> Iterator[Step]:
    """Yield the steps of a session after one, in order, page by page."""
    query = _steps(tenant, session_id).order_by(_T.step).limit(_PAGE)
    while page := connection.execute(query.where(_T.step > after)).all():
        yield from map(step_of, page)
        after = page[-1].step


def steps_by_id(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, Step]:
    """Return those of some steps that are there, by id."""
    found: dict[str, Step] = {}
    for some in slices(ids):
        query = select(trajectories).where(_T.tenant == tenant, _T.id.in_(some))
        found |= {row.id: step_of(row) for row in connection.execute(query)}
    return found


def steps_at(
    connection: Connection, tenant: str, session_id: str, first: int, last: int
) -> dict[int, Step]:
    """Return the steps of a session from one number to another, by number."""
    query = _steps(tenant, session_id).where(_T.step.between(first, last))
    return {row.step: step_of(row) for row in connection.execute(query)}


def newest_step(connection: Connection, tenant: str, session_id: str) -> int:
    """Return the number of a session's newest step, 0 where there is none."""
    its = (_T.tenant == tenant) & (_T.session_id == session_id)
    newest: int | None = connection.execute(select(func.max(_T.step)).where(its)).scalar_one()
    return newest or 0


def counts_of(connection: Connection, tenant: str) -> dict[str, int]:
    """Return how many sessions and steps a tenant has."""
    return {
        "sessions": count_rows(connection, sessions, _S.tenant == tenant),
        "steps": count_rows(connection, trajectories, _T.tenant == tenant),
    }


def count_rows(connection: Connection, table: Table, *where: ColumnElement[bool]) -> int:
    """Return how many rows of a table hold conditions."""
    query = select(func.count()).select_from(table).where(*where)
    return connection.execute(query).scalar_one()


def _steps(tenant: str, session_id: str) -> Select[Any]:
    return select(trajectories).where(_T.tenant == tenant, _T.session_id == session_id)


def _dumped(value: Any) -> str | None:
    return None if value is None else dump_json(value)


def _loaded(text: str | None) -> Any:
    return None if text is None else load_json(text)
