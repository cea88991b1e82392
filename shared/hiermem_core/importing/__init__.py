"""Importing conversations of other systems: sniffing, one reader per format, a report."""

from hiermem_core.importing.importer import import_memories
from hiermem_core.importing.report import ImportItem, ImportProgress, ImportReport
from hiermem_core.importing.sources import find_source

__all__ = ["ImportItem", "ImportProgress", "ImportReport", "find_source", "import_memories"]
