"""The notes of threads: kept beside the turns, committed only onto the mark they were made from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select

from hiermem_core.faults import reach
from hiermem_core.models.events import NotesReset
from hiermem_core.models.notes import Fact, Mark, ThreadState
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.operations import touched
from hiermem_core.storage import tables
from hiermem_core.threads import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import Connection

    from hiermem_core.models.events import Event
    from hiermem_core.storage.database import Database
    from hiermem_core.threads.reading import Head


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of a thread as they are stored.

    Attributes:
        thread: The number of the thread's row.
        mark: What new notes are committed onto.
        reset_seq: The newest seq at the last reset; what lies before it is never learned.
        failures: Updates that failed since the notes were last written.
        failed_seq: The newest seq of the thread at the last of them.
    """

    thread: int
    state: ThreadState
    mark: Mark
    reset_seq: int = 0
    failures: int = 0
    failed_seq: int = 0


class NotesStore:
    """Read and commit notes.

    Args:
        tell: Takes the events of a change, after its commit.
    """

    def __init__(self, database: Database, *, tell: Callable[[Event], None]) -> None:
        self._database = database
        self._tell = tell

    def read(self, tenant_id: str, thread_id: str) -> Notes:
        """Return the notes of a thread; empty where there are none.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._database.read() as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            return notes_of(connection, head.number)

    def touch(self, tenant_id: str, thread_id: str) -> None:
        """Write the notes of a thread as they are, to know that they can be written.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
            BackendError: They cannot.
        """
        with self._database.write(tenant_id) as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            _write(connection, notes_of(connection, head.number))

    def commit(self, tenant_id: str, thread_id: str, state: ThreadState, *, onto: Mark) -> bool:
        """Store notes if the mark is still `onto`; say whether they were.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._database.write(tenant_id) as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            notes = notes_of(connection, head.number)
            is_onto = _is_onto(notes, onto)
            if is_onto:
                _write(connection, replace(notes, state=state, failures=0, failed_seq=0))
                reach("updates.before_commit")
        return is_onto

    def pass_over(self, tenant_id: str, thread_id: str, until: int, *, onto: Mark) -> None:
        """Count turns as covered of which nothing is to be learned, if the mark is still `onto`.

        The rest of an exchange that a reset parts is one of those, and stays so as it grows.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._database.write(tenant_id) as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            notes = notes_of(connection, head.number)
            if _is_onto(notes, onto) and notes.state.turn_count < until:
                is_reset = notes.state.turn_count == notes.reset_seq
                reset_seq = until if is_reset else notes.reset_seq
                state = replace(notes.state, turn_count=until)
                _write(connection, replace(notes, state=state, reset_seq=reset_seq))

    def count_failure(self, tenant_id: str, thread_id: str) -> None:
        """Count one more update that failed; the first since new turns came.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._database.write(tenant_id) as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            notes = notes_of(connection, head.number)
            before = notes.failures if notes.failed_seq == head.last_seq else 0
            failed = replace(notes, failures=before + 1, failed_seq=head.last_seq)
            _write(connection, failed)

    def reset(self, tenant_id: str, thread_id: str) -> None:
        """Clear the notes and mark every turn so far as seen; the turns stay.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        with self._database.write(tenant_id) as connection:
            head = reading.require_head(connection, tenant_id, thread_id)
            mark = notes_of(connection, head.number).mark
            seen = ThreadState(turn_count=head.last_seq)
            _write(connection, Notes(head.number, seen, _next(mark), reset_seq=head.last_seq))
            touched(())
        self._tell(NotesReset(tenant_id, thread_id))


def erase_notes(connection: Connection, head: Head) -> bool:
    """Erase the notes of a thread, in the running transaction; tell whether there were any.

    What is left of the thread is learned anew, but for what lay before a reset. Notes being made
    meanwhile do not fit onto the mark any more.
    """
    notes = notes_of(connection, head.number)
    _write(connection, _renewed(notes, ThreadState(turn_count=notes.reset_seq)))
    return bool(notes.state.summary or notes.state.facts)


def unlearn(connection: Connection, head: Head, seqs: Collection[int]) -> None:
    """Take what was learnt from some turns out of the notes, in the running transaction.

    Facts go that came from nothing else, and the summary, which cannot be parted; every turn since
    the last reset is due again. Notes being made meanwhile do not fit onto the mark any more.
    """
    notes = notes_of(connection, head.number)
    if all(seq <= notes.reset_seq for seq in seqs):
        return
    state = without_turns(notes.state, seqs, reset_seq=notes.reset_seq)
    _write(connection, _renewed(notes, state))


def without_turns(state: ThreadState, seqs: Collection[int], *, reset_seq: int) -> ThreadState:
    """Return notes that hold nothing of some turns. Pure.

    Where they covered one of them, they cover nothing any more but what was reset.
    """
    gone = set(seqs)
    standing = [
        replace(fact, sources=tuple(s for s in fact.sources if gone.isdisjoint(s)))
        for fact in state.facts
    ]
    facts = tuple(fact for fact in standing if fact.sources)
    if any(reset_seq < seq <= state.turn_count for seq in gone):
        return ThreadState("", facts, reset_seq)
    return replace(state, facts=facts)


def notes_of(connection: Connection, number: int) -> Notes:
    """Return the notes of a thread's row number."""
    query = select(tables.notes).where(tables.notes.c.thread == number)
    row = connection.execute(query).first()
    if row is None:
        return Notes(number, ThreadState(), Mark(thread=number))
    facts = tuple(_fact(fact) for fact in load_json(row.facts))
    return Notes(
        number,
        ThreadState(row.summary, facts, row.turn_count),
        Mark(row.turn_count, row.epoch, number),
        reset_seq=row.reset_seq,
        failures=row.failures,
        failed_seq=row.failed_seq,
    )


def _is_onto(notes: Notes, onto: Mark) -> bool:
    return notes.mark == onto and onto.thread in (None, notes.mark.thread)


def _next(mark: Mark) -> Mark:
    return replace(mark, epoch=mark.epoch + 1)


def _renewed(notes: Notes, state: ThreadState) -> Notes:
    """Return other notes of the same thread, onto which nothing that is being made fits."""
    return Notes(notes.thread, state, _next(notes.mark), reset_seq=notes.reset_seq)


def _write(connection: Connection, notes: Notes) -> None:
    connection.execute(delete(tables.notes).where(tables.notes.c.thread == notes.thread))
    row = {
        "thread": notes.thread,
        "summary": notes.state.summary,
        "facts": dump_json([[f.text, f.confirmed_seq, f.sources] for f in notes.state.facts]),
        "turn_count": notes.state.turn_count,
        "epoch": notes.mark.epoch,
        "reset_seq": notes.reset_seq,
        "failures": notes.failures,
        "failed_seq": notes.failed_seq,
    }
    connection.execute(insert(tables.notes).values(row))


def _fact(stored: list[Any]) -> Fact:
    text, confirmed_seq, sources = stored
    return Fact(text, confirmed_seq, tuple(tuple(seqs) for seqs in sources))
