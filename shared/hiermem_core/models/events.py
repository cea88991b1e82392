"""Events: what an observer is told, after commit, once per change, without content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Stage = Literal["enqueue", "guard", "call", "reply", "commit", "host"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened to a tenant."""

    tenant_id: str


@dataclass(frozen=True, slots=True)
class ThreadEvent(Event):
    """Something happened in a thread."""

    thread_id: str


@dataclass(frozen=True, slots=True)
class EntryStored(Event):
    """An entry was stored: a new one, one in its place, or the same once more."""

    entry_id: str
    version: int


@dataclass(frozen=True, slots=True)
class EntryUpdated(Event):
    """Fields of an entry were changed."""

    entry_id: str
    version: int


@dataclass(frozen=True, slots=True)
class EntryDeleted(Event):
    """An entry was deleted."""

    entry_id: str


@dataclass(frozen=True, slots=True)
class PatternReinforced(Event):
    """A pattern was used once more; `entry_id` is of its entry, too."""

    entry_id: str
    uses: int


@dataclass(frozen=True, slots=True)
class SessionEvent(Event):
    """Something happened to a session."""

    session_id: str


@dataclass(frozen=True, slots=True)
class SessionChanged(SessionEvent):
    """A session was started, ended or given other data."""

    status: str


@dataclass(frozen=True, slots=True)
class StepsLogged(SessionEvent):
    """Steps of a session were stored; `last_step` is the newest."""

    count: int
    last_step: int


@dataclass(frozen=True, slots=True)
class SessionDeleted(SessionEvent):
    """A session was deleted, with its steps."""


@dataclass(frozen=True, slots=True)
class EntriesPurged(Event):
    """Expired entries were removed."""

    count: int


@dataclass(frozen=True, slots=True)
class NamespaceCleared(Event):
    """Every entry of a namespace was removed."""

    namespace: str
    count: int


@dataclass(frozen=True, slots=True)
class Forgotten(Event):
    """Things were forgotten; figures per store."""

    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SearchServed(Event):
    """A search or recall was answered; `mode` is the one that answered."""

    mode: str
    hits: int


@dataclass(frozen=True, slots=True)
class IndexPending(Event):
    """Rows were stored without their vector, which is made later."""

    count: int


@dataclass(frozen=True, slots=True)
class IndexCaughtUp(Event):
    """No row of the tenant waits for the vector index any more."""


@dataclass(frozen=True, slots=True)
class IndexFailed(Event):
    """Rows failed for the fifth time and wait for a repair."""

    count: int


@dataclass(frozen=True, slots=True)
class QuotaRejected(Event):
    """A write was beyond the tenant's quota, and was not made; figures as in the error."""

    name: str
    limit: int
    used: int
    requested: int


@dataclass(frozen=True, slots=True)
class TurnsAppended(ThreadEvent):
    """New turns were stored."""

    count: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class TurnEdited(ThreadEvent):
    """A turn's content was replaced."""

    seq: int
    revision: int


@dataclass(frozen=True, slots=True)
class TurnsDeleted(ThreadEvent):
    """Turns were deleted or pruned."""

    count: int


@dataclass(frozen=True, slots=True)
class TurnsArchived(ThreadEvent):
    """Turns were taken out of the thread and kept."""

    count: int


@dataclass(frozen=True, slots=True)
class NotesReset(ThreadEvent):
    """The notes were cleared, and every turn so far counts as seen."""


@dataclass(frozen=True, slots=True)
class NotesLearned(ThreadEvent):
    """Turns were learned into the notes; `turn_count` is the newest seq that they cover now."""

    turns: int
    turn_count: int
    facts: int


@dataclass(frozen=True, slots=True)
class FactsDropped(ThreadEvent):
    """The notes held too many facts; those confirmed longest ago went."""

    count: int


@dataclass(frozen=True, slots=True)
class UpdateFailed(ThreadEvent):
    """An update of the notes changed nothing; its turns stay due.

    Attributes:
        stage: `enqueue` (it was not begun), `guard`, `call`, `reply`, `commit`, or `host` (the
            caller's own thread memory).
        reason: A short code, or the name of what was raised.
    """

    stage: Stage
    reason: str


@dataclass(frozen=True, slots=True)
class ThreadReplaced(ThreadEvent):
    """A thread got new turns; the old ones are archived."""

    archived: int
    appended: int


@dataclass(frozen=True, slots=True)
class ThreadDeleted(ThreadEvent):
    """A thread and all its turns were deleted."""


@dataclass(frozen=True, slots=True)
class TextSanitised(Event):
    """Lone surrogates or NULs in stored text became U+FFFD; `thread_id` where it is a turn's."""

    replaced: int
    thread_id: str | None = None


@dataclass(frozen=True, slots=True)
class ValuesReplaced(ThreadEvent):
    """Values that no dump can carry became markers with their type's name."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnsTrimmed(ThreadEvent):
    """A context left turns out to fit its budget."""

    turns: int
    tokens: int


@dataclass(frozen=True, slots=True)
class RecallServed(Event):
    """A working memory answered a search.

    Attributes:
        source: `"cache"`, `"flight"` (a load that another call began) or `"backend"`.
        hits: In the answer; `None` where it does not say.
        age_seconds: Of the answer, since its load began.
    """

    source: str
    hits: int | None
    age_seconds: float
