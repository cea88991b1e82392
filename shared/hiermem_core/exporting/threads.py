"""Storing the threads of an export as they were: seqs, archived turns, dumps and notes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, update

from hiermem_core.exporting.entries import made_vector
from hiermem_core.exporting.report import AT_HAND, ReadItem
from hiermem_core.exporting.rows import turn_numbers
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.plain import dump_json
from hiermem_core.storage import tables
from hiermem_core.threads import reading
from hiermem_core.threads.archive import ArchivingStore
from hiermem_core.threads.notes import unlearn
from hiermem_core.threads.preparing import Changed
from hiermem_core.threads.rows import row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from hiermem_core.backends.records import MadeVector
    from hiermem_core.backends.vector_rows import VectorRows
    from hiermem_core.exporting.entries import OnConflict
    from hiermem_core.exporting.forms import ReadThread, Vectors
    from hiermem_core.exporting.report import Outcome
    from hiermem_core.models.turns import Turn
    from hiermem_core.threads.reading import Head

ReadTurn = tuple["Turn", "Vectors | None"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some turns of a thread of an export, side by side.

    Attributes:
        is_last: The thread has no more.
        is_apart: The tenant's thread of this name holds other turns, as was found before.
    """

    thread: ReadThread
    turns: Sequence[ReadTurn]
    is_last: bool
    is_apart: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a stretch.

    Attributes:
        is_new: The thread was created.
    """

    outcomes: Sequence[Outcome | ReadItem]
    is_new: bool = False

    @property
    def is_apart(self) -> bool:
        """Tell whether the tenant's thread holds other turns."""
        return any(isinstance(o, ReadItem) and o.reason == "conflict" for o in self.outcomes)


class ThreadTaking(ArchivingStore):
    """A thread store that puts turns where they were."""

    def take(
        self,
        tenant: str,
        stretch: Stretch,
        vectors: VectorRows,
        *,
        on_conflict: OnConflict,
        vectors_by: str | None,
        dry_run: bool,
    ) -> Taken:
        """Store a stretch in one transaction; return what became of each turn.

        Args:
            vectors_by: The name under which the turns' vectors are stored; `None`: they are made
                anew.
        """
        name = stretch.thread.thread_id
        if dry_run:
            with self._database.read() as connection:
                head = reading.head_of(connection, tenant, name)
                outcomes = _outcomes(connection, head, stretch, on_conflict)
            return Taken(outcomes, is_new=head is None)
        counted = [self._with_count(turn) for turn, _ in stretch.turns]
        with self._table.transaction(tenant) as connection:
            head = reading.head_of(connection, tenant, name)
            outcomes = _outcomes(connection, head, stretch, on_conflict)
            is_new, head = head is None, head or self._create_as(connection, tenant, stretch.thread)
            turns = dict(zip((turn.seq for turn in counted), outcomes, strict=True))
            fresh = [turn for turn in counted if turns[turn.seq] == "imported"]
            edited = [turn for turn in counted if turns[turn.seq] == "updated"]
            if edited:
                head = self._edit(connection, head, edited)
            if fresh:
                head = self._add(connection, head, fresh)
            if vectors_by is not None:
                made = _made_vectors(connection, head, stretch, fresh, name=vectors_by)
                vectors.add(connection, tenant, made)
            if stretch.is_last and (fresh or is_new):
                self._finish(connection, head, stretch.thread)
        active = [turn for turn in fresh if turn.status == "active"]
        self._announce(tenant, name, active, Changed())
        return Taken(outcomes, is_new=is_new)

    def _with_count(self, turn: Turn) -> Turn:
        """Return a turn that is counted by this counter too."""
        if self._preparing.counter.id in turn.token_counts:
            return turn
        counts = {**turn.token_counts, **self._preparing.counts(turn)}
        return replace(turn, token_counts=counts)

    def _create_as(self, connection: Connection, tenant: str, thread: ReadThread) -> Head:
        head = self._create(connection, tenant, thread.thread_id)
        _set(connection, head, created_at=to_milliseconds(thread.created_at))
        return reading.require_head(connection, tenant, thread.thread_id)

    def _add(self, connection: Connection, head: Head, fresh: Sequence[Turn]) -> Head:
        self._table.add(connection, head, fresh)
        active = [turn for turn in fresh if turn.status == "active"]
        self._index_calls(connection, head, active)
        self._rows.add(connection, head.tenant, head.number, active)
        grown = replace(head, last_seq=fresh[-1].seq, tally=head.tally.add(active))
        self._save_head(connection, grown)
        return reading.require_head(connection, head.tenant, head.thread_id)

    def _edit(self, connection: Connection, head: Head, edited: Sequence[Turn]) -> Head:
        for turn in edited:
            self._rewrite(connection, head, turn)
        unlearn(connection, head, [turn.seq for turn in edited])
        return self._recount(connection, head)

    def _finish(self, connection: Connection, head: Head, thread: ReadThread) -> None:
        """Give a thread whose turns are all there what else it had."""
        last_seq = max(head.last_seq, thread.last_seq)
        _set(connection, head, last_seq=last_seq, updated_at=to_milliseconds(thread.updated_at))
        has_notes = tables.notes.select().where(tables.notes.c.thread == head.number)
        if thread.notes is None or connection.execute(has_notes).first() is not None:
            return
        facts = [[fact.text, fact.confirmed_seq, fact.sources] for fact in thread.notes.facts]
        row = {
            "thread": head.number,
            "summary": thread.notes.summary,
            "facts": dump_json(facts),
            "turn_count": min(thread.notes.turn_count, last_seq),
            "epoch": 0,
            "reset_seq": thread.reset_seq,
        }
        connection.execute(insert(tables.notes).values(row))


