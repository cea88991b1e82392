"""The audit log: who did what to which ids, without content, in the transaction that does it."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from hiermem_core.errors import ClosedError, HierMemError
from hiermem_core.models.audit import AuditRecord
from hiermem_core.models.moments import from_milliseconds, to_milliseconds
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.operations import running
from hiermem_core.storage.audit_table import audit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from hiermem_core.operations import Operation
    from hiermem_core.protocols import Clock
    from hiermem_core.storage.database import Database

_A = audit.c

_logger = logging.getLogger(__name__)


class AuditLog:
    """Record operations; a `Watcher`.

    A write is recorded in each transaction that it commits, or by a row of its own where it changes
    nothing or fails.

    Args:
        with_reads: Record reads too.
    """

    def __init__(self, database: Database, clock: Clock, *, with_reads: bool) -> None:
        self._database = database
        self._clock = clock
        self._with_reads = with_reads

    @contextmanager
    def watching(self, operation: Operation) -> Iterator[None]:
        """Record the operation."""
        try:
            yield
        finally:
            self._end(operation)

    def before_commit(self, connection: Connection) -> None:
        """Record what the running operation has written in the running transaction."""
        operation = running()
        if operation is not None and operation.has_written:
            self._write(connection, operation, "ok")

    def _end(self, operation: Operation) -> None:
        failed = operation.error is not None and not isinstance(operation.error, ClosedError)
        is_recorded = operation.kind == "write" or self._with_reads
        if not failed and (operation.error or operation.rows or not is_recorded):
            return
        if failed:
            operation.ids.clear()
        outcome = type(operation.error).__name__ if failed else "ok"
        try:
            with self._database.write(operation.tenant_id) as connection:
                self._write(connection, operation, outcome)
        except HierMemError as error:
            _logger.warning("%s is not recorded: %s", operation.name, type(error).__name__)

    def _write(self, connection: Connection, operation: Operation, outcome: str) -> None:
        ids = list(dict.fromkeys(operation.ids))
        operation.ids.clear()
        operation.has_written = False
        operation.rows += 1
        row = {
            "at": to_milliseconds(self._clock.now()),
            "tenant": operation.tenant_id,
            "actor": operation.actor,
            "operation": operation.name,
            "thread_id": operation.thread_id,
            "ids": dump_json(ids),
            "touched": len(ids) if ids else _count_of(operation.result),
            "outcome": outcome,
        }
        connection.execute(insert(audit).values(row))


def _count_of(result: object) -> int:
    """Return how many things a read returned, or a write without a transaction of its own."""
    if isinstance(result, bool | int):
        return int(result)
    try:
        return len(result)  # type: ignore[arg-type]  # what has none is one thing, or nothing
    except TypeError:
        return int(result is not None)


def records_of(database: Database, tenant: str, *, after: int, limit: int) -> list[AuditRecord]:
    """Return what was recorded of a tenant, oldest first."""
    query = select(audit).where(_A.tenant == tenant, _A.number > after)
    with database.read() as connection:
        rows = connection.execute(query.order_by(_A.number).limit(limit)).all()
    return [
        AuditRecord(
            number=row.number,
            at=from_milliseconds(row.at),
            tenant_id=row.tenant,
            actor=row.actor,
            operation=row.operation,
            thread_id=row.thread_id,
            ids=tuple(load_json(row.ids)),
            count=row.touched,
            outcome=row.outcome,
        )
        for row in rows
    ]
