"""What an import stored, skipped and could not read. Holds no content."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Outcome = Literal["skipped", "failed"]
Status = Literal["complete", "partial", "failed", "empty"]
Reason = Literal[
    "unchanged",
    "conflict",
    "thread_continued",
    "invalid_json",
    "invalid_record",
    "missing_field",
    "not_text",
    "limit_exceeded",
    "invalid_input",
    "unknown_role",
    "store_error",
]

_EXIT_CODES: dict[Status, int] = {"complete": 0, "partial": 1, "failed": 1, "empty": 3}
_LISTED = 20
"""Records named in the text of a report; `items` holds them all."""


@dataclass(frozen=True, slots=True)
class ImportItem:
    """A record that was not imported.

    Attributes:
        ref: Its id in the source, else its position, such as `line 7` or `[3]`.
        detail: Where it stands and what to do about it.
    """

    ref: str
    outcome: Outcome
    reason: Reason
    detail: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        return ": ".join(filter(None, (self.ref, self.reason, self.detail)))


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import has come; told after every batch."""

    found: int
    imported: int
    read_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of every record of a source; each is counted once.

    Attributes:
        imported: Records stored by this run.
        threads: The threads that hold records of the source, in order of appearance.
        items: Every record that was not imported.
    """

    source: str
    imported: int
    threads: tuple[str, ...]
    items: tuple[ImportItem, ...]

    @property
    def found(self) -> int:
        """All records of the source."""
        return self.imported + len(self.items)

    @property
    def skipped(self) -> int:
        """Records that need no import, or that stand in the way of one."""
        return sum(item.outcome == "skipped" for item in self.items)

    @property
    def failed(self) -> int:
        """Records that cannot be imported as they are."""
        return len(self.items) - self.skipped

    @property
    def reasons(self) -> dict[str, int]:
        """How many records were not imported, per reason."""
        return dict(Counter(item.reason for item in self.items))

    @property
    def status(self) -> Status:
        """`complete`, `partial`, `failed`, or `empty` when nothing of the source is stored."""
        at_hand = self.imported + self.reasons.get("unchanged", 0)
        if self.failed:
            return "partial" if at_hand else "failed"
        return "complete" if at_hand else "empty"

    @property
    def exit_code(self) -> int:
        """0 complete, 1 partial or failed, 3 empty."""
        return _EXIT_CODES[self.status]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        names = ("source", "status", "exit_code", "found", "imported", "skipped", "failed")
        return {
            **{name: getattr(self, name) for name in (*names, "reasons")},
            "threads": list(self.threads),
            "items": [asdict(item) for item in self.items],
        }

    def __str__(self) -> str:
        """Name what was not imported and why, and end with one line of counts."""
        return "\n".join([*self._heading(), *self._listed(), self._counts()])

    def _heading(self) -> Iterator[str]:
        if not self.found:
            yield f"{self.source}: nothing to import; it holds no records"
        elif len(self.threads) == 1:
            yield f"{self.source}: thread {self.threads[0]}"
        else:
            yield f"{self.source}: {len(self.threads)} threads"

    def _listed(self) -> Iterator[str]:
        telling = [item for item in self.items if item.reason != "unchanged"]
        yield from (f"  {item}" for item in telling[:_LISTED])
        if len(telling) > _LISTED:
            yield f"  and {len(telling) - _LISTED} more"

    def _counts(self) -> str:
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.reasons.items())
        counts = f"imported {self.imported}, skipped {self.skipped}, failed {self.failed}"
        return f"{counts} of {self.found}" + (f" ({reasons})" if reasons else "")
