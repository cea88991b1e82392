"""The turns of found rows, as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, select

from hiermem_core.models.moments import from_milliseconds
from hiermem_core.storage.database import slices
from hiermem_core.storage.tables import searchable, threads, turns

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

_H, _S, _T = threads.c, searchable.c, turns.c


def recalled_turns(connection: Connection, numbers: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return what a `TurnHit` says of each of these rows that is a turn."""
    found: dict[int, dict[str, Any]] = {}
    is_turn = and_(_T.thread == _S.thread, ~_T.archived, _T.seq == _S.seq)
    for some in slices(list(numbers)):
        query = (
            select(_S.number, _H.thread_id, _T.id, _T.seq, _S.part, _T.role, _S.author, _T.content)
            .add_columns(_S.caption, _T.created_at)
            .join(turns, is_turn)
            .join(threads, _H.number == _S.thread)
            .where(_S.number.in_(some))
        )
        for number, thread_id, turn_id, seq, part, role, author, *said in connection.execute(query):
            content, caption, created_at = said
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
