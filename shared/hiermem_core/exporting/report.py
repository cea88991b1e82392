"""What an export holds, and what became of the records of one that was imported."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hiermem_core.models.displayed import Displayed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Kind = Literal["entry", "pattern", "thread", "turn", "session", "step"]
Outcome = Literal["imported", "updated", "skipped", "failed"]

AT_HAND = "unchanged"
"""Why a record is skipped that is stored already."""

QUOTA = "quota_exceeded"
"""Why a record fails that the tenant's quota has no room for."""

_LISTED = 20
"""Records named in the text of a report; `items` holds them all."""


_ONE = {
    "tenants": "tenant",
    "entries": "entry",
    "threads": "thread",
    "turns": "turn",
    "vectors": "vector",
    "summaries": "summary",
    "facts": "fact",
    "patterns": "pattern",
    "sessions": "session",
    "steps": "step",
}


def told(counts: Mapping[str, int]) -> str:
    """Return counts in words, those that are 0 left out. Pure."""
    listed = [
        f"{n:,} {_ONE.get(name, name) if n == 1 else name}" for name, n in counts.items() if n
    ]
    return ", ".join(listed) or "nothing"


@dataclass(frozen=True, slots=True)
class ExportReport(Displayed):
    """What was exported.

    Attributes:
        patterns: Those of the entries that are the text of one.
        turns: Archived ones among them.
        vectors: Rows whose vectors were exported.
        unreadable: Turns left out, as their stored form is damaged: thread and seq.
        checksum: SHA-256 of the body, which two exports of the same things share.
    """

    tenant: str
    entries: int
    patterns: int
    threads: int
    turns: int
    sessions: int
    steps: int
    archived_turns: int
    vectors: int
    unreadable: tuple[tuple[str, int], ...]
    checksum: str
    bytes: int
    kept: Path | None = None

    @property
    def exit_code(self) -> int:
        """0, or 1 where turns were left out."""
        return 1 if self.unreadable else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return asdict(self) | {"kept": None if self.kept is None else str(self.kept)}

    def __str__(self) -> str:
        """Say it in one line, after one for each turn that was left out."""
        lost = [f"  {thread}: turn {seq} is damaged; left out" for thread, seq in self.unreadable]
        names = ("entries", "patterns", "threads", "turns", "sessions", "steps", "vectors")
        counts = told({name: getattr(self, name) for name in names})
        return "\n".join([*lost, f"tenant {self.tenant}: {counts}"])


@dataclass(frozen=True, slots=True)
class ReadItem:
    """A record of an export that was not imported, such as one that is stored already.

    Attributes:
        ref: Its id.
        detail: Its line, and what to do about it.
    """

    kind: Kind
    ref: str
    outcome: Literal["skipped", "failed"]
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        return ": ".join(filter(None, (f"{self.kind} {self.ref}", self.reason, self.detail)))


@dataclass(frozen=True, slots=True)
class ReadReport(Displayed):
    """What became of the records of an export; each is counted once.

    Attributes:
        tenant: Whose export it is.
        counts: Records by kind and outcome.
        reasons: Records that were not imported, by reason.
        items: Each of them.
        threads: The threads that hold turns of the export, in order.
    """

    source: str
    tenant: str
    dry_run: bool
    counts: Mapping[Kind, Mapping[Outcome, int]]
    reasons: Mapping[str, int]
    items: tuple[ReadItem, ...]
    threads: tuple[str, ...]

    @property
    def found(self) -> int:
        """All records of the export."""
        return sum(sum(outcomes.values()) for outcomes in self.counts.values())

    @property
    def imported(self) -> int:
        """Records stored by this run."""
        return self._of("imported")

    @property
    def updated(self) -> int:
        """Records that replaced another content."""
        return self._of("updated")

    @property
    def skipped(self) -> int:
        """Records that need no import, or that stand in the way of one."""
        return self._of("skipped")

    @property
    def failed(self) -> int:
        """Records that cannot be stored as they are."""
        return self._of("failed")

    @property
    def status(self) -> Literal["complete", "partial", "failed", "empty"]:
        """`complete`, `partial`, `failed`, or `empty` when nothing of the export is stored."""
        at_hand = self.imported + self.updated + self.reasons.get(AT_HAND, 0) + len(self.threads)
        if self.failed:
            return "partial" if at_hand else "failed"
        return "complete" if at_hand else "empty"

    @property
    def exit_code(self) -> int:
        """0 complete, 1 partial or failed, 3 empty."""
        return {"complete": 0, "partial": 1, "failed": 1, "empty": 3}[self.status]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        names = ("source", "tenant", "dry_run", "status", "exit_code", "found", "imported")
        return {
            **{name: getattr(self, name) for name in (*names, "updated", "skipped", "failed")},
            "by_kind": {kind: dict(outcomes) for kind, outcomes in self.counts.items()},
            "reasons": dict(self.reasons),
            "threads": list(self.threads),
            "items": [asdict(item) for item in self.items],
        }

    def __str__(self) -> str:
        """Name what was not imported and why, and end with one line of counts."""
        return "\n".join([*self._listed(), self._counts()])

    def _of(self, outcome: Outcome) -> int:
        return sum(outcomes.get(outcome, 0) for outcomes in self.counts.values())

    def _listed(self) -> Iterator[str]:
        yield f"{self.source}: export of tenant {self.tenant}"
        telling = [item for item in self.items if item.reason != AT_HAND]
        yield from (f"  {item}" for item in telling[:_LISTED])
        if len(telling) > _LISTED:
            yield f"  and {len(telling) - _LISTED} more"

    def _counts(self) -> str:
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.reasons.items())
        counts = (
            f"imported {self.imported}, updated {self.updated}, "
            f"skipped {self.skipped}, failed {self.failed} of {self.found}"
        )
        return counts + (f" ({reasons})" if reasons else "")


@dataclass(slots=True)
class Tally:
    """What has become of the records so far."""

    counts: dict[Kind, Counter[Outcome]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    items: list[ReadItem] = field(default_factory=list)
    threads: dict[str, None] = field(default_factory=dict)

    @property
    def conflicts(self) -> int:
        """Records that met another content."""
        return self.reasons["conflict"]

    def add(self, kind: Kind, outcome: Outcome | ReadItem) -> None:
        """Count one record; with an item, why it was not imported."""
        if isinstance(outcome, ReadItem):
            self.reasons[outcome.reason] += 1
            self.items.append(outcome)
            outcome = outcome.outcome
        self.counts.setdefault(kind, Counter())[outcome] += 1

    def report(self, source: str, tenant: str, *, dry_run: bool) -> ReadReport:
        """Return the result."""
        return ReadReport(
            source,
            tenant,
            dry_run,
            self.counts,
            self.reasons,
            tuple(self.items),
            tuple(self.threads),
        )
