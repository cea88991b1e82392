"""The import: a source in, entries and turns of a tenant out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing.sources import find_any_source, is_url
from hiermem_core.operations import performed

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from hiermem_core import AsyncTenant, Tenant
    from hiermem_core.importing.report import ImportProgress, ImportReport, StoreReport
    from hiermem_core.operations import Kind

OnConflict = Literal["skip", "overwrite", "fail"]
AUTO = "auto"


def import_memories(
    source: str | os.PathLike[str],
    tenant: Tenant,
    *,
    format: str = AUTO,  # noqa: A002 - what everyone calls it
    namespace: str | None = None,
    thread: str | None = None,
    only: Mapping[str, str] | None = None,
    all_users: bool = False,
    on_conflict: OnConflict = "skip",
    include_expired: bool = False,
    include_backups: bool = False,
    dry_run: bool = False,
    batch_size: int = 500,
    progress: Callable[[ImportProgress], None] | None = None,
) -> ImportReport:
    """Store what a source remembers in the tenant's memory; say what became of each record.

    Never changes the source; calls no model but the embedder, for what is new. Repeating an import
    stores nothing twice, and goes on where a killed one ended. A record that cannot be imported
    never stops the others. Memory is bounded by one batch, beside a line about each record that
    was not imported; a JSON document is read whole.

    Args:
        source: A file, whose contents decide how it is read, or a folder, of which the paths are
            read that a known system writes; or the URL of a database, `postgresql+psycopg://...`
            or `sqlite:///...`, which is read in one transaction that cannot write, and needs a
            `format`. Reports and errors mask its password.
        format: Of the source, as a report names it; its shape must fit.
        namespace: All entries go below it, but for those of patterns.
        thread: Renames the thread of a source that holds one.
        only: Values that records of several users must have in their fields, such as `user_id`.
        all_users: What the source has of all its users is this tenant's.
        on_conflict: Where an entry says something else by now: leave it, replace it, or raise
            before anything is stored. Turns are never replaced.
        include_expired: Import entries that are past their expiry too; they do not expire here.
        include_backups: Read a system's backups beside what they are backups of.
        dry_run: Report as if, and store nothing.
        batch_size: Records of one batch; its entries, and its turns of one thread, are stored in
            one transaction each.
        progress: Told after every batch.

    Raises:
        InvalidInputError: The source cannot be read, holds several users' memories, or `thread` is
            given for several threads. Nothing was stored.
        MissingExtraError: The source is on a server whose driver is not installed.
        ConflictError: `on_conflict` is `fail`, and there is a conflict. Nothing was stored.
        BackendUnavailableError: The storage is full, locked or away. Whole batches are stored.
    """
    from hiermem_core.importing.running import Wishes, run  # noqa: PLC0415 - not for --help

    found = find_any_source(source)
    if is_url(source) and format == AUTO:
        reason = "is needed for a database URL; find_stores and hiermem import --list name them"
        raise InvalidInputError("format", reason)
    wishes = Wishes(
        format=None if format == AUTO else format,
        namespace=namespace,
        thread=thread,
        only=dict(only or {}),
        all_users=all_users,
        on_conflict=on_conflict,
        include_expired=include_expired,
        include_backups=include_backups,
        dry_run=dry_run,
        batch_size=batch_size,
    )
    kind: Kind = "read" if dry_run else "write"
    return performed(tenant, "import_memories", kind, lambda: run(found, tenant, wishes, progress))


def find_stores(source: str | os.PathLike[str]) -> tuple[StoreReport, ...]:
    """Return what an import would read of a source, and how many records; nothing is written.

    Raises:
        InvalidInputError: The source cannot be read, or no reader knows its shape.
    """
    from hiermem_core.importing.running import found_in  # noqa: PLC0415 - not for --help

    return found_in(find_any_source(source))


async def aimport_memories(
    source: str | os.PathLike[str], tenant: Tenant | AsyncTenant, **options: Any
) -> ImportReport:
    """Run `import_memories` on the tenant's private threads, and await it.

    Args:
        options: As of `import_memories`.

    Raises:
        InvalidInputError: As `import_memories`.
        ConflictError: As `import_memories`.
        BackendUnavailableError: As `import_memories`.
    """
    sync: Any = getattr(tenant, "sync", None) or tenant
    report: ImportReport = await sync.pool.run(import_memories, source, sync, **options)
    return report
