"""Learning one thread: read what is due, ask the model, commit onto the mark it was read at."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile, islice
from typing import TYPE_CHECKING

from hiermem_core.errors import ClosedError, HierMemError
from hiermem_core.faults import reach
from hiermem_core.learning.asking import UpdateError
from hiermem_core.learning.chunks import LEAST_LINE_TOKENS
from hiermem_core.learning.due import is_due
from hiermem_core.learning.merging import checked_notes, merged
from hiermem_core.learning.transcript import LEARNED_ROLES
from hiermem_core.models.events import FactsDropped, NotesLearned, UpdateFailed
from hiermem_core.threads import reading
from hiermem_core.threads.notes import notes_of
from hiermem_core.threads.tally import opens_exchange
from hiermem_core.tokens.counters import GuardedCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Connection

    from hiermem_core.learning.asking import Asking
    from hiermem_core.models.calls import CallMeta
    from hiermem_core.models.events import Event, Stage
    from hiermem_core.models.notes import ThreadState
    from hiermem_core.models.redaction import Redaction
    from hiermem_core.models.threads import ModelInfo
    from hiermem_core.models.turns import Turn
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.storage.database import Database
    from hiermem_core.threads.notes import Notes, NotesStore

    MakeNotes = Callable[[ThreadState, Sequence[Turn]], ThreadState | None]

_TRIES = 3
_PAGE = 256


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What is due of a thread, from the mark on.

    Attributes:
        turns: In order; as many as a prompt could have room for.
        has_more: There are more.
    """

    notes: Notes
    turns: tuple[Turn, ...]
    has_more: bool


class Learner:
    """Make notes of the turns of threads.

    Args:
        tell: Takes the events, after their commit.
    """

    def __init__(
        self,
        database: Database,
        notes: NotesStore,
        asking: Asking,
        *,
        counter: TokenCounter,
        redaction: Redaction,
        tell: Callable[[Event], None],
    ) -> None:
        self._redaction = redaction
        self._database = database
        self._notes = notes
        self._asking = asking
        self._counter = counter
        self._tell = tell

    def learn(
        self, tenant_id: str, thread_id: str, *, every: int, model_id: str | None, meta: CallMeta
    ) -> None:
        """Learn what is due of a thread, chunk by chunk; report what fails, and never raise it.

        Each chunk is committed by itself, so that a later failure takes nothing back. When the
        notes change meanwhile, what is due is looked at anew.
        """
        key = (tenant_id, thread_id)
        stage: Stage = "enqueue"
        try:
            for _ in range(_TRIES):
                until = self._due_until(key, every)
                if not until:
                    return
                info = self._asking.window(model_id)
                while (waiting := self._read(key, until, info)).turns:
                    stage = "commit"
                    if not self._learn(key, waiting, info, model_id, meta):
                        break
                else:
                    self._notes.pass_over(*key, until, onto=waiting.notes.mark)
            self._tell(UpdateFailed(*key, "commit", "superseded"))
        except UpdateError as error:
            self._failed(key, error)
        except ClosedError:
            return
        except HierMemError as error:
            self._tell(UpdateFailed(*key, stage, type(error).__name__))

    def learn_by(self, tenant_id: str, thread_id: str, make: MakeNotes) -> None:
        """Commit the notes that a function makes of the answered turns after the mark.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
            InvalidInputError: They cover less than before, or turns that it was not given, or are
                no notes.
        """
        key = (tenant_id, thread_id)
        for _ in range(_TRIES):
            with self._database.read() as connection:
                head = reading.require_head(connection, *key)
                notes = notes_of(connection, head.number)
                turns = list(_learnable(connection, notes, head.tally.answered_seq))
            made = make(notes.state, turns) if turns else None
            if made is None:
                return
            seqs = [turn.seq for turn in turns if turn.seq <= made.turn_count]
            cleaner = self._redaction.cleaner("notes", *key)
            state = checked_notes(made, seqs, newest=turns[-1].seq, cleaner=cleaner)
            if self._notes.commit(*key, state, onto=notes.mark):
                facts = len(state.facts)
                self._tell(NotesLearned(*key, len(seqs), state.turn_count, facts))
                return
        self._tell(UpdateFailed(*key, "commit", "superseded"))

    def _due_until(self, key: tuple[str, str], every: int) -> int:
        """Return the seq up to which is learned now; 0: nothing is due.

        Where something is, it is known that notes can be written, before a model is paid.
        """
        with self._database.read() as connection:
            head = reading.require_head(connection, *key)
            notes = notes_of(connection, head.number)
        answered = head.tally.answered_seq
        if not is_due(notes, answered_seq=answered, last_seq=head.last_seq, every=every):
            return 0
        self._notes.touch(*key)
        return answered

    def _read(self, key: tuple[str, str], until: int, info: ModelInfo) -> _Waiting:
        most = max(1, info.context_window // LEAST_LINE_TOKENS)
        with self._database.read() as connection:
            head = reading.require_head(connection, *key)
            notes = notes_of(connection, head.number)
            turns = list(islice(_learnable(connection, notes, until), most + 1))
        return _Waiting(notes, tuple(turns[:most]), has_more=len(turns) > most)

    def _learn(
        self,
        key: tuple[str, str],
        waiting: _Waiting,
        info: ModelInfo,
        model_id: str | None,
        meta: CallMeta,
    ) -> bool:
        """Learn one chunk; tell whether its notes were committed."""
        state, mark = waiting.notes.state, waiting.notes.mark
        prompt = self._asking.prompt(state, waiting.turns, info, has_more=waiting.has_more)
        reply = self._asking.ask(prompt, model_id=model_id, meta=meta)
        reach("updates.after_model")
        new = merged(
            state,
            reply,
            listed=prompt.listed,
            seqs=prompt.chunk.seqs,
            counter=GuardedCounter(self._counter),
        )
        if new.is_empty:
            raise UpdateError("reply", "empty")
        if not self._notes.commit(*key, new.state, onto=mark):
            return False
        facts = len(new.state.facts)
        self._tell(NotesLearned(*key, len(prompt.chunk.seqs), new.state.turn_count, facts))
        if new.dropped:
            self._tell(FactsDropped(*key, new.dropped))
        return True

    def _failed(self, key: tuple[str, str], error: UpdateError) -> None:
        self._tell(UpdateFailed(*key, error.stage, error.reason))
        if error.counts:
            try:
                self._notes.count_failure(*key)
            except HierMemError:
                return  # the thread or the storage is gone; there is nothing to count


def _learnable(connection: Connection, notes: Notes, until: int) -> Iterator[Turn]:
    """Yield the turns from the mark to `until`, in order.

    The rest of an exchange that was begun before a reset counts as seen.
    """
    turns = reading.forwards(connection, notes.thread, notes.mark.turn_count, until, page=_PAGE)
    said = (turn for turn in turns if turn.role in LEARNED_ROLES)
    if notes.mark.turn_count == notes.reset_seq > 0:
        return dropwhile(lambda turn: not opens_exchange(turn), said)
    return said
