"""Events: what an observer is told, after commit, without content."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened in a thread of a tenant."""

    tenant_id: str
    thread_id: str


@dataclass(frozen=True, slots=True)
class TurnsAppended(Event):
    """New turns were stored."""

    count: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class TurnEdited(Event):
    """A turn's content was replaced."""

    seq: int
    revision: int


@dataclass(frozen=True, slots=True)
class TurnsDeleted(Event):
    """Turns were deleted or pruned."""

    count: int


@dataclass(frozen=True, slots=True)
class TurnsArchived(Event):
    """Turns were taken out of the thread and kept."""

    count: int


@dataclass(frozen=True, slots=True)
class NotesReset(Event):
    """The notes were cleared, and every turn so far counts as seen."""


@dataclass(frozen=True, slots=True)
class ThreadReplaced(Event):
    """A thread got new turns; the old ones are archived."""

    archived: int
    appended: int


@dataclass(frozen=True, slots=True)
class ThreadDeleted(Event):
    """A thread and all its turns were deleted."""


@dataclass(frozen=True, slots=True)
class TextSanitised(Event):
    """Lone surrogates or NULs in stored text became U+FFFD."""

    replaced: int


@dataclass(frozen=True, slots=True)
class ValuesReplaced(Event):
    """Values that no dump can carry became markers with their type's name."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnsTrimmed(Event):
    """A context left turns out to fit its budget."""

    turns: int
    tokens: int
