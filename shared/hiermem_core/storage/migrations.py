"""The schema's version, and the way from an older one to this one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from sqlalchemy import func, insert, inspect, literal, select, update

from hiermem_core.errors import BackendError, ConfigurationError, MigrationError
from hiermem_core.faults import reach
from hiermem_core.storage import tables
from hiermem_core.storage.audit_table import audit
from hiermem_core.storage.database import Database
from hiermem_core.storage.keyword_tables import create_keyword_tables
from hiermem_core.storage.location_seal import make_seal, seal_in
from hiermem_core.storage.run_tables import patterns, sessions, trajectories
from hiermem_core.storage.sizes import entry_bytes, sum_of, turn_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from sqlalchemy import Connection

    from hiermem_core.protocols import Codec
    from hiermem_core.storage.location import Location

SCHEMA_VERSION = 7

_VERSION_KEY = "schema_version"

UNLISTED = "turns_unlisted"
"""Stands in the metadata while turns of an older schema are not searchable yet."""


def _create_all(connection: Connection) -> None:
    tables.schema.create_all(connection)
    create_keyword_tables(connection)


def _add_entries(connection: Connection) -> None:
    _create_all(connection)
    connection.execute(insert(tables.metadata).values(key=UNLISTED, value="1", updated_at=0))


def _add_passages(connection: Connection) -> None:
    """Let an entry have passages, and a row several vectors; their numbers stay, and go on."""
    names = {column["name"] for column in inspect(connection).get_columns("vectors")}
    if "part" in names:
        return
    last = "SELECT seq FROM sqlite_sequence WHERE name = 'vectors'"
    seq = connection.exec_driver_sql(last).scalar() or 0
    kept = ", ".join(sorted(names))
    for statement in (
        "ALTER TABLE memory_entries ADD COLUMN passages TEXT",
        "DROP INDEX vectors_by_tenant",
        "ALTER TABLE vectors RENAME TO vectors_before",
    ):
        connection.exec_driver_sql(statement)
    tables.vectors.create(connection)
    copy = f"INSERT INTO vectors ({kept}) SELECT {kept} FROM vectors_before"  # noqa: S608 - columns
    connection.exec_driver_sql(copy)
    connection.exec_driver_sql("DROP TABLE vectors_before")
    connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'vectors'")
    connection.exec_driver_sql("INSERT INTO sqlite_sequence VALUES ('vectors', ?)", (seq,))


def _add_learning(connection: Connection) -> None:
    """Note when notes are due, and find the newest answer of each thread; a call is no answer."""
    number = "INTEGER NOT NULL DEFAULT 0"
    _add_column(connection, "threads", "answered_seq", number)
    for column in ("reset_seq", "failures", "failed_seq"):
        _add_column(connection, "notes", column, number)
    _add_column(connection, "tenants", "turn_generation", "BIGINT NOT NULL DEFAULT 0")
    connection.exec_driver_sql("UPDATE notes SET reset_seq = turn_count WHERE epoch > 0")
    connection.exec_driver_sql(
        "UPDATE threads SET answered_seq = coalesce((SELECT max(seq) FROM turns"
        " WHERE thread = threads.number AND NOT archived AND role = 'assistant'"
        " AND NOT EXISTS (SELECT 1 FROM calls"
        " WHERE calls.thread = turns.thread AND calls.seq = turns.seq)), 0)"
    )


def _add_runs(connection: Connection) -> None:
    """Add the tables of patterns, sessions and their steps, unless a step before has."""
    for table in (patterns, sessions, trajectories):
        table.create(connection, checkfirst=True)


def _add_trust(connection: Connection) -> None:
    """Count what each tenant keeps, as quotas do; find derived entries by an index; add the log."""
    audit.create(connection, checkfirst=True)
    _add_column(connection, "memory_entries", "is_stale", "BOOLEAN NOT NULL DEFAULT FALSE")
    for index in tables.memory_entries.indexes:
        index.create(connection, checkfirst=True)
    for column in ("entries", "bytes", "minute_ms", "minute_writes"):
        _add_column(connection, "tenants", column, "BIGINT NOT NULL DEFAULT 0")
    tenants, entries, threads = tables.tenants, tables.memory_entries, tables.threads
    known = select(tenants.c.tenant)
    unknown = select(threads.c.tenant, literal(0)).distinct().where(threads.c.tenant.not_in(known))
    connection.execute(insert(tenants).from_select(["tenant", "generation"], unknown))
    mine = entries.c.tenant == tenants.c.tenant
    count = select(func.count()).select_from(entries).where(mine)
    kept = select(sum_of(entry_bytes)).where(mine)
    said = select(sum_of(turn_bytes)).join_from(tables.turns, threads)
    said = said.where(threads.c.tenant == tenants.c.tenant)
    sizes = kept.scalar_subquery() + said.scalar_subquery()
    connection.execute(update(tenants).values(entries=count.scalar_subquery(), bytes=sizes))


def _add_changes(connection: Connection) -> None:
    """Count what is done to stored turns."""
    _add_column(connection, "threads", "changes", "INTEGER NOT NULL DEFAULT 0")


def _add_column(connection: Connection, table: str, column: str, kind: str) -> None:
    """Add a column, unless a step before has created the table with it."""
    if column not in {found["name"] for found in inspect(connection).get_columns(table)}:
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")


STEPS: Mapping[int, Callable[[Connection], None]] = {
    1: _add_entries,
    2: _add_passages,
    3: _add_learning,
    4: _add_runs,
    5: _add_trust,
    6: _add_changes,
}
"""`STEPS[n]` brings schema n to n + 1, inside the transaction of the migration.

