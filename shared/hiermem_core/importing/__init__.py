"""Importing what other systems remember: sniffing, one reader per format, a report."""

from hiermem_core.importing.importer import aimport_memories, find_stores, import_memories
from hiermem_core.importing.report import ImportItem, ImportProgress, ImportReport, StoreReport
from hiermem_core.importing.sources import find_any_source, find_source

__all__ = [
    "ImportItem",
    "ImportProgress",
    "ImportReport",
    "StoreReport",
    "aimport_memories",
    "find_any_source",
    "find_source",
    "find_stores",
    "import_memories",
]
