"""Reading threads: statements that never change anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, bindparam, func, select, true, union_all

from hiermem_core.errors import ThreadNotFoundError
from hiermem_core.models.moments import from_milliseconds
from hiermem_core.models.plain import load_json
from hiermem_core.models.text import is_clean
from hiermem_core.models.threads import ThreadInfo, TurnList
from hiermem_core.storage import tables
from hiermem_core.storage.database import slices
from hiermem_core.storage.given import as_given, given_texts
from hiermem_core.storage.prepared import Prepared
from hiermem_core.threads.rows import turn_of
from hiermem_core.threads.tally import Count, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from hiermem_core.models.turns import Status, Turn


@dataclass(frozen=True, slots=True)
class Head:
    """A thread's row."""

    number: int
    tenant: str
    thread_id: str
    last_seq: int
    tally: Tally
    created_at: int
    updated_at: int
    changes: int

    def changed(self) -> Head:
        """Return the row after stored turns were changed, and not only new ones added."""
        return replace(self, changes=self.changes + 1)

    def info(self) -> ThreadInfo:
        """Return what a caller may see of it."""
        return ThreadInfo(
            thread_id=self.thread_id,
            turns=self.tally.turns,
            last_seq=self.last_seq,
            tokens=dict(self.tally.tokens),
            created_at=from_milliseconds(self.created_at),
            updated_at=from_milliseconds(self.updated_at),
        )


_T = tables.turns.c
_H = tables.threads.c

_HEAD = select(
    *(_H.number, _H.tenant, _H.thread_id, _H.last_seq, _H.tally, _H.answered_seq),
    *(_H.created_at, _H.updated_at, _H.changes),
).where(_H.tenant == bindparam("tenant"), _H.thread_id == bindparam("thread_id"))

_FIND = Prepared(_HEAD)

_ACTIVE = select(tables.turns).where(_T.thread == bindparam("number"), ~_T.archived)

_IN_ORDER = _ACTIVE.order_by(_T.seq)

_OF_IDS = (
    select(_T.id)
    .select_from(tables.turns.join(tables.threads))
    .where(_H.tenant == bindparam("tenant"), _H.thread_id == bindparam("thread_id"))
    .where(_T.id.in_(given_texts("ids")))
)
_KNOWN = Prepared(union_all(_OF_IDS.where(~_T.archived), _OF_IDS.where(_T.archived)))
"""In two, as the index of ids is of active turns; archived ones are few, and stand together."""

_GIVEN = given_texts("ids").distinct().subquery()
_BY_ID = Prepared(_ACTIVE.join(_GIVEN, _T.id == next(iter(_GIVEN.c))))
"""By a table of distinct ids, since SQLite would rather read the whole thread for a list."""

_PAGE = Prepared(
    _ACTIVE.where(~_T.standing, _T.seq < bindparam("before"))
    .order_by(_T.seq.desc())
    .limit(bindparam("size"))
)

_NUMBER = _HEAD.with_only_columns(_H.number).correlate(None).scalar_subquery()
_OF_HEAD = len(_HEAD.selected_columns)
_NEW = (
    select(tables.turns)
    .where(_T.thread == _NUMBER, ~_T.archived, _T.seq > bindparam("after"))
    .order_by(_T.seq.desc())
    .limit(bindparam("size"))
    .subquery()
)
_NEWEST = Prepared(
    _HEAD.add_columns(*_NEW.c)
    .outerjoin_from(tables.threads, _NEW, true())
    .order_by(_NEW.c.seq.desc())
)
"""In one statement, with a thread's row even where it has no such turn."""


def head_of(connection: Connection, tenant_id: str, thread_id: str) -> Head | None:
    """Return a thread's row, or `None`."""
    row = _FIND.run(connection, {"tenant": tenant_id, "thread_id": thread_id}).first()
    return None if row is None else _head(row)


