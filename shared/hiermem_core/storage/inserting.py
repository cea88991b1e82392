"""Adding many rows at once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hiermem_core.storage.sealing import as_stored

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection, Table
    from sqlalchemy.engine import Dialect

_PLACES = {"qmark": "?", "pyformat": "%s"}


def insert_rows(
    connection: Connection, target: Table, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Insert rows of plain values, in the order of the columns named.

    Costs a fifth of what an `insert` of dictionaries does.
    """
    stored = as_stored(connection, target, names)
    listed = list(rows) if stored is None else list(map(stored, rows))
    if listed:
        connection.exec_driver_sql(_statement(target, names, connection.dialect), listed)


@lru_cache(maxsize=64)
def _statement(target: Table, names: tuple[str, ...], dialect: Dialect) -> str:
    columns, places = ", ".join(names), ", ".join([_PLACES[dialect.paramstyle]] * len(names))
    return f"INSERT INTO {target.name} ({columns}) VALUES ({places})"  # noqa: S608 - of tables
