"""Turns as rows that recall searches, written in the transaction of their turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, insert, select, update

from hiermem_core.backends.keywords import add_keywords, remove_keywords, turn_scope
from hiermem_core.backends.tenants import count_turn_change
from hiermem_core.models.moments import from_milliseconds, to_milliseconds
from hiermem_core.models.turns import is_blank
from hiermem_core.ranking.scoring import TurnFacts
from hiermem_core.ranking.words import (
    is_question,
    said,
    turn_body,
    turn_embedding_text,
    word_count,
)
from hiermem_core.storage.database import slices
from hiermem_core.storage.given import as_given, given_numbers, given_triples
from hiermem_core.storage.inserting import insert_rows
from hiermem_core.storage.numbering import next_numbers
from hiermem_core.storage.prepared import Prepared
from hiermem_core.storage.tables import participants, searchable, threads, turns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import timedelta

    from sqlalchemy import Connection

    from hiermem_core.backends.vector_rows import VectorRows
    from hiermem_core.models.turns import Turn
    from hiermem_core.ranking.scoring import Place
    from hiermem_core.storage.database import Database

_S, _P = searchable.c, participants.c
_SPOKEN = frozenset({"user", "assistant"})
_ORIGIN = (0, 0, None)
_NEWEST = Prepared(
    select(_S.position, _S.part, _S.created_at)
    .where(_S.thread == bindparam("of"))
    .order_by(_S.seq.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class _Row:
    """A turn and its place among the rows of its thread."""

    number: int
    turn: Turn
    position: int
    part: int


class TurnRows:
    """Keep the rows of turns.

    Attributes:
        is_on: Turns are searchable at all.

    Args:
        vectors: Queues and removes their vectors.
        part_gap: A longer pause begins a new part of the thread.
        awaits: Tells whether their vectors are made, later.
    """

    def __init__(
        self, vectors: VectorRows, *, part_gap: timedelta, is_on: bool, awaits: Callable[[], bool]
    ) -> None:
        self._vectors = vectors
        self._gap = round(part_gap.total_seconds() * 1000)
        self.is_on = is_on
        self._awaits = awaits

    def add(self, connection: Connection, tenant: str, thread: int, fresh: Sequence[Turn]) -> None:
        """Make the newest turns of a thread searchable."""
        found = [turn for turn in fresh if is_searchable(turn)] if self.is_on else []
        if not found:
            return
        rows = self._placed(connection, thread, found)
        made = [_row(row, tenant=tenant, thread=thread) for row in rows]
        insert_rows(connection, searchable, tuple(made[0]), [tuple(it.values()) for it in made])
        scope = turn_scope(count_turn_change(connection, tenant), thread)
        add_keywords(connection, [(row.number, scope, body_of(row.turn)) for row in rows])
        _add_participants(connection, tenant, thread, found)
        if self._awaits():
            self._vectors.await_vectors(connection, tenant, [row.number for row in rows])

    def renew(self, connection: Connection, tenant: str, thread: int, turn: Turn) -> None:
        """Make a turn searchable by its new content, and the next by what it follows now."""
        mine = and_(_S.thread == thread, _S.seq == turn.seq)
        number = connection.execute(select(_S.number).where(mine)).scalar()
        if number is None:
            return
        if not is_searchable(turn):
            self.remove(connection, tenant, thread, [turn.seq])
            return
        facts = _facts(turn)
        connection.execute(update(searchable).where(_S.number == number).values(facts))
        remove_keywords(connection, [number])
        scope = turn_scope(count_turn_change(connection, tenant), thread)
        add_keywords(connection, [(number, scope, body_of(turn))])
        following = connection.execute(
            select(_S.number)
            .where(_S.thread == thread, _S.seq > turn.seq)
            .order_by(_S.seq)
            .limit(1)
        ).scalar()
        changed = [number] if following is None else [number, following]
        self._vectors.remove(connection, tenant, changed)
        if self._awaits():
            self._vectors.await_vectors(connection, tenant, changed)

    def remove(
        self, connection: Connection, tenant: str, thread: int, seqs: Sequence[int] | None = None
    ) -> None:
        """Take turns out of what is searched; without `seqs` all of the thread.

        What followed one of them is embedded anew, since its vector was made from both.
        """
        numbers: list[int] = []
        mine = select(_S.number).where(_S.thread == thread)
        if seqs is None:
            numbers += connection.execute(mine).scalars()
        for some in slices(seqs or []):
            numbers += connection.execute(mine.where(_S.seq.in_(some))).scalars()
        following = set(_following(connection, numbers)) - set(numbers) if seqs else set()
        count_turn_change(connection, tenant)
        remove_keywords(connection, numbers)
        self._vectors.remove(connection, tenant, [*numbers, *following])
        for some in slices(numbers):
            connection.execute(delete(searchable).where(_S.number.in_(some)))
        _remove_participants(connection, thread)
        if self._awaits():
            self._vectors.await_vectors(connection, tenant, following)

    def _placed(self, connection: Connection, thread: int, found: Sequence[Turn]) -> list[_Row]:
        last = _NEWEST.run(connection, {"of": thread}).first()
        position, part, before = _ORIGIN if last is None else tuple(last)
        rows = []
        for number, turn in zip(
            next_numbers(connection, searchable, len(found)), found, strict=True
        ):
            moment = _milliseconds(turn)
            position += 1
            part += before is not None and moment - before > self._gap
            before = moment
            rows.append(_Row(number, turn, position, part))
        return rows


def is_searchable(turn: Turn) -> bool:
    """Tell whether recall may find a turn: a user or assistant said something in it."""
    return turn.role in _SPOKEN and bool(turn.content) and not is_blank(turn)


def body_of(turn: Turn) -> str:
    """Return what of a turn goes into the keyword index."""
    moment = from_milliseconds(_milliseconds(turn))
    return turn_body(
        turn.content or "", author=turn.name, created_at=moment, captions=captions_of(turn)
    )


def captions_of(turn: Turn) -> list[str]:
    """Return what is said about a turn's attachments: their texts, else their titles."""
    media = [part for part in turn.parts if part["type"] == "media"]
    captions = [part.get("text") or part.get("title") for part in media]
    return [caption for caption in captions if caption]


