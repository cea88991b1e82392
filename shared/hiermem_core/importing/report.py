"""What an import stored, skipped and could not read. Holds no content."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hiermem_core.models.displayed import Displayed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

Outcome = Literal["skipped", "failed"]
Status = Literal["complete", "partial", "failed", "empty"]
Kind = Literal["entry", "turn", "pattern", "session", "step"]
StoreStatus = Literal[
    "read", "empty", "placeholder", "damaged", "busy", "unrecognised", "already_moved"
]
WarningCode = Literal[
    "read_from_backup",
    "placeholder",
    "invalid_expiry",
    "confidence_clamped",
    "undecodable_bytes",
]
Reason = Literal[
    "duplicate",
    "superseded",
    "shared_copy",
    "expired",
    "deleted",
    "empty",
    "unchanged",
    "conflict",
    "thread_continued",
    "not_a_turn",
    "invalid_json",
    "invalid_record",
    "missing_field",
    "not_text",
    "limit_exceeded",
    "invalid_input",
    "unknown_role",
    "rejected_by_redactor",
    "quota_exceeded",
    "store_error",
]

_EXIT_CODES: dict[Status, int] = {"complete": 0, "partial": 1, "failed": 1, "empty": 3}
_BROKEN = frozenset({"damaged", "busy"})
_LISTED = 20
"""Records named in the text of a report; `items` holds them all."""


@dataclass(frozen=True, slots=True)
class ImportItem:
    """A record that was not imported.

    Attributes:
        ref: Its id in the source, else its namespace and key, else its position, such as `line 7`.
        detail: Where it stands and what to do about it.
        store: The path of its store, as in the report's `stores`.
        of: The ref of the record that it repeats, or that took its place.
    """

    ref: str
    outcome: Outcome
    reason: Reason
    detail: str = ""
    store: str = ""
    kind: Kind = "turn"
    of: str | None = None

    def __str__(self) -> str:
        """Say it in one line."""
        of = f"of {self.of}" if self.of and self.of != self.ref else ""
        return ": ".join(filter(None, (self.ref, self.reason, of, self.detail)))


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import has come; told after every batch.

    Attributes:
        imported: Records stored so far.
        read_bytes: Of the source, as far as it is both read and stored.
    """

    found: int
    imported: int
    read_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What was found in one place of a source.

    Attributes:
        path: Below the source, with `/`; of a source that is a file its name.
        format: `None`: none is known that fits.
        found: Records.
        ignored: Tables with rows that nothing reads, and how many rows.
        detail: What else there is to know.
    """

    path: str
    format: str | None
    status: StoreStatus
    found: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)
    detail: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        ignored = ", ".join(f"{name} {rows}" for name, rows in self.ignored.items())
        facts = (
            self.format or "no known format",
            f"{self.found} record{'s' * (self.found != 1)}"
            if self.status == "read"
            else self.status,
            f"ignored {ignored}" if ignored else "",
            self.detail,
        )
        return f"{self.path}: {'; '.join(filter(None, facts))}"


@dataclass(frozen=True, slots=True)
class ImportReport(Displayed):
    """What became of every record of a source; each is counted once.

    Attributes:
        imported: Records stored by this run.
        threads: The threads that hold records of the source, in order of appearance.
        items: Every record that was not imported, in the order of the source.
        updated: Records that replaced what was there.
        warnings: Codes of what was noticed, each once.
        by_kind: Records found, of each kind.
    """

    source: str
    imported: int
    threads: tuple[str, ...]
    items: tuple[ImportItem, ...]
    updated: int = 0
    dry_run: bool = False
    stores: tuple[StoreReport, ...] = ()
    warnings: tuple[WarningCode, ...] = ()
    by_kind: Mapping[Kind, int] = field(default_factory=dict)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    sought: tuple[str, ...] = ()

    @property
    def found(self) -> int:
        """All records of the source."""
        return self.imported + self.updated + len(self.items)

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
    def at_hand(self) -> int:
        """Records of the source that are stored now, by this run or an earlier one."""
        return self.imported + self.updated + self.reasons.get("unchanged", 0)

    @property
    def status(self) -> Status:
        """`complete`, `partial`, `failed`, or `empty` when nothing of the source is stored."""
        if self.failed or any(store.status in _BROKEN for store in self.stores):
            return "partial" if self.at_hand else "failed"
        return "complete" if self.at_hand else "empty"

    @property
    def exit_code(self) -> int:
        """0 complete, 1 partial or failed, 3 empty."""
        return _EXIT_CODES[self.status]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        counts = ("found", "imported", "updated", "skipped", "failed")
        names = ("source", "dry_run", "status", "exit_code", *counts, "reasons")
        return {
            **{name: getattr(self, name) for name in names},
            "by_kind": dict(self.by_kind),
            "threads": list(self.threads),
            "stores": [asdict(store) for store in self.stores],
            "warnings": list(self.warnings),
            "items": [asdict(item) for item in self.items],
            "started_at": _iso(self.started_at),
            "finished_at": _iso(self.finished_at),
        }

    def __str__(self) -> str:
        """Name what was not imported and why, and end with one line of counts."""
        return "\n".join([*self._heading(), *self._listed(), self._counts()])

    def _heading(self) -> Iterator[str]:
        trial = " (dry run: nothing is stored)" if self.dry_run else ""
        is_one = len(self.stores) < 2 and not any(map(_is_telling, self.stores))  # noqa: PLR2004 - more than one
        if not self.found and all(store.status == "empty" for store in self.stores):
            looked = f"; looked for {', '.join(self.sought)}" if self.sought else ""
            yield f"{self.source}: nothing to import; it holds no records{looked}{trial}"
        elif len(self.threads) == 1 and is_one:
            yield f"{self.source}: thread {self.threads[0]}{trial}"
        elif is_one and not self.threads:
            yield f"{self.source}: {self._what()}{trial}"
        else:
            threads = f": {len(self.threads)} threads" if self.threads else ""
            yield f"{self.source}{threads}{trial}"
        if not is_one:
            yield from (f"  {store}" for store in self.stores)
        if self.warnings:
            yield f"  warnings: {', '.join(self.warnings)}"

    def _what(self) -> str:
        return next((store.format for store in self.stores if store.format), "no known format")

    def _listed(self) -> Iterator[str]:
        telling = [item for item in self.items if item.reason != "unchanged"]
        yield from (f"  {item}" for item in telling[:_LISTED])
        if len(telling) > _LISTED:
            yield f"  and {len(telling) - _LISTED} more"

    def _counts(self) -> str:
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.reasons.items())
        updated = f", updated {self.updated}" if self.updated else ""
        done = f"imported {self.imported}{updated}"
        counts = f"{done}, skipped {self.skipped}, failed {self.failed}"
        return f"{counts} of {self.found}" + (f" ({reasons})" if reasons else "")


def _is_telling(store: StoreReport) -> bool:
    """Tell whether a store says more than that it was read."""
    return bool(store.status != "read" or store.ignored or store.detail)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
