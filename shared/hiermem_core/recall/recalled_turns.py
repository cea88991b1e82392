"""The turns of found rows, as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, select

from hiermem_core.models.moments import from_milliseconds
from hiermem_core.storage.given import as_given, given_numbers
from hiermem_core.storage.tables import searchable, threads, turns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Connection

    from hiermem_core.models.queries import TurnHit

_H, _S, _T = threads.c, searchable.c, turns.c


_SHOWN = (
    select(_S.number, _H.thread_id, _T.id, _T.seq, _S.part, _T.role, _S.author, _T.content)
    .add_columns(_S.caption, _T.created_at)
    .join(turns, and_(_T.thread == _S.thread, ~_T.archived, _T.seq == _S.seq))
    .join(threads, _H.number == _S.thread)
    .where(_S.number.in_(given_numbers("numbers")))
)


_before = searchable.alias()
_BEFORE = (
    select(_before.c.number)
    .join(searchable, _before.c.thread == _S.thread)
    .join(threads, _H.number == _S.thread)
    .where(
        _H.tenant == bindparam("tenant"),
        _H.thread_id == bindparam("thread_id"),
        _S.seq == bindparam("seq"),
        _before.c.part == _S.part,
        _before.c.position == _S.position - 1,
    )
)


def turns_before(
    connection: Connection, tenant: str, hits: Iterable[TurnHit]
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return for each hit, by thread and seq, the turn before it in its part, if there is one."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for hit in hits:
        facts = {"tenant": tenant, "thread_id": hit.thread_id, "seq": hit.seq}
        number = connection.execute(_BEFORE, facts).scalar()
        if number is not None:
            found[hit.thread_id, hit.seq] = recalled_turns(connection, [number])[number]
    return found


def recalled_turns(connection: Connection, numbers: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return what a `TurnHit` says of each of these rows that is a turn."""
    found: dict[int, dict[str, Any]] = {}
    for row in connection.execute(_SHOWN, {"numbers": as_given(numbers)}):
        number, thread_id, turn_id, seq, part, role, author, content, caption, created_at = row
        found[number] = {
            "thread_id": thread_id,
            "id": turn_id,
            "seq": seq,
            "part": part,
            "role": role,
            "author": author,
            "content": content if caption is None else f"{content} [{caption}]",
            "created_at": from_milliseconds(created_at),
        }
    return found
