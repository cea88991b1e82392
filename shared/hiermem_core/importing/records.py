"""Records: what a reader makes of one message of a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hiermem_core.importing.report import ImportItem

if TYPE_CHECKING:
    from hiermem_core.importing.report import Outcome, Reason
    from hiermem_core.models.turns import TurnDraft


@dataclass(frozen=True, slots=True)
class Message:
    """A record that can be stored.

    Attributes:
        ref: Its id in the source, else its position.
        position: Where it stands, such as `line 7`.
        thread: The thread it belongs to.
        has_id: The source names it; else its position does.
    """

    ref: str
    position: str
    thread: str
    turn: TurnDraft
    has_id: bool

    @property
    def size(self) -> int:
        """Characters it takes until it is stored."""
        dump = self.turn.origin.dump if self.turn.origin else ""
        return len(self.turn.content or "") + len(dump)


Record = Message | ImportItem
"""A message that can be stored, or why there is none."""


class RecordError(Exception):
    """A record of the source cannot be imported; the others can."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason: Reason = reason
        self.detail = detail
        super().__init__(detail)


def failed(error: RecordError, *, ref: str, position: str) -> ImportItem:
    """Return what a report says of a record that cannot be imported."""
    return item(ref, position, "failed", error.reason, error.detail)


def item(ref: str, position: str, outcome: Outcome, reason: Reason, detail: str) -> ImportItem:
    """Return what a report says of a record, with its position named once."""
    place = "" if ref == position else f"{position}: "
    return ImportItem(ref, outcome, reason, place + detail)
