"""Numbers of rows: ascending, never used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, column, select, table

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

_sequence = table("sqlite_sequence", column("name"), column("seq"))
_last = select(_sequence.c.seq).where(_sequence.c.name == bindparam("name"))


def next_numbers(connection: Connection, target: Table, count: int) -> range:
    """Return fresh numbers for rows that the running write transaction inserts into `target`."""
    last = connection.execute(_last, {"name": target.name}).scalar() or 0
    return range(last + 1, last + 1 + count)
