"""Notes: what is remembered about a thread, with the turns they cover."""

from __future__ import annotations

from dataclasses import dataclass, field

from hiermem_core.models.displayed import Displayed


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement learnt from a thread.

    Attributes:
        confirmed_seq: The newest turn it was learnt from.
        sources: The seqs it came from, once for each time it was learnt. It stands as long as the
            turns of one of them do.
    """

    text: str
    confirmed_seq: int = 0
    sources: tuple[tuple[int, ...], ...] = ()

    @property
    def seqs(self) -> tuple[int, ...]:
        """Every turn it came from, ascending."""
        return tuple(sorted({seq for source in self.sources for seq in source}))


@dataclass(frozen=True, slots=True)
class ThreadState(Displayed):
    """The notes of a thread.

    Attributes:
        turn_count: The seq of the newest turn they cover; the mark.
    """

    summary: str = ""
    facts: tuple[Fact, ...] = ()
    turn_count: int = 0


@dataclass(frozen=True, slots=True)
class NotesChange(Displayed):
    """Notes before and after; shows what came and what went."""

    before: ThreadState
    after: ThreadState

    @property
    def added(self) -> tuple[Fact, ...]:
        """Facts that were not there before."""
        return _without(self.after, self.before)

    @property
    def dropped(self) -> tuple[Fact, ...]:
        """Facts that are not there any more."""
        return _without(self.before, self.after)

    @property
    def kept(self) -> tuple[Fact, ...]:
        """Facts that stayed, as they are now."""
        before = {fact.text for fact in self.before.facts}
        return tuple(fact for fact in self.after.facts if fact.text in before)


def _without(state: ThreadState, other: ThreadState) -> tuple[Fact, ...]:
    known = {fact.text for fact in other.facts}
    return tuple(fact for fact in state.facts if fact.text not in known)


@dataclass(frozen=True, slots=True)
class Mark:
    """What must be unchanged for new notes to be committed.

    Attributes:
        epoch: Grows with every reset, and every change of a turn that the notes cover.
        thread: The number of the thread they are of, since one may be forgotten and begun anew
            under the same id; `None`: of whichever bears the id.
    """

    turn_count: int = 0
    epoch: int = 0
    thread: int | None = field(default=None, compare=False)
