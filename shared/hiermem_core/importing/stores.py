"""Stores: the places of a source that records are read from, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hiermem_core.importing.report import StoreReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hiermem_core.importing.records import Record
    from hiermem_core.importing.report import StoreStatus


@dataclass(slots=True, eq=False)
class Store:
    """One place of a source; its records are read once, before the next store is asked for.

    Attributes:
        path: As in a report.
        records: Raises `DamagedError` where it cannot be read on.
        size: Bytes of its file.
        tell: Returns how many bytes of it are read; `None`: that is not known.
    """

    path: str
    format: str | None = None
    records: Iterable[Record] = ()
    status: StoreStatus = "read"
    found: int = 0
    ignored: dict[str, int] = field(default_factory=dict)
    detail: str = ""
    size: int = 0
    tell: Callable[[], int] | None = None

    def report(self) -> StoreReport:
        """Return what a report says of it."""
        status = "empty" if self.status == "read" and not self.found else self.status
        return StoreReport(self.path, self.format, status, self.found, self.ignored, self.detail)