_FACTS = select(
    _S.number, _S.thread, _S.position, _S.part, _S.author, _S.words, _S.is_question
).where(_S.number.in_(given_numbers("numbers")), _S.thread.is_not(None))


def facts_of(connection: Connection, numbers: Collection[int]) -> dict[int, TurnFacts]:
    """Return what ranking asks of those rows that are turns."""
    found = connection.execute(_FACTS, {"numbers": as_given(numbers)}).all()
    return {row[0]: TurnFacts(*row[1:]) for row in found}


_places, _thread, _part, _position = given_triples("places")
_AT = select(_S.number, _S.thread, _S.seq).join_from(
    _places,
    searchable,
    and_(_S.thread == _thread, _S.position == _position, _S.part == _part),
)


def numbers_at(
    connection: Connection, places: Collection[Place], before: tuple[int, int] | None
) -> list[int]:
    """Return the rows of turns at some places; of one thread only those before a seq."""
    found = connection.execute(_AT, {"places": as_given(places)})
    thread, seq = before or (None, None)
    return [row[0] for row in found if row[1] != thread or seq is None or row[2] < seq]


def participants_of(
    connection: Connection, tenant: str, threads: Collection[int] | None
) -> list[str]:
    """Return the names that turns of these threads are said by; of all where `None`."""
    query = select(_P.author).distinct().where(_P.tenant == tenant)
    if threads is not None:
        query = query.where(_P.thread.in_(threads))
    return list(connection.execute(query.order_by(_P.author)).scalars())


def roles_in(database: Database, tenant: str, ids: Collection[str]) -> dict[str, str]:
    """Return `roles_of_turns`, of a snapshot."""
    with database.read() as connection:
        return roles_of_turns(connection, tenant, ids)


