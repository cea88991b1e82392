"""Which threads are due: the stored turns and the mark are the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, and_, case, func, select, true, update

from hiermem_core.storage import tables

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

    from hiermem_core.threads.notes import Notes

MOST_FAILURES = 5
"""Failures at one mark after which a thread is left alone until new turns come."""

_H = tables.threads.c
_N = tables.notes.c


@dataclass(frozen=True, slots=True)
class Due:
    """How many threads are due, and how many of them are given up until new turns come."""

    due: int = 0
    dead: int = 0


def is_due(notes: Notes, *, answered_seq: int, last_seq: int, every: int) -> bool:
    """Tell whether the notes of a thread are to be updated now. Pure.

    Args:
        answered_seq: Of the newest answer; what comes after it is not complete yet.
        every: So many turns after the mark are due.
    """
    is_parked = notes.failures >= MOST_FAILURES and notes.failed_seq == last_seq
    return answered_seq - notes.mark.turn_count >= every and not is_parked


def due_threads(connection: Connection, tenant: str | None, *, every: int) -> list[tuple[str, str]]:
    """Return tenant and id of the threads that are due, of one tenant or all, oldest first.

    Those given up are among them.
    """
    query = _due(select(_H.tenant, _H.thread_id), tenant, every).order_by(_H.number)
    return [(row.tenant, row.thread_id) for row in connection.execute(query)]


def forgive(connection: Connection, tenant: str | None) -> None:
    """Count the failures of a tenant's threads from 0 again, or of all."""
    query = update(tables.notes).where(_N.failures > 0).values(failures=0)
    if tenant is not None:
        query = query.where(_N.thread.in_(select(_H.number).where(_H.tenant == tenant)))
    connection.execute(query)


def count_due(connection: Connection, tenant: str | None, *, every: int, only_noted: bool) -> Due:
    """Return how many threads are due, of one tenant or all.

    Args:
        only_noted: Of those whose notes were ever written or tried.
    """
    parked = func.coalesce(func.sum(case((_is_parked(), 1), else_=0)), 0)
    among = _N.thread.is_not(None) if only_noted else true()
    query = _due(select(func.count(), parked), tenant, every).where(among)
    due, dead = connection.execute(query).one()
    return Due(due - dead, dead)


def _due(query: Select[Any], tenant: str | None, every: int) -> Select[Any]:
    joined = tables.threads.outerjoin(tables.notes, _N.thread == _H.number)
    waiting = _H.answered_seq - func.coalesce(_N.turn_count, 0)
    query = query.select_from(joined).where(waiting >= every)
    return query if tenant is None else query.where(_H.tenant == tenant)


def _is_parked() -> ColumnElement[bool]:
    failures, failed_seq = func.coalesce(_N.failures, 0), func.coalesce(_N.failed_seq, 0)
    return and_(failures >= MOST_FAILURES, failed_seq == _H.last_seq)
