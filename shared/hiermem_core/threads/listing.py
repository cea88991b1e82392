"""Turns that recall should know and does not: those of an older schema, or after damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, exists, func, select

from hiermem_core.backends.turn_rows import is_searchable
from hiermem_core.storage.migrations import UNLISTED
from hiermem_core.storage.tables import metadata, searchable, threads, turns
from hiermem_core.threads.rows import turn_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import ColumnElement, Connection, Select

    from hiermem_core.backends.turn_rows import TurnRows
    from hiermem_core.models.turns import Turn
    from hiermem_core.storage.database import Database

_H, _S, _T = threads.c, searchable.c, turns.c

AT_ONCE = 1000
"""Turns listed in one transaction."""


class TurnListing:
    """Find and list the turns that are not searchable and should be."""

    def __init__(self, database: Database, rows: TurnRows) -> None:
        self._database = database
        self._rows = rows

    def count(self, tenant: str | None = None) -> int:
        """Return how many turns should be searchable and are not; of one tenant, or of all."""
        if not self._rows.is_on:
            return 0
        found = 0
        for thread, _ in self._threads(tenant):
            with self._database.read() as connection:
                rows = connection.execute(_unlisted(thread))
                found += sum(is_searchable(turn_of(row)) for row in rows)
        return found

    def list_all(self, tenant: str | None = None) -> int:
        """Make every turn searchable that should be; return how many there were.

        In bounded transactions; killed in between, it goes on where it was.
        """
        if not self._rows.is_on:
            return 0
        listed = sum(self._list(thread, owner) for thread, owner in self._threads(tenant))
        if tenant is None and self.is_due():
            with self._database.write() as connection:
                connection.execute(delete(metadata).where(metadata.c.key == UNLISTED))
        return listed

    def is_due(self) -> bool:
        """Tell whether turns of an older schema are not searchable yet."""
        with self._database.read() as connection:
            query = select(metadata.c.key).where(metadata.c.key == UNLISTED)
            return connection.execute(query).first() is not None

    def relist(self, connection: Connection, thread: int, tenant: str) -> int:
        """List a whole thread anew, in the running transaction; return its searchable turns.

        Positions and parts follow from the turns before, so that a gap is mended this way only.
        """
        self._rows.remove(connection, tenant, thread)
        query = select(turns).where(_T.thread == thread, ~_T.archived).order_by(_T.seq)
        found = [turn for row in connection.execute(query) if is_searchable(turn := turn_of(row))]
        self._rows.add(connection, tenant, thread, found)
        return len(found)

    def _threads(self, tenant: str | None) -> Iterator[tuple[int, str]]:
        """Yield the threads with a turn that may be one, and their tenants."""
        last = 0
        while True:
            with self._database.read() as connection:
                query = select(_H.number, _H.tenant).where(_H.number > last)
                if tenant is not None:
                    query = query.where(_H.tenant == tenant)
                has_one = exists().where(_T.thread == _H.number, _may_be_unlisted())
                page = query.where(has_one).order_by(_H.number).limit(AT_ONCE)
                found = [(number, owner) for number, owner in connection.execute(page)]
            yield from found
            if len(found) < AT_ONCE:
                return
            last = found[-1][0]

    def _list(self, thread: int, tenant: str) -> int:
        listed = 0
        while True:
            with self._database.write(tenant) as connection:
                found = _page(connection, thread)
                if not found:
                    return listed
                if found[0].seq < _newest(connection, thread):
                    self.relist(connection, thread, tenant)
                    return listed + len(found)
                self._rows.add(connection, tenant, thread, found)
                listed += len(found)


def _page(connection: Connection, thread: int) -> list[Turn]:
    """Return the next turns to list, skipping those that only seem to be."""
    found: list[Turn] = []
    for row in connection.execute(_unlisted(thread)):
        turn = turn_of(row)
        if is_searchable(turn):
            found.append(turn)
        if len(found) == AT_ONCE:
            break
    return found


def _newest(connection: Connection, thread: int) -> int:
    query = select(func.max(_S.seq)).where(_S.thread == thread)
    return connection.execute(query).scalar() or 0


def _unlisted(thread: int) -> Select[tuple[int]]:
    return select(turns).where(_T.thread == thread, _may_be_unlisted()).order_by(_T.seq)


def _may_be_unlisted() -> ColumnElement[bool]:
    """Return the condition that a turn has no row and, as far as SQL can tell, should have one."""
    is_listed = exists().where(_S.thread == _T.thread, _S.seq == _T.seq)
    says = and_(_T.role.in_(["user", "assistant"]), func.coalesce(_T.content, "") != "")
    return and_(~_T.archived, says, ~is_listed)