Servers began with schema 4: from that on a step runs on every engine, so it adds tables by
`_create_all` and columns by `_add_column`, and its statements are SQL that both engines take.
"""


def prepare(database: Database, *, now_ms: int, codec: Codec | None = None) -> None:
    """Create the schema, or migrate an older one after a backup.

    Args:
        codec: Seals what a location holds, from its creation on.

    Raises:
        ConfigurationError: The file is another program's database, or was made without the codec,
            or with another one. It is unchanged.
        MigrationError: The location was written by a newer version, or a step is missing.
    """
    with database.read() as connection:
        stored = stored_version(connection)
        _check_ours(connection, stored)
    if stored is not None:
        _unseal(database, codec)
    if stored == SCHEMA_VERSION:
        return
    if stored is not None:
        _check_path(stored)
        backup(database.location.database, stored)
    database.prepare()
    with database.write() as connection:
        _bring_up(connection, now_ms, codec)
    if stored is None:
        _unseal(database, codec)


def _unseal(database: Database, codec: Codec | None) -> None:
    with database.read() as connection:
        seal = seal_in(connection, codec)
    if seal is not None:
        database.seal(seal)


def holds_memory(location: Location) -> bool:
    """Tell whether a memory is stored at a location; a server is asked. Changes nothing.

    Raises:
        BackendUnavailableError: The server cannot be reached.
    """
    if location.server is None:
        return location.exists
    database = Database(location, pool_size=1)
    try:
        with database.read() as connection:
            return stored_version(connection) is not None
    finally:
        database.close()


def stored_version(connection: Connection) -> int | None:
    """Return the schema version of a location, `None` where nothing is stored yet."""
    names = inspect(connection).get_table_names()
    if not {tables.metadata.name, tables.threads.name} <= set(names):
        return None
    query = select(tables.metadata.c.value).where(tables.metadata.c.key == _VERSION_KEY)
    value = connection.execute(query).scalar()
    return None if value is None else int(value)


def _check_ours(connection: Connection, stored: int | None) -> None:
    if stored is None and inspect(connection).get_table_names():
        reason = "is another program's database; name another location"
        raise ConfigurationError("location", reason)


def _bring_up(connection: Connection, now_ms: int, codec: Codec | None) -> None:
    stored = stored_version(connection)
    if stored is None:
        _create_all(connection)
        facts = {_VERSION_KEY: str(SCHEMA_VERSION), "created_at": str(now_ms)}
        rows = [{"key": k, "value": v, "updated_at": now_ms} for k, v in facts.items()]
        connection.execute(insert(tables.metadata), rows)
        if codec is not None:
            make_seal(connection, codec, now_ms=now_ms)
        return
    _check_path(stored)  # another process may have migrated meanwhile, by a newer library
    for version in range(stored, SCHEMA_VERSION):
        STEPS[version](connection)
    connection.execute(
        update(tables.metadata)
        .where(tables.metadata.c.key == _VERSION_KEY)
        .values(value=str(SCHEMA_VERSION), updated_at=now_ms)
    )
    reach("migration.before_commit")


def _check_path(stored: int) -> None:
    if stored > SCHEMA_VERSION:
        reason = "it was written by a newer version; upgrade hiermem-core"
        raise MigrationError(stored=stored, supported=SCHEMA_VERSION, reason=reason)
    missing = [version for version in range(stored, SCHEMA_VERSION) if version not in STEPS]
    if missing:
        reason = "no migration from it is known; use the version that wrote it"
        raise MigrationError(stored=stored, supported=SCHEMA_VERSION, reason=reason)


def backup(database: Path | None, version: int) -> Path | None:
    """Copy a database file beside itself, as `<name>.schema-<version>`, and return the copy.

    Raises:
        BackendError: The copy cannot be written.
    """
    if database is None:
        return None
    target = database.with_name(f"{database.name}.schema-{version}")
    try:
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
    except sqlite3.Error as error:
        reason = f"{target.name} cannot be written; check the disk and open again"
        raise BackendError("backup", reason) from error
    return target
