"""The format `hiermem/export`: what `Tenant.export` wrote, stored as it was."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiermem_core.exporting.reader import is_export
from hiermem_core.exporting.sealing import FORMAT
from hiermem_core.importing.report import ImportItem, ImportProgress, ImportReport, StoreReport

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from hiermem_core import Tenant
    from hiermem_core.exporting.entries import OnConflict
    from hiermem_core.exporting.report import ReadReport

__all__ = ["FORMAT", "import_own_export", "is_export"]


def import_own_export(
    source: str | os.PathLike[str],
    tenant: Tenant,
    *,
    namespace: str | None = None,
    thread: str | None = None,
    on_conflict: OnConflict = "skip",
    dry_run: bool = False,
    batch_size: int = 500,
    progress: Callable[[ImportProgress], None] | None = None,
) -> ImportReport:
    """Store an export of ours in a tenant; see `Tenant.import_export`.

    Raises:
        InvalidInputError: The file cannot be read, was changed or cut, at the line named.
        ConflictError: `on_conflict` is `"fail"` and there is a conflict.
        BackendUnavailableError: The storage is full, locked or away. Whole batches are stored.
    """
    started_at = datetime.now(UTC)

    def tell(read_bytes: int, total_bytes: int) -> None:
        if progress is not None:
            progress(ImportProgress(0, 0, read_bytes, total_bytes))

    report = tenant.import_export(
        source,
        namespace=namespace,
        thread=thread,
        on_conflict=on_conflict,
        dry_run=dry_run,
        batch_size=batch_size,
        progress=tell,
    )
    return _as_report(report, Path(source).name, started_at=started_at)


def _as_report(report: ReadReport, store: str, *, started_at: datetime) -> ImportReport:
    kinds: Mapping[Any, int] = {kind: sum(n.values()) for kind, n in report.counts.items()}
    items: Any = tuple(
        ImportItem(
            ref=item.ref,
            outcome=item.outcome,
            reason=item.reason,  # type: ignore[arg-type]  # one of its reasons
            detail=item.detail,
            store=store,
            kind=item.kind,  # type: ignore[arg-type]  # one of its kinds
        )
        for item in report.items
    )
    return ImportReport(
        source=report.source,
        imported=report.imported,
        threads=report.threads,
        items=items,
        updated=report.updated,
        dry_run=report.dry_run,
        stores=(StoreReport(store, FORMAT, "read", report.found),),
        by_kind=kinds,
        started_at=started_at,
        finished_at=datetime.now(UTC),
    )
