"""Writing rows of turns, and counting their bytes, in the running transaction."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, select, update

from hiermem_core.backends.tenants import count_bytes
from hiermem_core.errors import QuotaExceededError
from hiermem_core.operations import touched
from hiermem_core.storage.inserting import insert_rows
from hiermem_core.storage.sizes import sum_of, turn_bytes, turn_row_bytes
from hiermem_core.storage.tables import turns
from hiermem_core.threads.rows import row_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection

    from hiermem_core.backends.quotas import Quotas
    from hiermem_core.models.turns import Turn
    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database
    from hiermem_core.threads.reading import Head

_T = turns.c


class TurnTable:
    """The rows of turns.

    Args:
        quotas: Let writes pass, or refuse them.
    """

    def __init__(self, database: Database, quotas: Quotas, *, clock: Clock) -> None:
        self._database = database
        self._quotas = quotas
        self._clock = clock

    @contextmanager
    def transaction(self, tenant: str) -> Iterator[Connection]:
        """Run a write transaction; what the tenant's quota refuses in it is told after its end."""
        try:
            with self._database.write(tenant) as connection:
                yield connection
        except QuotaExceededError as error:
            self._quotas.refused(tenant, error)
            raise

    def add(self, connection: Connection, head: Head, fresh: Sequence[Turn]) -> None:
        """Write new turns of a thread.

        Raises:
            QuotaExceededError: There is no room for them.
        """
        tenant = head.tenant
        rows = [row_of(turn, thread=head.number) for turn in fresh]
        size = sum(map(turn_row_bytes, rows))
        self._admit(connection, tenant, size, len(rows))
        insert_rows(connection, turns, tuple(rows[0]), [tuple(row.values()) for row in rows])
        touched(turn.id for turn in fresh)
        count_bytes(connection, tenant, size)

    def rewrite(self, connection: Connection, head: Head, turn: Turn) -> None:
        """Write an active turn anew.

        Raises:
            QuotaExceededError: It is larger than before, and there is no room for it.
        """
        tenant, row = head.tenant, row_of(turn, thread=head.number)
        which = and_(_T.thread == head.number, ~_T.archived, _T.seq == turn.seq)
        size = turn_row_bytes(row) - _bytes_of(connection, which)
        self._admit(connection, tenant, size, 1)
        connection.execute(update(turns).where(which).values(row))
        touched((turn.id,))
        count_bytes(connection, tenant, size)

    def remove(self, connection: Connection, tenant: str, which: ColumnElement[bool]) -> None:
        """Delete rows."""
        rows = connection.execute(select(turns.c.id, turn_bytes).where(which)).all()
        touched(name for name, _ in rows)
        count_bytes(connection, tenant, -sum(size for _, size in rows))
        connection.execute(delete(turns).where(which))

    def _admit(self, connection: Connection, tenant: str, size: int, writes: int) -> None:
        gate = self._quotas.gate(connection, tenant, self._clock.now(), [])
        gate.admit(size=size, writes=writes)
        gate.settle()


def _bytes_of(connection: Connection, which: ColumnElement[bool]) -> int:
    query = select(sum_of(turn_bytes)).where(which)
    return connection.execute(query).scalar_one()
