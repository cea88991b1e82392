"""Running an import: what is wished, checked, and the runs that it takes."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, get_args

from hiermem_core.errors import ConflictError, InvalidInputError
from hiermem_core.importing import chat_jsonl, mem0_export, own_export
from hiermem_core.importing.databases import DamagedError
from hiermem_core.importing.files import file_stores, server_stores
from hiermem_core.importing.folders import PATHS, Folder
from hiermem_core.importing.formats import FORMATS
from hiermem_core.importing.importer import OnConflict
from hiermem_core.importing.reading import Reading
from hiermem_core.importing.report import StoreReport
from hiermem_core.importing.runs import Run, closable
from hiermem_core.importing.sniffing import check_one_thread
from hiermem_core.models.moments import to_the_millisecond
from hiermem_core.models.namespaces import format_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hiermem_core import Tenant
    from hiermem_core.importing.records import Record
    from hiermem_core.importing.report import ImportProgress, ImportReport, WarningCode
    from hiermem_core.importing.servers import ServerAddress
    from hiermem_core.importing.stores import Store

_CHOOSABLE = frozenset({None, mem0_export.FORMAT, chat_jsonl.FORMAT})
"""Formats whose records are chosen by their fields."""

_SEALS = 2
"""Lines of an export of ours that hold no record: its first and its last."""

BATCH_LIMIT = 10_000
"""Records of one batch at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is wished of an import; see `import_memories`."""

    format: str | None
    namespace: str | None
    thread: str | None
    only: Mapping[str, str]
    all_users: bool
    on_conflict: OnConflict
    include_expired: bool
    include_backups: bool
    dry_run: bool
    batch_size: int


def run(
    source: Path | ServerAddress,
    tenant: Tenant,
    wishes: Wishes,
    progress: Callable[[ImportProgress], None] | None,
) -> ImportReport:
    """Import a source; see `import_memories`.

    Raises:
        InvalidInputError: A wish cannot be met, or the source cannot be read.
        ConflictError: There is a conflict, and that is to fail.
        BackendUnavailableError: The storage is full, locked or away.
    """
    _check(wishes)
    if wishes.format in {None, own_export.FORMAT} and _is_own_export(source):
        return _own(source, tenant, wishes, progress)
    services = tenant._services  # noqa: SLF001 - an import tells time by the tenant's clock
    services.database.check_open()
    warnings: dict[WarningCode, None] = {}
    started_at = to_the_millisecond(services.clock.now())
    reading = Reading(
        now=started_at,
        prefix="" if wishes.namespace is None else format_namespace(wishes.namespace),
        thread=wishes.thread,
        only=wishes.only,
        all_users=wishes.all_users,
        include_expired=wishes.include_expired,
        include_backups=wishes.include_backups,
        metadata_limit=services.memories.metadata_limit,
        warn=lambda code: warnings.update({code: None}),
        cleaner=lambda kind: services.memories.redaction.cleaner(kind, tenant.name),
    )
    if wishes.thread is not None:
        unnamed = replace(reading, thread=None)
        check_one_thread(_records(stores_of(source, unnamed, wanted=wishes.format)))

    def once(*, dry_run: bool) -> ImportReport:
        one = Run(
            tenant,
            started_at,
            wishes.on_conflict,
            dry_run=dry_run,
            batch_size=wishes.batch_size,
            progress=progress if dry_run == wishes.dry_run else None,
        )
        found = one.go(stores_of(source, reading, wanted=wishes.format))
        return one.report(
            str(source),
            found,
            warnings=tuple(warnings),
            times=(started_at, to_the_millisecond(services.clock.now())),
            sought=PATHS if isinstance(source, Path) and source.is_dir() else (),
        )

    if wishes.on_conflict == "fail":
        _raise_conflict(once(dry_run=True))
    return once(dry_run=wishes.dry_run)


def stores_of(
    source: Path | ServerAddress, reading: Reading, *, wanted: str | None = None
) -> Iterator[Store]:
    """Yield the stores of a source; each is read before the next is asked for.

    Args:
        wanted: Only of this format.

    Raises:
        InvalidInputError: It is a file that no reader knows, or not of the format wanted, or has
            no fields to choose by, or a server that cannot be reached.
    """
    if not isinstance(source, Path):
        found = server_stores(source, reading, wanted=wanted)
    elif source.is_dir():
        found = Folder(source, reading, wanted).stores()
    else:
        found = file_stores(source, source.name, reading, wanted=wanted)
    for store in found:
        if reading.only and store.format not in _CHOOSABLE:
            reason = f"{store.format} has no fields to choose by; leave it out"
            raise InvalidInputError("only", reason)
        yield store


def found_in(source: Path | ServerAddress) -> tuple[StoreReport, ...]:
    """Return what an import would read of a source.

    Raises:
        InvalidInputError: No reader knows its shape.
    """
    if _is_own_export(source):
        with source.open("rb") as file:
            records = max(0, sum(1 for _ in file) - _SEALS)
        return (StoreReport(source.name, own_export.FORMAT, "read", records),)
    reading = Reading(now=datetime.now(UTC), all_users=True)
    found: list[StoreReport] = []
    with closing(closable(stores_of(source, reading))) as stores:
        for store in stores:
            try:
                for _ in store.records:
                    store.found += 1
            except DamagedError as error:
                store.status, store.detail = "damaged", str(error)
            found.append(store.report())
    return tuple(found)


def _is_own_export(source: Path | ServerAddress) -> TypeGuard[Path]:
    return isinstance(source, Path) and source.is_file() and own_export.is_export(source)


def _own(
    path: Path,
    tenant: Tenant,
    wishes: Wishes,
    progress: Callable[[ImportProgress], None] | None,
) -> ImportReport:
    return own_export.import_own_export(
        path,
        tenant,
        namespace=wishes.namespace,
        thread=wishes.thread,
        on_conflict=wishes.on_conflict,
        dry_run=wishes.dry_run,
        batch_size=wishes.batch_size,
        progress=progress,
    )


def _records(stores: Iterator[Store]) -> Iterator[Record]:
    """Yield the records of all stores, as far as they can be read."""
    for store in stores:
        with suppress(DamagedError):
            yield from store.records


def _check(wishes: Wishes) -> None:
    if not 1 <= wishes.batch_size <= BATCH_LIMIT:
        raise InvalidInputError("batch_size", f"must be between 1 and {BATCH_LIMIT}")
    if wishes.on_conflict not in get_args(OnConflict):
        known = ", ".join(get_args(OnConflict))
        raise InvalidInputError("on_conflict", f"is unknown; use one of {known}")
    if wishes.format is not None and wishes.format not in FORMATS:
        raise InvalidInputError("format", f"is unknown; use one of {', '.join(FORMATS)}")


def _raise_conflict(report: ImportReport) -> None:
    found = [item for item in report.items if item.reason == "conflict"]
    if found:
        reason = f"{len(found)} records differ from what is stored, {found[0].ref!r} first"
        raise ConflictError(f"{reason}; nothing was stored; import with skip or overwrite")
