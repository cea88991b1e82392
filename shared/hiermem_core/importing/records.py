"""Records: what a reader makes of one record of a source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hiermem_core.importing.report import ImportItem
from hiermem_core.models.patterns import FIRST_CONFIDENCE
from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hiermem_core.importing.report import Kind, Outcome, Reason
    from hiermem_core.models.entries import MemoryType
    from hiermem_core.models.sessions import SessionStatus
    from hiermem_core.models.turns import TurnDraft
    from hiermem_core.sessions.checking import StepDraft

SQLITE, INDEX, RENDERING, BACKUP = 3, 2, 1, 0
"""Which of two versions of a record counts, where nothing else tells: the higher."""


@dataclass(frozen=True, slots=True)
class Message:
    """A record that can be stored as a turn.

    Attributes:
        ref: Its id in the source, else its position.
        position: Where it stands, such as `line 7`.
        thread: The thread it belongs to.
        has_id: The source names it; else its position does.
        is_archived: The source keeps it beside the thread.
    """

    ref: str
    position: str
    thread: str
    turn: TurnDraft
    has_id: bool
    is_archived: bool = False

    @property
    def size(self) -> int:
        """Characters it takes until it is stored."""
        dump = self.turn.origin.dump if self.turn.origin else ""
        return len(self.turn.content or "") + len(dump)


@dataclass(frozen=True, slots=True)
class PatternFacts:
    """What is known of a pattern beside its name and text."""

    data: Mapping[str, Any]
    confidence: float = FIRST_CONFIDENCE
    uses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRecord:
    """A record that can be stored as an entry, holding every rule of one.

    Attributes:
        id: Follows from the source, and is the same in every run.
        metadata: The source's own, and under `import` what has no field of its own.
        created_at: `None`: the source does not say.
        clock_at: Stands for `created_at` where that is not known.
        is_expired: It is past its expiry, and expired records are left out.
        version: Of records with one id the highest counts.
        precedence: `SQLITE`, `INDEX`, `RENDERING` or `BACKUP`.
        states_type: The source says what type it is.
        vector: Its vector in the source.
        pattern: The pattern that it is the text of.
    """

    ref: str
    id: str
    namespace: str
    key: str | None
    content: str
    type: MemoryType
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    clock_at: datetime
    updated_at: datetime | None = None
    expires_at: datetime | None = None
    is_expired: bool = False
    user_id: str | None = None
    version: float = 0
    precedence: int = INDEX
    states_type: bool = False
    vector: tuple[float, ...] | None = None
    pattern: PatternFacts | None = None

    @property
    def kind(self) -> Kind:
        """What a report calls it."""
        return "entry" if self.pattern is None else "pattern"

    def renamed(self) -> EntryRecord:
        """Return the record of a pattern whose name another has."""
        return replace(self, key=f"{self.key}#{self.ref}")

    @property
    def size(self) -> int:
        """Characters it takes until it is stored."""
        return len(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A record that can be stored as a session.

    Attributes:
        started_at: `None`: the source does not say.
        clock_at: Stands for it then.
    """

    ref: str
    data: Mapping[str, Any]
    status: SessionStatus
    started_at: datetime | None
    clock_at: datetime
    ended_at: datetime | None = None
    kind: Kind = "session"

    @property
    def size(self) -> int:
        """Characters it takes until it is stored."""
        return len(dump_json(self.data))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A record that can be stored as a step, after those of its session that are read before it.

    Attributes:
        id: Follows from the source, and is the same in every run.
        created_at: `None`: the source does not say.
        clock_at: Stands for it then.
    """

    ref: str
    session: str
    draft: StepDraft
    created_at: datetime | None
    clock_at: datetime
    kind: Kind = "step"

    @property
    def size(self) -> int:
        """Characters it takes until it is stored."""
        draft = self.draft
        return len(draft.action) + len(dump_json([draft.state, draft.next_state]))


Record = Message | EntryRecord | SessionRecord | StepRecord | ImportItem
"""A record that can be stored, or why there is none."""


class RecordError(Exception):
    """A record of the source cannot be imported; the others can."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason: Reason = reason
        self.detail = detail
        super().__init__(detail)


def failed(error: RecordError, *, ref: str, position: str, kind: Kind = "turn") -> ImportItem:
    """Return what a report says of a record that cannot be imported."""
    return item(ref, position, "failed", error.reason, error.detail, kind=kind)


def item(
    ref: str, position: str, outcome: Outcome, reason: Reason, detail: str, *, kind: Kind = "turn"
) -> ImportItem:
    """Return what a report says of a record, with its position named once."""
    place = "" if ref == position else f"{position}: "
    return ImportItem(ref, outcome, reason, place + detail if detail else "", kind=kind)


def skipped(ref: str, reason: Reason, *, of: str | None = None, kind: Kind = "entry") -> ImportItem:
    """Return what a report says of a record that needs no import."""
    return ImportItem(ref, "skipped", reason, kind=kind, of=of)
