"""Where rows, keyword rows and vectors of a database disagree, and making them agree.

Entries and turns are the truth; everything else is made from them. Each repair is a transaction of
a bounded number of rows, so that others can write in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, exists, func, insert, select, update

from hiermem_core.backends.keywords import (
    add_keywords,
    entry_scope,
    keywords,
    recount_keywords,
    remove_keywords,
)
from hiermem_core.backends.sql_rows import COLUMNS, entry_of
from hiermem_core.backends.sql_writer import body_of
from hiermem_core.backends.staging import does_not_count, has_text, has_vector, is_embedded
from hiermem_core.backends.tenants import count_change, known_tenant
from hiermem_core.backends.vector_rows import EMBED
from hiermem_core.storage.tables import memory_entries, outbox, searchable, tenants, vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import ColumnElement, Connection, Select

    from hiermem_core.backends.vector_rows import VectorRows
    from hiermem_core.storage.database import Database

_E, _K, _O, _S, _T, _V = (
    memory_entries.c,
    keywords.c,
    outbox.c,
    searchable.c,
    tenants.c,
    vectors.c,
)
AT_ONCE = 500
"""Rows mended in one transaction."""


class Mending:
    """Count and mend disagreements of one tenant; `None` stands for what belongs to no tenant.

    Args:
        embedder: Gives the name of the embedder whose vectors count, as of a snapshot.
    """

    def __init__(
        self, database: Database, vectors: VectorRows, embedder: Callable[[Connection], str]
    ) -> None:
        self._database = database
        self._vectors = vectors
        self._embedder = embedder

    def tenants(self) -> list[str]:
        """Return every tenant that has rows."""
        with self._database.read() as connection:
            known = set(connection.execute(select(_T.tenant)).scalars())
            for column in (_E.tenant, _S.tenant):
                known |= set(connection.execute(select(column).distinct()).scalars())
        return sorted(known)

    def lacking(self, tenant: str) -> int:
        """Return how many rows have no vector and do not wait for one."""
        with self._database.read() as connection:
            return _count(connection, _unvectored(tenant, self._embedder(connection)))

    def unlisted(self, tenant: str) -> int:
        """Return how many entries have no keyword row or are no row that is searched."""
        with self._database.read() as connection:
            return _count(connection, _unlisted_entries(tenant))

    def unlisted_threads(self, tenant: str) -> list[tuple[int, int]]:
        """Return the threads with turns without a keyword row, and how many they are."""
        query = (
            select(_S.thread, func.count())
            .where(_S.tenant == tenant, _S.thread.is_not(None), ~_has_keywords(), has_text())
            .group_by(_S.thread)
        )
        with self._database.read() as connection:
            return [(thread, count) for thread, count in connection.execute(query)]

    def stray_keywords(self) -> int:
        """Return how many keyword rows have no row."""
        with self._database.read() as connection:
            return _count(connection, _stray_keywords())

    def orphans(self, tenant: str) -> int:
        """Return how many rows have neither entry nor turn, and how many vectors have no row."""
        with self._database.read() as connection:
            return _count(connection, _empty_rows(tenant)) + _count(connection, _loose(tenant))

    def stale(self, tenant: str) -> int:
        """Return how many vectors are by an embedder that does not count, nor is about to."""
        with self._database.read() as connection:
            return _count(connection, self._stale(connection, tenant))

    def await_lacking(self, tenant: str) -> None:
        """Have every row without a vector wait for one."""

        def mend(connection: Connection) -> int:
            query = _unvectored(tenant, self._embedder(connection)).limit(AT_ONCE)
            rows = _numbers(connection, query)
            self._vectors.await_vectors(connection, tenant, rows)
            return len(rows)

        self._in_steps(mend)

    def retry(self, tenant: str) -> None:
        """Have rows whose embedding failed wait as if it had not."""
        mine = and_(_O.tenant == tenant, _O.change == EMBED)
        with self._database.write() as connection:
            connection.execute(update(outbox).where(mine).values(attempts=0, due_at=0))

    def list_entries(self, tenant: str) -> None:
        """Give every entry its row and its keyword row."""

        def mend(connection: Connection) -> int:
            rows = _numbers(connection, _unlisted_entries(tenant).limit(AT_ONCE))
            self._list(connection, tenant, rows)
            return len(rows)

        self._in_steps(mend)
        with self._database.write(tenant) as connection:
            recount_keywords(connection, known_tenant(connection, tenant))

    def remove_stray_keywords(self) -> None:
        """Remove keyword rows without a row."""

        def mend(connection: Connection) -> int:
            rows = _numbers(connection, _stray_keywords().limit(AT_ONCE))
            remove_keywords(connection, rows)
            return len(rows)

        self._in_steps(mend)

    def remove_orphans(self, tenant: str) -> None:
        """Remove rows without entry and turn, and vectors without a row."""

        def mend(connection: Connection) -> int:
            rows = _numbers(connection, _empty_rows(tenant).limit(AT_ONCE))
            loose = _numbers(connection, _loose(tenant).limit(AT_ONCE))
            remove_keywords(connection, rows)
            self._vectors.remove(connection, tenant, [*rows, *loose])
            connection.execute(delete(searchable).where(_S.number.in_(rows)))
            return max(len(rows), len(loose))

        self._in_steps(mend)

    def remove_stale(self, tenant: str) -> None:
        """Remove vectors that do not count."""

        def mend(connection: Connection) -> int:
            numbers = _numbers(connection, self._stale(connection, tenant).limit(AT_ONCE))
            connection.execute(delete(vectors).where(_V.number.in_(numbers)))
            return len(numbers)

        self._in_steps(mend)

    @staticmethod
    def _stale(connection: Connection, tenant: str) -> Select[tuple[int]]:
        return select(_V.number).where(_V.tenant == tenant, does_not_count(connection))

    def _list(self, connection: Connection, tenant: str, rows: Sequence[int]) -> None:
        if not rows:
            return
        known = set(_numbers(connection, select(_S.number).where(_S.number.in_(rows))))
        fresh = [{"number": row, "tenant": tenant} for row in rows if row not in known]
        if fresh:
            connection.execute(insert(searchable), fresh)
        number = known_tenant(connection, tenant)
        query = select(*COLUMNS).where(_E.number.in_(rows))
        entries = [(row.number, entry_of(row)) for row in connection.execute(query)]
        remove_keywords(connection, rows)
        add_keywords(
            connection,
            [(row, entry_scope(number, one.namespace), body_of(one)) for row, one in entries],
        )
        count_change(connection, tenant)

    def _in_steps(self, mend: Callable[[Connection], int]) -> None:
        while True:
            with self._database.write() as connection:
                mended = mend(connection)
            if mended < AT_ONCE:
                return


def _waits() -> ColumnElement[bool]:
    """Return the condition that a row waits for its vector, or failed at it."""
    return exists().where(_O.change == EMBED, _O.number == _S.number)


def _unvectored(tenant: str, name: str) -> Select[tuple[int]]:
    is_lacking = and_(~has_vector(name), ~_waits(), is_embedded())
    return select(_S.number).where(_S.tenant == tenant, is_lacking)


def _unlisted_entries(tenant: str) -> Select[tuple[int]]:
    has_row = exists().where(_S.number == _E.number)
    has_words = exists().where(_K.rowid == _E.number)
    return select(_E.number).where(_E.tenant == tenant, ~and_(has_row, has_words))


def _has_keywords() -> ColumnElement[bool]:
    return exists().where(_K.rowid == _S.number)


def _stray_keywords() -> Select[Any]:
    is_known = exists().where(_S.number == _K.rowid)
    is_entry = exists().where(_E.number == _K.rowid)
    return select(_K.rowid).where(~is_known, ~is_entry)


def _empty_rows(tenant: str) -> Select[tuple[int]]:
    return select(_S.number).where(_S.tenant == tenant, ~has_text())


def _loose(tenant: str) -> Select[tuple[int]]:
    """Return the rows named by vectors that are neither there nor about to be listed."""
    is_known = exists().where(_S.number == _V.row)
    is_entry = exists().where(_E.number == _V.row)
    return select(_V.row).distinct().where(_V.tenant == tenant, ~is_known, ~is_entry)


def _count(connection: Connection, query: Select[Any]) -> int:
    return connection.execute(select(func.count()).select_from(query.subquery())).scalar_one()


def _numbers(connection: Connection, query: Select[Any]) -> list[int]:
    return list(connection.execute(query).scalars())
