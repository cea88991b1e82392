"""What is kept of a tenant itself: its number, and the generation of its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from hiermem_core.storage.tables import tenants

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database

_T = tenants.c


def tenant_number(connection: Connection, tenant: str) -> int | None:
    """Return the number of a tenant; `None` where nothing of it was ever stored."""
    return connection.execute(select(_T.number).where(_T.tenant == tenant)).scalar()


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


def count_change(connection: Connection, tenant: str) -> None:
    """Say that the running transaction changes the tenant's entries."""
    changed = update(tenants).where(_T.tenant == tenant).values(generation=_T.generation + 1)
    connection.execute(changed)
