"""Vectors of another embedder, made beside those that count until they can take their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, exists, func, insert, or_, select, update

from hiermem_core.backends.embedders import NAME_KEY, write_name
from hiermem_core.backends.records import Waiting
from hiermem_core.backends.vector_rows import EMBED, insert_vectors
from hiermem_core.backends.waiting import texts_of
from hiermem_core.errors import ConflictError
from hiermem_core.storage.database import slices
from hiermem_core.storage.tables import (
    memory_entries,
    metadata,
    outbox,
    searchable,
    tenants,
    turns,
    vectors,
)
from hiermem_core.vector_index.retrying import after_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from hiermem_core.backends.records import MadeVector
    from hiermem_core.storage.database import Database
    from hiermem_core.vector_index.indexer import Indexer

STAGED_KEY = "reindex"
"""Names the vectors that are being made; there while a reindex is not complete."""

_E, _M, _O, _S, _T, _V = (
    memory_entries.c,
    metadata.c,
    outbox.c,
    searchable.c,
    turns.c,
    vectors.c,
)
_REMOVED_AT_ONCE = 1000


class StagedVectors:
    """Make the vectors of a name complete, then have them count, in one transaction.

    A row whose content changes loses all its vectors, and a row that goes takes them along, so
    what is staged is right however long ago it was made.
    """

    def __init__(self, database: Database, indexer: Indexer) -> None:
        self._database = database
        self._indexer = indexer

    def begin(self, name: str, *, now_ms: int) -> None:
        """Go on with the vectors of a name; those staged under another are removed."""
        with self._database.write() as connection:
            staged = staged_name(connection)
            if staged != name:
                _write_staged(connection, name, now_ms)
        self.remove_others()

    def begun(self) -> str | None:
        """Return the name of the vectors whose making was begun and is not complete."""
        with self._database.read() as connection:
            return staged_name(connection)

    def counts(self, name: str) -> tuple[int, int]:
        """Return how many rows have a vector of a name, and how many rows there are."""
        with self._database.read() as connection:
            first = (_V.embedder == name, _V.part == 0)
            made = select(func.count()).select_from(vectors).where(*first)
            rows = select(func.count()).select_from(searchable).where(is_embedded())
            return connection.execute(made).scalar_one(), connection.execute(rows).scalar_one()

    def lacking(self, name: str, *, after: int, limit: int) -> Waiting:
        """Return rows without a vector of a name and their texts, those after a number."""
        with self._database.read() as connection:
            rows = _lacking(connection, name, limit, _S.number > after)
            return Waiting(tuple(rows), texts_of(connection, rows) if rows else {})

    def keep(self, name: str, waiting: Waiting, made: Mapping[int, MadeVector]) -> int:
        """Stage the vectors of rows whose text is still the same; return how many.

        Raises:
            ConflictError: Another reindex was begun meanwhile.
        """
        with self._database.write() as connection:
            _check_staged(connection, name)
            there = _with_vector(connection, name, list(made))
            texts = texts_of(connection, [row for row in made if row not in there])
            same = {row: made[row] for row, text in texts.items() if text == waiting.texts[row]}
            owners = _owners(connection, list(same))
            insert_vectors(connection, name, owners, same)
            return len(same)

    def swap(
        self,
        name: str,
        refused: Mapping[int, str],
        *,
        most: int,
        now_ms: int,
        before_commit: Callable[[], object],
    ) -> bool:
        """Have the staged vectors count, and no others, unless many rows lack one.

        Args:
            refused: Rows the embedder fails at, with the error's type; they wait from then on.
            most: So many other rows may lack theirs; they wait too.
            before_commit: Called when nothing but the commit is left to do.

        Raises:
            ConflictError: Another reindex was begun meanwhile.
        """
        with self._database.write() as connection:
            _check_staged(connection, name)
            rows = _lacking(connection, name, len(refused) + most + 1)
            if len(set(rows) - refused.keys()) > most:
                return False
            self._indexer.take_over(connection, name)
            connection.execute(delete(outbox).where(_O.change == EMBED))
            _await(connection, rows, refused, now_ms)
            write_name(connection, name, now_ms=now_ms)
            connection.execute(delete(metadata).where(_M.key == STAGED_KEY))
            connection.execute(update(tenants).values(generation=tenants.c.generation + 1))
            before_commit()
        return True

    def remove_others(self) -> None:
        """Remove vectors that neither count nor are being made, in steps that let others write."""
        removed = _REMOVED_AT_ONCE
        while removed == _REMOVED_AT_ONCE:
            with self._database.write() as connection:
                some = select(_V.number).where(does_not_count(connection)).limit(_REMOVED_AT_ONCE)
                removed = connection.execute(delete(vectors).where(_V.number.in_(some))).rowcount


def staged_name(connection: Connection) -> str | None:
    """Return the name of the vectors that a reindex is making; `None`: none runs or was cut off."""
    return connection.execute(select(_M.value).where(_M.key == STAGED_KEY)).scalar()


def does_not_count(connection: Connection) -> ColumnElement[bool]:
    """Return the condition that a vector is by an embedder that does not count, nor is about to."""
    named = connection.execute(select(_M.value).where(_M.key.in_([NAME_KEY, STAGED_KEY])))
    return _V.embedder.not_in(list(named.scalars()))


def has_text() -> ColumnElement[bool]:
    """Return the condition that a row's entry or turn is there."""
    is_entry = exists().where(_E.number == _S.number)
    is_turn = exists().where(and_(_T.thread == _S.thread, ~_T.archived, _T.seq == _S.seq))
    return or_(and_(_S.thread.is_(None), is_entry), and_(_S.thread.is_not(None), is_turn))


