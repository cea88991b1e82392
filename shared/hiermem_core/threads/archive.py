"""Writing archived turns, which are kept and out of the thread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hiermem_core.models import events
from hiermem_core.models.threads import TurnList
from hiermem_core.threads import reading
from hiermem_core.threads.notes import unlearn
from hiermem_core.threads.placing import new_among
from hiermem_core.threads.store import ThreadStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from hiermem_core.models.turns import Status, Turn
    from hiermem_core.threads.drafts import TurnLike
    from hiermem_core.threads.reading import Head


class ArchivingStore(ThreadStore):
    """A thread store that writes archived turns too, and deletes them."""

    def append_archived(
        self, tenant_id: str, thread_id: str, turns: Sequence[TurnLike]
    ) -> TurnList:
        """Store turns at the end of a thread as archived ones; the first creates it."""
        self._database.check_open()
        ready, changed = self._preparing.all(tenant_id, thread_id, turns)
        if not ready:
            return TurnList()
        with self._table.transaction(tenant_id) as connection:
            head = reading.head_of(connection, tenant_id, thread_id)
            head = head or self._create(connection, tenant_id, thread_id)
            fresh = self._put_away(connection, head, ready)
        self._announce(tenant_id, thread_id, fresh, changed)
        self._tell(events.TurnsArchived(tenant_id, thread_id, len(fresh)))
        return TurnList(fresh)

    def renew(
        self, tenant_id: str, thread_id: str, turns: Sequence[TurnLike], status: Status
    ) -> TurnList:
        """Give a thread these turns alone, in one transaction; all others are deleted for good."""
        ready, changed = self._preparing.all(tenant_id, thread_id, turns)
        with self._table.transaction(tenant_id) as connection:
            head = reading.head_of(connection, tenant_id, thread_id)
            if head is None and not ready:
                return TurnList()
            head = head or self._create(connection, tenant_id, thread_id)
            head, gone = self._erase(connection, head, None)
            if status == "archived":
                fresh = self._put_away(connection, head, ready)
            else:
                fresh = new_among(self._place(connection, head, ready), last_seq=head.last_seq)
                self._write(connection, head, fresh)
        self._tell_deleted(tenant_id, thread_id, len(gone))
        self._announce(tenant_id, thread_id, fresh, changed)
        return TurnList(fresh)

    def erase(
        self,
        tenant_id: str,
        thread_id: str,
        status: Status,
        turn_ids: Sequence[str] | None = None,
    ) -> TurnList:
        """Delete turns of a status for good, or those of them with these ids; return them.

        Raises:
            ThreadNotFoundError: There is no such thread.
        """
        with self._table.transaction(tenant_id) as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            _, gone = self._erase(connection, head, status, turn_ids)
        self._tell_deleted(tenant_id, thread_id, len(gone))
        return gone

    def _erase(
        self,
        connection: Connection,
        head: Head,
        status: Status | None,
        turn_ids: Sequence[str] | None = None,
    ) -> tuple[Head, TurnList]:
        found = reading.turns_between(connection, head.number, status=status)
        if turn_ids is not None:
            found = TurnList(turn for turn in found if turn.id in set(turn_ids))
        if not found:
            return head, found
        seqs = [turn.seq for turn in found]
        self.erase_turns(connection, head, seqs)
        unlearn(connection, head, seqs)
        return reading.require_head(connection, head.tenant, head.thread_id), found

    def _put_away(self, connection: Connection, head: Head, ready: Sequence[Turn]) -> list[Turn]:
        placed = self._place(connection, head, ready)
        fresh = [
            replace(turn, status="archived") for turn in new_among(placed, last_seq=head.last_seq)
        ]
        if fresh:
            self._table.add(connection, head, fresh)
            self._save_head(connection, replace(head, last_seq=fresh[-1].seq))
        return fresh