def require_head(connection: Connection, tenant_id: str, thread_id: str) -> Head:
    """Return a thread's row.

    Raises:
        ThreadNotFoundError: The tenant has no such thread.
    """
    head = head_of(connection, tenant_id, thread_id)
    if head is None:
        raise ThreadNotFoundError(thread_id)
    return head


def heads_of(connection: Connection, tenant_id: str, *, limit: int, offset: int) -> list[Head]:
    """Return the threads of a tenant in the order of their first turn."""
    query = select(*_HEAD.selected_columns).where(_H.tenant == tenant_id).order_by(_H.number)
    return [_head(row) for row in connection.execute(query.limit(limit).offset(offset))]


def sums_of(connection: Connection, tenant_id: str, counter_id: str) -> dict[str, int]:
    """Return how many threads, turns, archived turns and tokens a tenant has."""
    rows = connection.execute(select(_H.tally).where(_H.tenant == tenant_id)).scalars()
    tallies = [Tally.from_json(load_json(tally)) for tally in rows]
    archived = (
        select(func.count())
        .select_from(tables.turns.join(tables.threads))
        .where(_H.tenant == tenant_id, _T.archived)
    )
    return {
        "threads": len(tallies),
        "turns": sum(tally.turns for tally in tallies),
        "archived_turns": connection.execute(archived).scalar_one(),
        "tokens": sum(tally.tokens[counter_id] for tally in tallies),
        "uncounted_turns": sum(tally.turns - tally.counted[counter_id] for tally in tallies),
    }


def active_turns(connection: Connection, number: int) -> list[Turn]:
    """Return every active turn of a thread, in order."""
    return [turn_of(row) for row in connection.execute(_IN_ORDER, {"number": number}).all()]


def standing_turns(connection: Connection, head: Head) -> list[Turn]:
    """Return the system and pinned turns of a thread, in order."""
    found: list[Turn] = []
    for some in slices(head.tally.standing_seqs):
        query = _ACTIVE.where(_T.seq.in_(some)).order_by(_T.seq)
        found += map(turn_of, connection.execute(query, {"number": head.number}))
    return found


def newest_rows(
    connection: Connection, tenant_id: str, thread_id: str, *, after: int, size: int
) -> tuple[Head, list[Sequence[Any]]]:
    """Return a thread's row, and up to `size` rows of active turns with seqs above `after`.

    They are the newest ones, newest first.

    Raises:
        ThreadNotFoundError: The tenant has no such thread.
    """
    values = {"tenant": tenant_id, "thread_id": thread_id, "after": after, "size": size}
    rows = _NEWEST.run(connection, values).all()
    if not rows:
        raise ThreadNotFoundError(thread_id)
    head = _head(rows[0][:_OF_HEAD])
    return head, [row[_OF_HEAD:] for row in rows if row[_OF_HEAD] is not None]


def page_before(
    connection: Connection, number: int, before: int, size: int
) -> Sequence[Sequence[Any]]:
    """Return up to `size` rows inside the exchanges, newest first, older than seq `before`."""
    values = {"number": number, "before": before, "size": size}
    return _PAGE.run(connection, values).all()


def turns_between(
    connection: Connection,
    number: int,
    *,
    after: int = 0,
    before: int | None = None,
    first: int | None = None,
    last: int | None = None,
    status: Status | None,
) -> TurnList:
    """Return turns by seq, ascending; with `first` or `last`, the oldest or newest that many."""
    size = first if last is None else last
    query = _between(
        status, ends=before is not None, backwards=last is not None, all_of=size is None
    )
    values = {"number": number, "after": after, "before": before, "size": size}
    turns = [turn_of(row) for row in connection.execute(query, values).all()]
    return TurnList(turns if last is None else reversed(turns))


@cache
def _between(status: Status | None, *, ends: bool, backwards: bool, all_of: bool) -> Select[Any]:
    """Return a statement of its own for each kind of question: made once, it costs a tenth."""
    query = select(tables.turns).where(_T.thread == bindparam("number"))
    query = query.where(_T.seq > bindparam("after"))
    if status is not None:
        query = query.where(_T.archived == (status == "archived"))
    if ends:
        query = query.where(_T.seq < bindparam("before"))
    query = query.order_by(_T.seq.desc() if backwards else _T.seq)
    return query if all_of else query.limit(bindparam("size"))


