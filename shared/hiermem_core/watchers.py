"""Who watches operations, by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.operations import Operations
from hiermem_core.storage.audit_log import AuditLog

if TYPE_CHECKING:
    from hiermem_core.operations import Watcher
    from hiermem_core.protocols import Clock
    from hiermem_core.settings import HierMemSettings
    from hiermem_core.storage.database import Database
    from hiermem_core.telemetry import Telemetry


def operations_of(
    settings: HierMemSettings, database: Database, clock: Clock, telemetry: Telemetry | None
) -> Operations | None:
    """Return what runs operations before their watchers; `None`: nobody watches."""
    watchers: list[Watcher] = [] if telemetry is None else [telemetry]
    if settings.audit:
        log = AuditLog(database, clock, with_reads=settings.audit_reads)
        database.before_commit = log.before_commit
        watchers.append(log)
    return Operations(watchers) if watchers else None
