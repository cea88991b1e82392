"""What a tenant's exports are written and read with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hiermem_core.exporting.taking import ExportTaking
    from hiermem_core.exporting.writer import ExportWriter


@dataclass(frozen=True, slots=True)
class Exports:
    """Write exports, and import them."""

    writer: ExportWriter
    taking: ExportTaking
