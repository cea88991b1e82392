"""The keyword index of SQLite: an FTS5 table, its rows, and what it finds.

A row's scope holds tokens for its tenant and for the namespaces or the thread it is in, so that a
search is narrowed inside the index; an unindexed column with a condition is 25 times slower at
100,000 rows. FTS5 counts words over all tenants: their rows shift each other's scores, no more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

from sqlalchemy import bindparam, column, func, literal_column, select, table, text

from hiermem_core.ranking.words import match_expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection

    from hiermem_core.backends.restrictions import Scope
    from hiermem_core.storage.database import Database

keywords = table("keywords", column("rowid"), column("scope"), column("body"))

found_bm25: ColumnElement[float] = literal_column("-keywords.rank")
"""The BM25 value of a match, positive, the more the better; the scope has no weight in it."""

matching = text("keywords MATCH :expression").bindparams(bindparam("expression"))
by_rank: ColumnElement[float] = literal_column("keywords.rank")

_MOST_THREADS = 64

_PAGES_A_STEP = 1_000
_LEAST_CHANGES = 2
"""A step of a merge that changes less had nothing to do, by FTS5's documentation."""


@lru_cache(1024)
def entry_scope(tenant: int, namespace: str) -> str:
    """Return the scope of an entry."""
    return " ".join([_tenant_token(tenant), f"e{tenant}", *_namespace_tokens(tenant, namespace)])


def turn_scope(tenant: int, thread: int) -> str:
    """Return the scope of a turn."""
    return " ".join([_tenant_token(tenant), f"u{tenant}", _thread_token(thread)])


def add_keywords(connection: Connection, rows: Sequence[tuple[int, str, str]]) -> None:
    """Add rows: number, scope and body."""
    connection.exec_driver_sql("INSERT INTO keywords (rowid, scope, body) VALUES (?, ?, ?)", rows)


def remove_keywords(connection: Connection, numbers: Iterable[int]) -> None:
    """Remove rows."""
    rows = [(number,) for number in numbers]
    if rows:
        connection.exec_driver_sql("DELETE FROM keywords WHERE rowid = ?", rows)


def shed_removed(database: Database) -> None:
    """Merge the index's segments, so that no word of a removed row is left in one.

    FTS5 notes a removal in a newer segment; the words stay in the older one until both are merged.
    Writers get their turn between the steps.
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


def expression_of(telling: Iterable[str], scope: Scope, tenant: int) -> str | None:
    """Return what to look up for words within a scope; `None` where nothing can match."""
    words = match_expression(telling, ())
    either = " OR ".join(f'"{token}"' for token in _alternatives(scope, tenant))
    return None if words is None or not either else f"scope : ({either}) AND {words}"


def rows_with(connection: Connection, tenant: int, word: str, *, limit: int) -> int:
    """Return in how many rows of a tenant a word stands, counted up to a limit."""
    words = match_expression([word], ())
    some = select(keywords.c.rowid).where(matching).limit(limit).subquery()
    facts = {"expression": f'scope : ("{_tenant_token(tenant)}") AND {words}'}
    return connection.execute(select(func.count()).select_from(some), facts).scalar_one()


def _alternatives(scope: Scope, tenant: int) -> Iterator[str]:
    """Yield the tokens of which a row in scope has one.

    Each costs as much as a word that stands in all rows that have it: FTS5 counts them.
    """
    namespace = None if scope.entries is None else scope.entries.namespace
    has_all_turns = scope.threads is None or len(scope.threads) > _MOST_THREADS
    if scope.entries is not None and namespace is None and has_all_turns:
        yield _tenant_token(tenant)
        return
    if scope.entries is not None:
        yield f"e{tenant}" if namespace is None else _namespace_token(tenant, namespace)
    if has_all_turns:
        yield f"u{tenant}"
    else:
        yield from map(_thread_token, scope.threads or ())


def _tenant_token(tenant: int) -> str:
    return f"t{tenant}"


def _thread_token(thread: int) -> str:
    return f"h{thread}"


def _namespace_tokens(tenant: int, namespace: str) -> Iterator[str]:
    segments = namespace.split("/")
    for depth in range(1, len(segments) + 1):
        yield _namespace_token(tenant, "/".join(segments[:depth]))


def _namespace_token(tenant: int, namespace: str) -> str:
    return f"n{tenant}x{crc32(namespace.encode())}"