def _outcomes(
    connection: Connection, head: Head | None, stretch: Stretch, on_conflict: OnConflict
) -> list[Outcome | ReadItem]:
    turns = [turn for turn, _ in stretch.turns]
    known, elsewhere = _known(connection, head, turns)
    outcomes: list[Outcome | ReadItem] = []
    is_apart = stretch.is_apart
    for turn in turns:
        moved = turn.status == "active" and elsewhere.setdefault(turn.id, turn.seq) != turn.seq
        outcome = outcome_of(
            turn,
            known.get(turn.seq),
            last_seq=0 if head is None else head.last_seq,
            is_apart=is_apart or moved,
            on_conflict=on_conflict,
        )
        is_apart = is_apart or (isinstance(outcome, ReadItem) and outcome.reason == "conflict")
        outcomes.append(outcome)
    return outcomes


def _known(
    connection: Connection, head: Head | None, turns: Sequence[Turn]
) -> tuple[dict[int, Turn], dict[str | None, int]]:
    """Return the stored turns at the seqs of others by seq, and where their ids stand."""
    if head is None or not turns:
        return {}, {}
    first, last = turns[0].seq, turns[-1].seq
    found = reading.turns_between(
        connection, head.number, after=first - 1, before=last + 1, status=None
    )
    ids = [str(turn.id) for turn in turns]
    by_id = reading.turns_by_id(connection, head.number, ids)
    return {turn.seq: turn for turn in found}, {turn.id: turn.seq for turn in by_id.values()}


def outcome_of(
    turn: Turn, stored: Turn | None, *, last_seq: int, is_apart: bool, on_conflict: OnConflict
) -> Outcome | ReadItem:
    """Return what becomes of a turn. Pure.

    Args:
        stored: The turn at its seq.
        last_seq: The newest seq of the tenant's thread.
        is_apart: That thread holds other turns, so that nothing is added to it.
    """
    if stored is not None:
        if _facts(stored) == _facts(turn):
            return _item(turn, AT_HAND, "")
        is_edit = stored.id == turn.id and stored.status == turn.status == "active"
        if on_conflict == "overwrite" and is_edit:
            return "updated"
        remedy = "add --on-conflict overwrite" if is_edit else "import into another thread"
        return _item(turn, "conflict", f"the thread holds another turn there; {remedy}")
    if is_apart:
        return _item(turn, "conflict", "the thread is another one; import into another tenant")
    if turn.seq <= last_seq:
        return _item(turn, "thread_continued", "it is not in the thread any more")
    return "imported"


def _facts(turn: Turn) -> dict[str, Any]:
    """Return what two turns share that are the same, however their tokens are counted."""
    return {k: v for k, v in row_of(turn, thread=0).items() if k not in {"tokens", "call_seq"}}


def _made_vectors(
    connection: Connection, head: Head, stretch: Stretch, fresh: Sequence[Turn], *, name: str
) -> dict[int, MadeVector]:
    """Return the vectors that the export has of new turns, by the rows these are searched under."""
    seqs = {turn.seq for turn in fresh}
    given = {turn.seq: vector for turn, vector in stretch.turns if vector and turn.seq in seqs}
    numbers = turn_numbers(connection, head.number, given)
    return {number: made_vector(given[seq], name, is_one=True) for seq, number in numbers.items()}


def _set(connection: Connection, head: Head, **values: int) -> None:
    mine = tables.threads.c.number == head.number
    connection.execute(update(tables.threads).where(mine).values(**values))


def _item(turn: Turn, reason: str, detail: str) -> ReadItem:
    return ReadItem("turn", str(turn.id), "skipped", reason, detail)
