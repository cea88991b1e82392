"""The keyword index of SQLite: an FTS5 table.

An unindexed column with a condition, in place of a scope in the index, is 25 times slower at
100,000 rows. FTS5 counts words over all tenants: their rows shift each other's scores, no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, column, func, literal_column, select, table, text

from hiermem_core.ranking.words import match_expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database

_K = table("keywords", column("rowid")).c
_matching = text("keywords MATCH :expression").bindparams(bindparam("expression"))

_PAGES_A_STEP = 1_000
_LEAST_CHANGES = 2
"""A step of a merge that changes less had nothing to do, by FTS5's documentation."""


class Fts5Keywords:
    """Words in an FTS5 table; see `KeywordIndex`."""

    engine = "SQLite FTS5, BM25"
    is_faster_unscoped = True
    best = (
        select(_K.rowid.label("number"), literal_column("-keywords.rank").label("value"))
        .where(_matching)
        .order_by(literal_column("keywords.rank"))
        .limit(bindparam("size"))
        .subquery()
    )

    def add(self, connection: Connection, rows: Sequence[tuple[int, str, str]]) -> None:
        """Add rows: number, scope and body."""
        statement = "INSERT INTO keywords (rowid, scope, body) VALUES (?, ?, ?)"
        connection.exec_driver_sql(statement, list(rows))

    def remove(self, connection: Connection, numbers: Sequence[int]) -> None:
        """Remove rows; what is not there is skipped."""
        rows = [(number,) for number in numbers]
        connection.exec_driver_sql("DELETE FROM keywords WHERE rowid = ?", rows)

    def asked(
        self, words: Sequence[str], *, tenant: int, scope: Sequence[str] | None
    ) -> Mapping[str, Any] | None:
        """Return the expression for rows with any of some words, and one of the scope's tokens."""
        del tenant  # its token is in the scope
        body = match_expression(words, ())
        if body is None or scope == []:
            return None
        if scope is None:
            return {"expression": body}
        either = " OR ".join(f'"{token}"' for token in scope)
        return {"expression": f"scope : ({either}) AND {body}"}

    def count(self, connection: Connection, asked: Mapping[str, Any], *, limit: int) -> int:
        """Return how many rows match, counted up to a limit."""
        some = select(_K.rowid).where(_matching).limit(limit).subquery()
        return connection.execute(select(func.count()).select_from(some), asked).scalar_one()

    def recount(self, connection: Connection, tenant: int) -> None:
        """Do nothing: FTS5 keeps its counts itself."""

    def shed_removed(self, database: Database) -> None:
        """Merge the index's segments, so that no word of a removed row is left in one.

        FTS5 notes a removal in a newer segment; the words stay in the older one until both are
        merged. Writers get their turn between the steps.
        """
        pages = -_PAGES_A_STEP
        while True:
            with database.write() as connection:
                before = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
                connection.exec_driver_sql(
                    "INSERT INTO keywords (keywords, rank) VALUES ('merge', ?)", (pages,)
                )
                after = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
            if after - before < _LEAST_CHANGES:
                return
            pages = _PAGES_A_STEP
