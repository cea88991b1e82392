"""The thread store: what is written to threads.

Everything that needs no database (checking, cleaning, counting) happens before the transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import and_, bindparam, delete, insert, select, update

from hiermem_core.errors import (
    InvalidInputError,
    NotFoundError,
    VersionConflictError,
)
from hiermem_core.models import events
from hiermem_core.models.ids import check_name
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.plain import dump_json
from hiermem_core.models.threads import TurnList
from hiermem_core.storage import tables
from hiermem_core.storage.database import slices
from hiermem_core.storage.prepared import Prepared
from hiermem_core.threads import reading
from hiermem_core.threads.notes import unlearn
from hiermem_core.threads.placing import (
    edited,
    new_among,
    placed_after,
    shared_prefix,
)
from hiermem_core.threads.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import ColumnElement, Connection

    from hiermem_core.backends.turn_rows import TurnRows
    from hiermem_core.models.turns import Turn
    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database
    from hiermem_core.threads.drafts import TurnLike
    from hiermem_core.threads.preparing import Changed, Preparing
    from hiermem_core.threads.reading import Head
    from hiermem_core.threads.turn_table import TurnTable

_T = tables.turns.c
_SAVE_HEAD = Prepared(
    update(tables.threads).where(tables.threads.c.number == bindparam("of")),
    sets=("last_seq", "tally", "answered_seq", "changes", "updated_at"),
)


class ThreadStore:
    """Write turns: in order, durably, and harmlessly when repeated.

    Args:
        preparing: Makes turns ready to be stored.
        rows: Makes turns searchable, in the transaction that stores them.
        tell: Takes the events of a change, after its commit.
        after_write: Told of the tenant after a commit.
        table: Writes the turns.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        preparing: Preparing,
        rows: TurnRows,
        tell: Callable[[events.Event], None],
        after_write: Callable[[str], None],
        table: TurnTable,
    ) -> None:
        self._table = table
        self._database = database
        self._clock = clock
        self._preparing = preparing
        self._rows = rows
        self._tell = tell
        self._after_write = after_write

    def append(
        self,
        tenant_id: str,
        thread_id: str,
        turns: Sequence[TurnLike],
        *,
        expected_seq: int | None = None,
        removing: Sequence[str] = (),
    ) -> TurnList:
        """Store turns at the end of a thread, as one contiguous batch; the first creates it.

        A turn whose id is stored with equal content is not stored again. Turns named in
        `removing` are archived in the same transaction.

        Raises:
            NotFoundError: A turn to remove is not there. Nothing was stored.
            TurnConflictError: An id is stored with other content. Nothing was stored.
            VersionConflictError: `expected_seq` is not the newest seq. Nothing was stored.
        """
        self._database.check_open()
        ready, changed = self._preparing.all(tenant_id, thread_id, turns)
        if not ready and not removing:
            return TurnList()
        with self._table.transaction(tenant_id) as connection:
            head = reading.head_of(connection, tenant_id, thread_id)
            head = head or self._create(connection, tenant_id, thread_id)
            head, removed = self._archive_by_id(connection, head, removing)
            placed = self._place(connection, head, ready)
            fresh = new_among(placed, last_seq=head.last_seq)
            if (fresh or removed) and expected_seq not in (None, head.last_seq):
                raise VersionConflictError(expected=expected_seq or 0, actual=head.last_seq)
            if fresh:
                self._write(connection, head, fresh)
        if removed:
            self._tell(events.TurnsArchived(tenant_id, thread_id, removed))
        self._announce(tenant_id, thread_id, fresh, changed)
        return TurnList(placed)

    def replace(self, tenant_id: str, thread_id: str, turns: Sequence[TurnLike]) -> TurnList:
        """Give a thread new turns in one transaction; the old ones are archived.

        Turns that stand at the same place already, dump included, are left as they are.
        """
        ready, changed = self._preparing.all(tenant_id, thread_id, turns)
        with self._table.transaction(tenant_id) as connection:
            head = reading.head_of(connection, tenant_id, thread_id)
            if head is None and not ready:
                return TurnList()
            head = head or self._create(connection, tenant_id, thread_id)
            stored = reading.active_turns(connection, head.number)
            same = shared_prefix(stored, ready)
            old, new = stored[same:], ready[same:]
            if old:
                self._archive(connection, head, old)
            kept = replace(head.changed() if old else head, tally=Tally().add(stored[:same]))
            placed = self._place(connection, kept, new) if new else []
            fresh = new_among(placed, last_seq=head.last_seq)
            if old or fresh:
                self._write(connection, kept, fresh)
        if old or fresh:
            self._tell(events.ThreadReplaced(tenant_id, thread_id, len(old), len(fresh)))
            self._announce(tenant_id, thread_id, [], changed)
        return TurnList(stored[:same] + fresh)

    def edit_turn(
        self, tenant_id: str, thread_id: str, turn_id: str, content: str, *, user_id: str | None
    ) -> Turn:
        """Replace the content of an active turn; id, seq and tool calls stay.

        The framework's dump and the parts go, since they hold the old content.

        Raises:
            ThreadNotFoundError: There is no such thread.
            NotFoundError: The thread has no such active turn.
        """
        with self._database.read() as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            old = self._require_turn(connection, head, turn_id)
        who = old.user_id if user_id is None else user_id
        bare = replace(old, content=content, parts=(), origin=None, user_id=who)
        draft, changed = self._preparing.one(tenant_id, thread_id, bare)
        counts = self._preparing.counts(draft)
        with self._table.transaction(tenant_id) as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            old = self._require_turn(connection, head, turn_id)
            new = edited(old, draft, counts)
            self._rewrite(connection, head, new)
            self._recount(connection, head)
            unlearn(connection, head, [new.seq])
        self._tell(events.TurnEdited(tenant_id, thread_id, new.seq, new.revision))
        self._announce(tenant_id, thread_id, [], changed)
        return new

    def delete_turns(
        self, tenant_id: str, thread_id: str, turn_ids: Iterable[str]
    ) -> dict[str, bool]:
        """Delete active turns by id, and what was learnt from them; say for each if it was there.

        Raises:
            ThreadNotFoundError: There is no such thread.
        """
        self._database.check_open()
        if isinstance(turn_ids, str):
            raise InvalidInputError("turn_ids", "must be a list of ids")
        wanted = list(dict.fromkeys(turn_ids))
        if not wanted:
            return {}
        with self._table.transaction(tenant_id) as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            seqs = self._remove(connection, head, wanted)
            unlearn(connection, head, seqs.values())
        self._tell_deleted(tenant_id, thread_id, len(seqs))
        return {turn_id: turn_id in seqs for turn_id in wanted}

    def prune(self, tenant_id: str, thread_id: str, turn_ids: Sequence[str]) -> None:
        """Delete active turns and keep what was learnt from them.

        Raises:
            ThreadNotFoundError: There is no such thread.
        """
        with self._table.transaction(tenant_id) as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            seqs = self._remove(connection, head, turn_ids)
        self._tell_deleted(tenant_id, thread_id, len(seqs))

    def delete_thread(self, tenant_id: str, thread_id: str) -> bool:
        """Delete a thread and everything in it, archived turns too; say whether there was one."""
        with self._table.transaction(tenant_id) as connection:
            head = reading.head_of(connection, tenant_id, thread_id)
            if head is None:
                return False
            self.erase_thread(connection, head)
        self._tell(events.ThreadDeleted(tenant_id, thread_id))
        return True

    def erase_thread(self, connection: Connection, head: Head) -> None:
        """Erase a thread with everything in it, in the running transaction."""
        self._rows.remove(connection, head.tenant, head.number)
        self._table.remove(connection, head.tenant, _T.thread == head.number)
        connection.execute(delete(tables.threads).where(tables.threads.c.number == head.number))

    def erase_turns(self, connection: Connection, head: Head, seqs: Sequence[int]) -> bool:
        """Erase turns, archived ones too, in the running transaction; count the thread anew.

        Returns:
            Whether turns are left in the thread.
        """
        for some in slices(seqs):
            mine = and_(_T.thread == head.number, _T.seq.in_(some))
            self._table.remove(connection, head.tenant, mine)
        self._unlink_calls(connection, head, seqs)
        self._rows.remove(connection, head.tenant, head.number, seqs)
        self._recount(connection, head)
        left = select(_T.seq).where(_T.thread == head.number).limit(1)
        return connection.execute(left).first() is not None

    def _create(self, connection: Connection, tenant_id: str, thread_id: str) -> Head:
        now = to_milliseconds(self._clock.now())
        row = {
            "tenant": check_name("tenant", tenant_id),
            "thread_id": check_name("thread", thread_id),
            "last_seq": 0,
            "tally": dump_json(Tally().to_json()),
            "answered_seq": 0,
            "changes": 0,
            "created_at": now,
            "updated_at": now,
        }
        connection.execute(insert(tables.threads).values(row))
        return reading.require_head(connection, tenant_id, thread_id)

    def _place(self, connection: Connection, head: Head, ready: Sequence[Turn]) -> list[Turn]:
        ids = [turn.id for turn in ready if turn.id is not None]
        known = reading.turns_by_id(connection, head.number, ids) if ids else {}
        placed = placed_after(head.last_seq, ready, known, now=self._clock.now())
        return reading.linked_to_calls(connection, head, placed)

    def _write(self, connection: Connection, head: Head, fresh: Sequence[Turn]) -> None:
        if fresh:
            self._table.add(connection, head, fresh)
            self._index_calls(connection, head, fresh)
            self._rows.add(connection, head.tenant, head.number, fresh)
        last_seq = fresh[-1].seq if fresh else head.last_seq
        self._save_head(connection, replace(head, last_seq=last_seq, tally=head.tally.add(fresh)))

    def _index_calls(self, connection: Connection, head: Head, turns: Iterable[Turn]) -> None:
        rows = {
            (call.id or "", turn.seq): {
                "thread": head.number,
                "call_id": call.id or "",
                "seq": turn.seq,
            }
            for turn in turns
            for call in turn.tool_calls
        }
        if rows:
            connection.execute(insert(tables.calls), list(rows.values()))

    def _save_head(self, connection: Connection, head: Head) -> None:
        row = {
            "of": head.number,
            "last_seq": head.last_seq,
            "tally": dump_json(head.tally.to_json()),
            "answered_seq": head.tally.answered_seq,
            "changes": head.changes,
            "updated_at": to_milliseconds(self._clock.now()),
        }
        _SAVE_HEAD.run(connection, row)

    def _recount(self, connection: Connection, head: Head) -> Head:
        turns = reading.active_turns(connection, head.number)
        head = replace(head.changed(), tally=Tally().add(turns))
        self._save_head(connection, head)
        return head

    def _archive_by_id(
        self, connection: Connection, head: Head, ids: Sequence[str]
    ) -> tuple[Head, int]:
        gone = reading.archived_ids(connection, head.number, ids) if ids else set()
        wanted = [turn_id for turn_id in dict.fromkeys(ids) if turn_id not in gone]
        old = [self._require_turn(connection, head, turn_id) for turn_id in wanted]
        if not old:
            return head, 0
        self._archive(connection, head, old)
        return self._recount(connection, head), len(old)

    def _archive(self, connection: Connection, head: Head, turns: Sequence[Turn]) -> None:
        seqs = [turn.seq for turn in turns]
        for some in slices(seqs):
            connection.execute(
                update(tables.turns).where(_active_of(head), _T.seq.in_(some)).values(archived=True)
            )
        self._unlink_calls(connection, head, seqs)
        self._rows.remove(connection, head.tenant, head.number, seqs)
        unlearn(connection, head, seqs)

    def _remove(
        self, connection: Connection, head: Head, turn_ids: Sequence[str]
    ) -> dict[str, int]:
        """Delete the active turns among some ids; return their seqs."""
        found = reading.turns_by_id(connection, head.number, turn_ids)
        seqs = [turn.seq for turn in found.values()]
        for some in slices(seqs):
            self._table.remove(connection, head.tenant, _active_of(head) & _T.seq.in_(some))
        if seqs:
            self._unlink_calls(connection, head, seqs)
            self._rows.remove(connection, head.tenant, head.number, seqs)
            self._recount(connection, head)
        return {turn_id: turn.seq for turn_id, turn in found.items()}

    def _tell_deleted(self, tenant_id: str, thread_id: str, count: int) -> None:
        if count:
            self._tell(events.TurnsDeleted(tenant_id, thread_id, count))

    def _unlink_calls(self, connection: Connection, head: Head, seqs: Sequence[int]) -> None:
        calls = tables.calls.c
        for some in slices(seqs):
            connection.execute(
                delete(tables.calls).where(calls.thread == head.number, calls.seq.in_(some))
            )
            connection.execute(
                update(tables.turns)
                .where(_active_of(head), _T.call_seq.in_(some))
                .values(call_seq=None)
            )

    def _rewrite(self, connection: Connection, head: Head, turn: Turn) -> None:
        self._table.rewrite(connection, head, turn)
        self._rows.renew(connection, head.tenant, head.number, turn)

    def _require_turn(self, connection: Connection, head: Head, turn_id: str) -> Turn:
        found = reading.turns_by_id(connection, head.number, [turn_id])
        if turn_id not in found:
            raise NotFoundError(f"turn {turn_id!r} not found; read the thread for its ids")
        return found[turn_id]

    def _announce(
        self, tenant_id: str, thread_id: str, fresh: Sequence[Turn], changed: Changed
    ) -> None:
        self._after_write(tenant_id)
        if fresh:
            first, last = fresh[0].seq, fresh[-1].seq
            self._tell(events.TurnsAppended(tenant_id, thread_id, len(fresh), first, last))
        if changed.characters:
            self._tell(events.TextSanitised(tenant_id, changed.characters, thread_id))
        if changed.paths:
            self._tell(events.ValuesReplaced(tenant_id, thread_id, changed.paths))


def _active_of(head: Head) -> ColumnElement[bool]:
    return and_(_T.thread == head.number, ~_T.archived)