def roles_of_turns(connection: Connection, tenant: str, ids: Collection[str]) -> dict[str, str]:
    """Return the roles of those of a tenant's active turns that have these ids."""
    mine = select(turns.c.id, turns.c.role).join(threads, threads.c.number == turns.c.thread)
    mine = mine.where(threads.c.tenant == tenant, ~turns.c.archived)
    found: dict[str, str] = {}
    for some in slices(list(ids)):
        found |= dict(connection.execute(mine.where(turns.c.id.in_(some))).all())
    return found


def _add_participants(
    connection: Connection, tenant: str, thread: int, found: Iterable[Turn]
) -> None:
    names = {turn.name for turn in found if turn.name}
    names -= set(participants_of(connection, tenant, [thread])) if names else set()
    rows = [{"tenant": tenant, "author": name, "thread": thread} for name in sorted(names)]
    if rows:
        connection.execute(insert(participants), rows)


def _remove_participants(connection: Connection, thread: int) -> None:
    """Remove the names by which nothing is said any more."""
    still = select(_S.number).where(_S.thread == thread, _S.author == _P.author).exists()
    connection.execute(delete(participants).where(_P.thread == thread, ~still))


def _following(connection: Connection, numbers: Sequence[int]) -> list[int]:
    """Return the rows whose vectors are made from one of these turns too."""
    after = searchable.alias()
    found: list[int] = []
    for some in slices(numbers):
        query = select(after.c.number).join(searchable, _is_before(searchable, after))
        found += connection.execute(query.where(_S.number.in_(some))).scalars()
    return found


def embedding_texts(connection: Connection, numbers: Iterable[int]) -> dict[int, str]:
    """Return what of those rows that are turns is embedded: what was said before, and the turn."""
    before = searchable.alias()
    said_now, said_before = turns.alias(), turns.alias()
    texts: dict[int, str] = {}
    for some in slices(list(numbers)):
        query = (
            select(_S.number, said_now.c.content, _S.author, _S.caption)
            .add_columns(said_before.c.content, before.c.author, before.c.caption)
            .join(said_now, _is_turn_of(said_now, searchable))
            .outerjoin(before, _is_before(before, searchable))
            .outerjoin(said_before, _is_turn_of(said_before, before))
            .where(_S.number.in_(some))
        )
        for number, content, author, caption, *previous in connection.execute(query):
            texts[number] = turn_embedding_text(
                content,
                author=author,
                captions=_listed(caption),
                previous=None if previous[0] is None else _said(*previous),
            )
    return texts


def _said(content: str, author: str | None, caption: str | None) -> str:
    return said(content, author=author, captions=_listed(caption))


def _listed(caption: str | None) -> tuple[str, ...]:
    return () if caption is None else (caption,)


def _is_before(before: Any, row: Any) -> Any:
    is_next = before.c.position == row.c.position - 1
    return and_(before.c.thread == row.c.thread, before.c.part == row.c.part, is_next)


def _is_turn_of(turn: Any, row: Any) -> Any:
    return and_(turn.c.thread == row.c.thread, ~turn.c.archived, turn.c.seq == row.c.seq)


def _row(row: _Row, *, tenant: str, thread: int) -> dict[str, Any]:
    return {
        "number": row.number,
        "tenant": tenant,
        "thread": thread,
        "seq": row.turn.seq,
        "position": row.position,
        "part": row.part,
        "created_at": _milliseconds(row.turn),
        **_facts(row.turn),
    }


def _facts(turn: Turn) -> dict[str, Any]:
    text = turn.content or ""
    return {
        "author": turn.name,
        "words": word_count(text),
        "is_question": is_question(text),
        "caption": "; ".join(captions_of(turn)) or None,
    }


def _milliseconds(turn: Turn) -> int:
    return 0 if turn.created_at is None else to_milliseconds(turn.created_at)