def count_of(connection: Connection, number: int, status: Status | None) -> int:
    """Return how many turns of a status a thread has; reads none."""
    query = select(func.count()).where(_T.thread == number)
    if status is not None:
        query = query.where(_T.archived == (status == "archived"))
    return connection.execute(query).scalar_one()


def known_ids(
    connection: Connection, tenant_id: str, thread_id: str, ids: Sequence[str]
) -> set[str]:
    """Return those of these ids that a turn of a thread has, archived or not."""
    values = {"tenant": tenant_id, "thread_id": thread_id, "ids": as_given(_storable(ids))}
    return set(_KNOWN.run(connection, values).scalars())


def archived_ids(connection: Connection, number: int, ids: Sequence[str]) -> set[str]:
    """Return those of these ids that an archived turn has and no active one."""
    found: set[str] = set()
    for some in slices(_storable(ids)):
        query = select(_T.id).where(_T.thread == number, _T.archived, _T.id.in_(some))
        found |= set(connection.execute(query).scalars())
    return found - turns_by_id(connection, number, ids).keys()


def forwards(
    connection: Connection, number: int, after: int, until: int, *, page: int
) -> Iterator[Turn]:
    """Yield the active turns with seqs above `after` up to `until`, read page by page."""
    query = _ACTIVE.where(_T.seq > bindparam("after"), _T.seq <= bindparam("until"))
    query = query.order_by(_T.seq).limit(page)
    while after < until:
        values = {"number": number, "after": after, "until": until}
        turns = [turn_of(row) for row in connection.execute(query, values).all()]
        yield from turns
        if len(turns) < page:
            return
        after = turns[-1].seq


def counted_between(connection: Connection, number: int, after: int, before: int) -> Count:
    """Return the count of the turns inside the exchanges with seqs between these two."""
    query = _ACTIVE.where(~_T.standing, _T.seq > after, _T.seq < before)
    query = query.with_only_columns(_T.role, _T.tokens)
    count = Count()
    for role, tokens in connection.execute(query, {"number": number}):
        count.add_counted(role, load_json(tokens))
    return count


def turns_by_id(connection: Connection, number: int, ids: Sequence[str]) -> dict[str, Turn]:
    """Return the active turns with these ids."""
    rows = _BY_ID.run(connection, {"number": number, "ids": as_given(_storable(ids))})
    return {row.id: turn_of(row) for row in rows}


def linked_to_calls(connection: Connection, head: Head, turns: Sequence[Turn]) -> list[Turn]:
    """Return new turns with the `call_seq` of every result found: in the batch, else stored."""
    calls: dict[str, int] = {}
    result = []
    for turn in turns:
        linked = turn
        if turn.role == "tool" and turn.seq > head.last_seq:
            key = turn.tool_call_id or ""
            seq = calls.get(key) or _stored_call(connection, head.number, key)
            linked = replace(turn, call_seq=seq)
        calls |= {call.id or "": turn.seq for call in turn.tool_calls}
        result.append(linked)
    return result


def _stored_call(connection: Connection, number: int, call_id: str) -> int | None:
    table = tables.calls.c
    query = select(func.max(table.seq)).where(table.thread == number, table.call_id == call_id)
    return connection.execute(query).scalar()


def _storable(ids: Sequence[str]) -> list[str]:
    return [turn_id for turn_id in ids if isinstance(turn_id, str) and is_clean(turn_id)]


def _head(row: Any) -> Head:
    number, tenant, thread_id, last_seq, tally, answered_seq, created_at, updated_at, changes = row
    known = Tally.from_json(load_json(tally), answered_seq=answered_seq)
    return Head(number, tenant, thread_id, last_seq, known, created_at, updated_at, changes)
