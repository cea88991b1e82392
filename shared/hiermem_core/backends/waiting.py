"""Rows of a database that wait for their vector: entries an embedder failed at, and turns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import Text, and_, bindparam, cast, delete, func, select, update

from hiermem_core.backends.records import Settled, Waiting
from hiermem_core.backends.tenants import count_change, count_turn_change
from hiermem_core.backends.turn_rows import embedding_texts
from hiermem_core.backends.vector_rows import EMBED
from hiermem_core.models.plain import load_json
from hiermem_core.storage.database import slices
from hiermem_core.storage.tables import memory_entries, outbox, searchable, threads, vectors
from hiermem_core.vector_index.retrying import MOST_ATTEMPTS, after_failure

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Select

    from hiermem_core.backends.records import Attempt
    from hiermem_core.backends.records import Text as EntryText
    from hiermem_core.backends.vector_rows import VectorRows
    from hiermem_core.storage.database import Database

_E, _O, _S = memory_entries.c, outbox.c, searchable.c
_NAME = func.coalesce(_E.id, threads.c.thread_id + " #" + cast(searchable.c.seq, Text))


_EVER = 2**62
_SOME = (
    select(_O.number)
    .where(
        _O.tenant == bindparam("of"),
        _O.change == EMBED,
        _O.attempts < MOST_ATTEMPTS,
        _O.due_at <= bindparam("due_ms"),
    )
    .order_by(_O.number)
    .limit(bindparam("limit"))
)


class WaitingRows:
    """Read what waits, and settle what was tried; the embedder is called in between."""

    def __init__(self, database: Database, vectors: VectorRows) -> None:
        self._database = database
        self._vectors = vectors

    def some(self, tenant: str, *, limit: int, due_ms: int | None = None) -> Waiting:
        """Return up to `limit` rows that wait, and their texts.

        Args:
            due_ms: Leave rows alone whose pause after a failure ends later.
        """
        facts = {"of": tenant, "due_ms": _EVER if due_ms is None else due_ms, "limit": limit}
        with self._database.read() as connection:
            rows: list[int] = list(connection.execute(_SOME, facts).scalars())
            return Waiting(tuple(rows), texts_of(connection, rows) if rows else {})

    def settle(
        self, tenant: str, waiting: Waiting, tried: Mapping[int, Attempt], *, now_ms: int
    ) -> Settled:
        """Store the vectors of rows whose text is still the same, and note the failures."""
        with self._database.write(tenant) as connection:
            open_rows = _still_open(connection, list(tried))
            texts = texts_of(connection, open_rows)
            made = {
                row: vector
                for row, text in texts.items()
                if (vector := tried[row].vector) is not None and text == waiting.texts[row]
            }
            stored = self._vectors.add(connection, tenant, made)
            _count_changes(connection, tenant, list(made))
            gone = set(waiting.rows) - set(waiting.texts)
            connection.execute(delete(outbox).where(_O.change == EMBED, _O.number.in_(gone)))
            lost = sum(
                _note_failure(connection, row, tried[row], now_ms)
                for row in open_rows
                if tried[row].vector is None
            )
            is_idle = connection.execute(_open_rows(tenant).limit(1)).first() is None
        return Settled(made=stored, lost=lost, is_idle=is_idle)

    def counts(self, tenant: str) -> tuple[int, int]:
        """Return how many rows wait, and how many failed for good."""
        with self._database.read() as connection:
            waiting = select(func.count()).select_from(_open_rows(tenant).subquery())
            failed = select(func.count()).where(_failed_rows(tenant))
            return connection.execute(waiting).scalar_one(), connection.execute(failed).scalar_one()

    def failures(self, tenant: str) -> list[tuple[str, str]]:
        """Return what failed for good, by entry id or thread and seq, with its error's type."""
        query = (
            select(_NAME, _O.error)
            .join(searchable, searchable.c.number == _O.number)
            .outerjoin(memory_entries, _E.number == _O.number)
            .outerjoin(threads, threads.c.number == searchable.c.thread)
            .where(_failed_rows(tenant))
            .order_by(_O.number)
            .limit(1000)
        )
        with self._database.read() as connection:
            return [(str(row[0]), str(row[1])) for row in connection.execute(query)]

    def names_of(self, numbers: Collection[int]) -> dict[int, str]:
        """Return whose these vectors are, by vector: an entry id, or thread and seq."""
        named: dict[int, str] = {}
        with self._database.read() as connection:
            for some in slices(list(numbers)):
                query = (
                    select(vectors.c.number, _NAME)
                    .join(searchable, searchable.c.number == vectors.c.row)
                    .outerjoin(memory_entries, _E.number == vectors.c.row)
                    .outerjoin(threads, threads.c.number == searchable.c.thread)
                    .where(vectors.c.number.in_(some))
                )
                named |= {number: str(name) for number, name in connection.execute(query)}
        return named

    def retry_failed(self, tenant: str) -> None:
        """Have rows that failed for good wait again."""
        with self._database.write(tenant) as connection:
            connection.execute(
                update(outbox).where(_failed_rows(tenant)).values(attempts=0, due_at=0)
            )


def _open_rows(tenant: str) -> Select[tuple[int]]:
    return select(_O.number).where(
        _O.tenant == tenant, _O.change == EMBED, _O.attempts < MOST_ATTEMPTS
    )


def _failed_rows(tenant: str) -> ColumnElement[bool]:
    return and_(_O.tenant == tenant, _O.change == EMBED, _O.attempts >= MOST_ATTEMPTS)


def _still_open(connection: Connection, rows: Collection[int]) -> list[int]:
    query = select(_O.number).where(_O.change == EMBED, _O.number.in_(rows))
    return list(connection.execute(query).scalars())


def _note_failure(connection: Connection, row: int, attempt: Attempt, now_ms: int) -> bool:
    """Note a failed attempt, and tell whether it was the last; one of an outage does not count."""
    mine = (_O.change == EMBED) & (_O.number == row)
    attempts = connection.execute(select(_O.attempts).where(mine)).scalar_one()
    retry = after_failure(attempts, now_ms=now_ms)
    if attempt.is_down:
        retry = replace(retry, attempts=attempts)
    values = {"attempts": retry.attempts, "due_at": retry.due_at, "error": attempt.error}
    connection.execute(update(outbox).where(mine).values(values))
    return retry.is_failed


def texts_of(connection: Connection, rows: Collection[int]) -> dict[int, EntryText]:
    """Return what is embedded of rows, entries and turns alike."""
    query = select(_E.number, _E.value, _E.passages).where(_E.number.in_(rows))
    texts: dict[int, EntryText] = {
        row: content if passages is None else tuple(load_json(passages))
        for row, content, passages in connection.execute(query)
    }
    return texts | embedding_texts(connection, [row for row in rows if row not in texts])


def _count_changes(connection: Connection, tenant: str, rows: Sequence[int]) -> None:
    """Say of what rows got vectors that a search finds by now: of entries, of turns, or of both."""
    of_turns: set[bool] = set()
    for some in slices(rows):
        kinds = select(_S.thread.is_not(None)).where(_S.number.in_(some)).distinct()
        of_turns |= set(connection.execute(kinds).scalars())
    if False in of_turns:
        count_change(connection, tenant)
    if True in of_turns:
        count_turn_change(connection, tenant)
