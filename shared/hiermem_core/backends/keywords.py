"""The keyword index: a row a searchable row, under its number, with its scope and its words.

A row's scope holds tokens for its tenant and for the namespaces or the thread it is in, so that a
search is narrowed inside the index. Each engine has an index of its own: SQLite FTS5, PostgreSQL
`tsvector`; what both find, and how they weigh it, is FTS5's.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

from sqlalchemy import column, table

from hiermem_core.backends.keywords_fts5 import Fts5Keywords
from hiermem_core.backends.keywords_tsvector import TsvectorKeywords
from hiermem_core.storage.sealing import seal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Subquery

    from hiermem_core.backends.restrictions import Scope
    from hiermem_core.storage.database import Database

keywords = table("keywords", column("rowid"))
"""What both engines' tables have: the number of the row."""

_MOST_THREADS = 64


class KeywordIndex(Hashable, Protocol):
    """A keyword index in a database.

    Attributes:
        engine: What it is, for people.
        is_faster_unscoped: Looking words up in the whole location is faster than within a scope.
        best: The query of the best matches, a `number` and its BM25 `value` each, positive, the
            more the better. Bound are the facts of `asked`, and `size`: how many.
    """

    engine: str
    is_faster_unscoped: bool
    best: Subquery

    def add(self, connection: Connection, rows: Sequence[tuple[int, str, str]]) -> None:
        """Add rows: number, scope and body."""
        ...

    def remove(self, connection: Connection, numbers: Sequence[int]) -> None:
        """Remove rows; what is not there is skipped."""
        ...

    def asked(
        self, words: Sequence[str], *, tenant: int, scope: Sequence[str] | None
    ) -> Mapping[str, Any] | None:
        """Return what is bound to look up rows with any of some words; `None`: nothing matches.

        Args:
            words: Of `query_words`.
            tenant: The number of the one whose rows they are in.
            scope: Tokens of which a row has one; `None`: every row of the location will do.
        """
        ...

    def count(self, connection: Connection, asked: Mapping[str, Any], *, limit: int) -> int:
        """Return how many rows match, counted up to a limit."""
        ...

    def recount(self, connection: Connection, tenant: int) -> None:
        """Count a tenant's rows anew, where counts are kept."""
        ...

    def shed_removed(self, database: Database) -> None:
        """Leave no word of a removed row in the index's files, as far as it is the index's."""
        ...


_INDEXES: Mapping[str, KeywordIndex] = {
    "sqlite": Fts5Keywords(),
    "postgresql": TsvectorKeywords(),
}


def keyword_index(connection: Connection) -> KeywordIndex:
    """Return the keyword index of a connection's engine."""
    return _INDEXES[connection.dialect.name]


@lru_cache(1024)
def entry_scope(tenant: int, namespace: str) -> str:
    """Return the scope of an entry."""
    return " ".join([_tenant_token(tenant), f"e{tenant}", *_namespace_tokens(tenant, namespace)])


def turn_scope(tenant: int, thread: int) -> str:
    """Return the scope of a turn."""
    return " ".join([_tenant_token(tenant), f"u{tenant}", _thread_token(thread)])


def add_keywords(connection: Connection, rows: Sequence[tuple[int, str, str]]) -> None:
    """Add rows: number, scope and body; without their words where content is sealed."""
    if seal_of(connection.dialect) is not None:
        rows = [(number, scope, "") for number, scope, _ in rows]
    keyword_index(connection).add(connection, rows)


def remove_keywords(connection: Connection, numbers: Iterable[int]) -> None:
    """Remove rows."""
    listed = list(numbers)
    if listed:
        keyword_index(connection).remove(connection, listed)


def recount_keywords(connection: Connection, tenant: int) -> None:
    """Count a tenant's rows anew, where counts are kept."""
    keyword_index(connection).recount(connection, tenant)


def rows_with(connection: Connection, tenant: int, word: str, *, limit: int) -> int:
    """Return in how many rows of a tenant a word stands, counted up to a limit."""
    index = keyword_index(connection)
    asked = index.asked([word], tenant=tenant, scope=[_tenant_token(tenant)])
    return 0 if asked is None else index.count(connection, asked, limit=limit)


def shed_removed(database: Database) -> None:
    """Leave no word of a removed row in the index's files, as far as it is the index's."""
    with database.read() as connection:
        index = keyword_index(connection)
    index.shed_removed(database)


def scope_tokens(scope: Scope, tenant: int) -> Iterator[str]:
    """Yield the tokens of which a row in scope has one.

    Each costs as much as a word that stands in all rows that have it.
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