def is_embedded() -> ColumnElement[bool]:
    """Return the condition that a row has a vector once it was embedded."""
    is_silent = exists().where(_E.number == _S.number, _E.passages == "[]")
    return and_(has_text(), ~is_silent)


def has_vector(name: str) -> ColumnElement[bool]:
    """Return the condition that a row has a vector of a name."""
    return exists().where(_V.row == _S.number, _V.embedder == name)


def _lacking(connection: Connection, name: str, limit: int, *where: Any) -> list[int]:
    query = select(_S.number).where(~has_vector(name), is_embedded(), *where)
    return list(connection.execute(query.order_by(_S.number).limit(limit)).scalars())


def _with_vector(connection: Connection, name: str, rows: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for some in slices(rows):
        query = select(_V.row).where(_V.row.in_(some), _V.embedder == name)
        found |= set(connection.execute(query).scalars())
    return found


def _owners(connection: Connection, rows: Sequence[int]) -> dict[int, str]:
    """Return the tenants of rows."""
    found: dict[int, str] = {}
    for some in slices(rows):
        query = select(_S.number, _S.tenant).where(_S.number.in_(some))
        found |= {row.number: row.tenant for row in connection.execute(query)}
    return found


def _await(
    connection: Connection, rows: Collection[int], refused: Mapping[int, str], now_ms: int
) -> None:
    retry = after_failure(0, now_ms=now_ms)
    owners = _owners(connection, list(rows))
    queued = [
        {
            "change": EMBED,
            "number": row,
            "tenant": owners[row],
            "attempts": retry.attempts if row in refused else 0,
            "due_at": retry.due_at if row in refused else 0,
            "error": refused.get(row),
        }
        for row in rows
    ]
    if queued:
        connection.execute(insert(outbox), queued)


def _check_staged(connection: Connection, name: str) -> None:
    if staged_name(connection) != name:
        raise ConflictError("another reindex was begun or ended meanwhile; run reindex again")


def _write_staged(connection: Connection, name: str, now_ms: int) -> None:
    connection.execute(delete(metadata).where(_M.key == STAGED_KEY))
    row = {"key": STAGED_KEY, "value": name, "updated_at": now_ms}
    connection.execute(insert(metadata).values(row))
