"""The notes of threads: kept beside the turns, committed only onto the mark they were made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select

from hiermem_core.models.events import NotesReset
from hiermem_core.models.notes import Fact, Mark, ThreadState
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.storage import tables
from hiermem_core.threads import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from hiermem_core.models.events import Event
    from hiermem_core.storage.database import Database
    from hiermem_core.threads.reading import Head


class NotesStore:
    """Read and commit notes.

    Args:
        tell: Takes the events of a change, after its commit.
    """

    def __init__(self, database: Database, *, tell: Callable[[Event], None]) -> None:
        self._database = database
        self._tell = tell

    def read(self, tenant_id: str, thread_id: str) -> tuple[ThreadState, Mark]:
        """Return the notes of a thread and the mark to commit onto; empty where there are none.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._database.read() as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            return stored_notes(connection, head.number)

    def commit(self, tenant_id: str, thread_id: str, state: ThreadState, *, onto: Mark) -> bool:
        """Store notes if the mark is still `onto`; say whether they were.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._database.write() as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            _, mark = stored_notes(connection, head.number)
            is_onto = mark == onto and onto.thread in (None, mark.thread)
            if is_onto:
                _write(connection, head, state, epoch=mark.epoch)
            return is_onto

    def reset(self, tenant_id: str, thread_id: str) -> None:
        """Clear the notes and mark every turn so far as seen; the turns stay.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._database.write() as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            _, mark = stored_notes(connection, head.number)
            seen = ThreadState(turn_count=head.last_seq)
            _write(connection, head, seen, epoch=mark.epoch + 1)
        self._tell(NotesReset(tenant_id, thread_id))


def erase_notes(connection: Connection, head: Head) -> bool:
    """Erase the notes of a thread, in the running transaction; tell whether there were any.

    What is left of the thread is learned anew; after a reset, from the mark on, since what lies
    before it is not to be learned. Notes being made meanwhile do not fit onto the mark any more.
    """
    state, mark = stored_notes(connection, head.number)
    seen = ThreadState(turn_count=mark.turn_count if mark.epoch else 0)
    _write(connection, head, seen, epoch=mark.epoch + 1)
    return bool(state.summary or state.facts)


def stored_notes(connection: Connection, number: int) -> tuple[ThreadState, Mark]:
    """Return the notes of a thread's row number, and their mark."""
    query = select(tables.notes).where(tables.notes.c.thread == number)
    row = connection.execute(query).first()
    if row is None:
        return ThreadState(), Mark(thread=number)
    facts = tuple(_fact(fact) for fact in load_json(row.facts))
    mark = Mark(row.turn_count, row.epoch, number)
    return ThreadState(row.summary, facts, row.turn_count), mark


def _write(connection: Connection, head: Head, state: ThreadState, *, epoch: int) -> None:
    connection.execute(delete(tables.notes).where(tables.notes.c.thread == head.number))
    row = {
        "thread": head.number,
        "summary": state.summary,
        "facts": dump_json([[f.text, f.confirmed_seq, list(f.seqs)] for f in state.facts]),
        "turn_count": state.turn_count,
        "epoch": epoch,
    }
    connection.execute(insert(tables.notes).values(row))


def _fact(stored: list[Any]) -> Fact:
    text, confirmed_seq, seqs = stored
    return Fact(text, confirmed_seq, tuple(seqs))
