"""Numbers of rows: ascending, never used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, column, select, table

from hiermem_core.storage.prepared import Prepared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Table

_sequence = table("sqlite_sequence", column("name"), column("seq"))
_last = Prepared(select(_sequence.c.seq).where(_sequence.c.name == bindparam("name")))

_NEXT = "SELECT nextval(%s::regclass) FROM generate_series(1, %s)"


def next_numbers(connection: Connection, target: Table, count: int) -> Sequence[int]:
    """Return fresh numbers for rows that the running write transaction inserts into `target`."""
    if not count:
        return ()
    if connection.dialect.name == "postgresql":
        facts = (f"{target.name}_number_seq", count)
        return sorted(connection.exec_driver_sql(_NEXT, facts).scalars())
    last = _last.run(connection, {"name": target.name}).scalar() or 0
    return range(last + 1, last + 1 + count)
