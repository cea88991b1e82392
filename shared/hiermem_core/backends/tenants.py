"""What is kept of a tenant itself: its number, the generations of what it has, how much it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, insert, select, update

from hiermem_core.models.quotas import Usage
from hiermem_core.storage.prepared import Prepared
from hiermem_core.storage.tables import tenants

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database

_T = tenants.c
_is_it = _T.tenant == bindparam("of")
_number = Prepared(select(_T.number).where(_is_it))
_count = Prepared(
    update(tenants)
    .where(_is_it)
    .values(
        generation=_T.generation + 1,
        entries=_T.entries + bindparam("more"),
        bytes=_T.bytes + bindparam("size"),
    )
)
_count_bytes = Prepared(update(tenants).where(_is_it).values(bytes=_T.bytes + bindparam("size")))
_count_writes = (
    update(tenants)
    .where(_is_it)
    .values(minute_ms=bindparam("minute"), minute_writes=bindparam("writes"))
)
_usage = (
    select(_T.entries, _T.bytes, _T.minute_ms, _T.minute_writes).where(_is_it).with_for_update()
)
_count_turns = Prepared(
    update(tenants)
    .where(_is_it)
    .values(turn_generation=_T.turn_generation + 1)
    .returning(_T.number)
)


def tenant_number(connection: Connection, tenant: str) -> int | None:
    """Return the number of a tenant; `None` where nothing of it was ever stored."""
    return _number.run(connection, {"of": tenant}).scalar()


def known_tenant(connection: Connection, tenant: str) -> int:
    """Return the number of a tenant, which is given one at its first write."""
    number = tenant_number(connection, tenant)
    if number is None:
        row = {"tenant": tenant, "generation": 0, "is_indexed": False}
        connection.execute(insert(tenants).values(row))
        number = tenant_number(connection, tenant)
    if number is None:
        raise AssertionError("a tenant just written has a number")
    return number


def generation_of(database: Database, tenant: str) -> int:
    """Return how often the tenant's entries were changed, by whomever."""
    return database.fact("SELECT generation FROM tenants WHERE tenant = ?", (tenant,)) or 0


def turn_generation_of(database: Database, tenant: str) -> int:
    """Return how often the turns that are searched of a tenant were changed, by whomever."""
    return database.fact("SELECT turn_generation FROM tenants WHERE tenant = ?", (tenant,)) or 0


def count_turn_change(connection: Connection, tenant: str) -> int:
    """Say that the running transaction changes turns that are searched of the tenant.

    Returns:
        The tenant's number.
    """
    found = _count_turns.run(connection, {"of": tenant}).scalar()
    return known_tenant(connection, tenant) if found is None else int(found)


def count_change(connection: Connection, tenant: str, *, entries: int = 0, size: int = 0) -> None:
    """Say that the running transaction changes the tenant's entries.

    Args:
        entries: So many there are more.
        size: So many bytes they are larger.
    """
    _count.run(connection, {"of": tenant, "more": entries, "size": size})


def count_bytes(connection: Connection, tenant: str, size: int) -> None:
    """Say that the tenant's turns are so many bytes larger."""
    facts = {"of": tenant, "size": size}
    if size and not _count_bytes.run(connection, facts).rowcount:
        known_tenant(connection, tenant)
        _count_bytes.run(connection, facts)


def usage_of(connection: Connection, tenant: str) -> Usage:
    """Return what a tenant keeps, expired entries included; no other writer counts meanwhile."""
    found = connection.execute(_usage, {"of": tenant}).first()
    return Usage() if found is None else Usage(*found)


def count_writes(connection: Connection, tenant: str, usage: Usage) -> None:
    """Note how many writes were made in the minute."""
    known_tenant(connection, tenant)
    facts = {"of": tenant, "minute": usage.minute_ms, "writes": usage.writes}
    connection.execute(_count_writes, facts)
