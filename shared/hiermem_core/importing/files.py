"""The stores of a file or a database: one of a text, one a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing import chroma
from hiermem_core.importing.databases import (
    BusyError,
    DamagedError,
    copied,
    is_database,
    is_placeholder,
)
from hiermem_core.importing.documents import document_format
from hiermem_core.importing.lines import document_value
from hiermem_core.importing.records import RecordError
from hiermem_core.importing.sniffing import sniffed
from hiermem_core.importing.stores import Store
from hiermem_core.importing.tables import format_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from hiermem_core.importing.databases import DatabaseCopy, Tables
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.report import StoreStatus
    from hiermem_core.importing.servers import ServerAddress

HEAD = 8192


def file_stores(
    path: Path, shown: str, reading: Reading, *, wanted: str | None = None
) -> Iterator[Store]:
    """Yield the stores of a file that was named.

    Args:
        shown: The path, as in a report.
        wanted: Only of this format.

    Raises:
        InvalidInputError: No reader knows its shape, or it is not of the format wanted.
    """
    reading = reading.of_file(path)
    with path.open("rb") as file:
        if is_database(file.read(HEAD)):
            yield from _fitting(database_stores(path, shown, reading, wanted=wanted), wanted)
            return
        file.seek(0)
        name, records = sniffed(file, reading, wanted=wanted)
        yield Store(shown, name, records, size=path.stat().st_size, tell=file.tell)


def server_stores(
    address: ServerAddress, reading: Reading, *, wanted: str | None = None
) -> Iterator[Store]:
    """Yield the stores of a database on a server; tables that no rule reads are not looked at.

    Raises:
        InvalidInputError: It cannot be reached, is one of HierMem, or holds no table wanted.
        MissingExtraError: The driver is not installed.
    """
    from hiermem_core.importing.servers import connected  # noqa: PLC0415 - not for files

    shown = str(address)
    try:
        with connected(address) as database:
            tables = database.tables()
            _refuse_own(tables)
            stores = _table_stores(database, tables, shown, reading, wanted=wanted)
            yield from _fitting(stores, wanted)
    except DamagedError as error:
        yield Store(shown, status="damaged", detail=str(error))


def known_file_stores(
    path: Path, shown: str, reading: Reading, *, wanted: str | None = None
) -> Iterator[Store]:
    """Yield the stores of a file at a path that is known; nothing in it is refused."""
    reading = reading.of_file(path)
    with path.open("rb") as file:
        head = file.read(HEAD)
    if is_database(head) or path.suffix == ".db":
        yield from database_stores(path, shown, reading, wanted=wanted)
    else:
        yield document_store(path, shown, reading, wanted=wanted)


def document_store(path: Path, shown: str, reading: Reading, *, wanted: str | None = None) -> Store:
    """Return the store of a JSON document; one that cannot be parsed is damaged."""
    size = path.stat().st_size
    try:
        value = load_document(path, reading)
    except RecordError as error:
        return Store(shown, None, status="damaged", detail=error.detail, size=size)
    found = document_format(value, wanted) if value else None
    if found is None:
        status: StoreStatus = "unrecognised" if value else "empty"
        return Store(shown, None, status=status, size=size)
    return Store(shown, found.name, found.read(value, reading), size=size)


def load_document(path: Path, reading: Reading) -> Any:
    """Return the JSON value of a file.

    Raises:
        RecordError: It is none, or too large.
    """
    with path.open("rb") as file:
        return document_value(file, reading.warn)


def database_stores(
    path: Path, shown: str, reading: Reading, *, wanted: str | None = None
) -> Iterator[Store]:
    """Yield a store for each table with rows that has a format.

    Raises:
        InvalidInputError: It is a database of HierMem.
    """
    size = path.stat().st_size
    if not size:
        yield Store(shown, status="empty")
        return
    if is_placeholder(path):
        reading.warn("placeholder")
        yield Store(shown, status="placeholder", size=size)
        return
    try:
        with copied(path) as copy:
            yield from _copied_stores(copy, shown, reading, wanted=wanted, size=size)
    except BusyError as error:
        yield Store(shown, status="busy", detail=str(error), size=size)
    except DamagedError as error:
        yield Store(shown, status="damaged", detail=str(error), size=size)


def _copied_stores(
    copy: DatabaseCopy, shown: str, reading: Reading, *, wanted: str | None, size: int
) -> Iterator[Store]:
    tables = copy.tables()
    _refuse_own(tables)
    if chroma.fits(tables):
        for detail, kind, records in chroma.collections_of(copy, reading):
            if wanted in {None, kind}:
                yield Store(shown, kind, records, detail=detail, size=size)
        return
    unread = [name for name, columns in tables.items() if format_of(name, columns, wanted) is None]
    ignored = _counts(copy, unread)
    stores = _table_stores(copy, tables, shown, reading, wanted=wanted)
    for place, store in enumerate(stores):
        if place == 0:
            store.ignored, store.size = ignored, size
        if store.status == "empty" and store.format is None and ignored:
            store.status = "unrecognised"
        yield store


def _table_stores(
    database: Tables,
    tables: Mapping[str, frozenset[str]],
    shown: str,
    reading: Reading,
    *,
    wanted: str | None,
) -> Iterator[Store]:
    """Yield a store for each table with rows that has a format; an empty one where none has."""
    formats = {name: format_of(name, columns, wanted) for name, columns in tables.items()}
    known = {name: found for name, found in formats.items() if found is not None}
    full = {name: found for name, found in known.items() if database.has_rows(name)}
    if not full:
        yield Store(shown, next((found.name for found in known.values()), None), status="empty")
    for name, found in full.items():
        yield Store(
            shown,
            found.name,
            found.records(database, name, reading),
            detail=f"table {name}" if len(full) > 1 else "",
            status="damaged" if database.is_cut else "read",
        )


def _fitting(stores: Iterator[Store], wanted: str | None) -> Iterator[Store]:
    """Yield stores.

    Raises:
        InvalidInputError: After all of them, where none is of the format wanted.
    """
    found = wanted is None
    for store in stores:
        found = found or store.format == wanted
        yield store
    if not found:
        raise InvalidInputError("format", f"the source holds no table of {wanted}")


def _refuse_own(tables: Mapping[str, frozenset[str]]) -> None:
    if "tenant" in tables.get("memory_entries", ()):
        raise InvalidInputError("source", "is a database of HierMem; run there: hiermem export")


def _counts(copy: DatabaseCopy, tables: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in tables:
        try:
            rows = copy.count(name)
        except DamagedError:
            continue
        if rows:
            counts[name] = rows
    return counts
