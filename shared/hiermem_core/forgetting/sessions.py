"""Erasing the chosen sessions with their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from hiermem_core.operations import touched
from hiermem_core.sessions.rows import count_rows
from hiermem_core.storage.run_tables import sessions, trajectories

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from hiermem_core.forgetting.selectors import Selector

_S, _T = sessions.c, trajectories.c


def erase_sessions(connection: Connection, tenant: str, selector: Selector) -> dict[str, int]:
    """Erase the sessions that are chosen; return how many of them and of their steps."""
    chosen = _chosen(selector)
    if chosen is None:
        return {}
    mine = (_S.tenant == tenant, *chosen)
    steps = (_T.tenant == tenant, _T.session_id.in_(select(_S.id).where(*mine)))
    counts = {
        "sessions": count_rows(connection, sessions, *mine),
        "steps": count_rows(connection, trajectories, *steps),
    }
    names = connection.execute(select(_S.id).where(*mine)).scalars().all()
    if names:
        touched(names)
        connection.execute(delete(sessions).where(*mine))
    return counts


def _chosen(selector: Selector) -> tuple[ColumnElement[bool], ...] | None:
    """Return what a session must hold to be forgotten; `None`: none is.

    A thread's name is that of the session its tool calls are logged in, too.
    """
    if selector.kind == "everything":
        return ()
    if selector.kind == "user_id":
        return (_S.user_id == selector.names[0],)
    return (_S.id == selector.names[0],) if selector.kind == "thread_id" else None
