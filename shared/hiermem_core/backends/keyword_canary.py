"""Whether the keyword index works: a row that no tenant sees is written, found and removed."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from hiermem_core.backends.keywords import add_keywords, remove_keywords
from hiermem_core.errors import BackendError
from hiermem_core.models.health import ComponentHealth

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database

_FIND = "SELECT rowid FROM keywords WHERE keywords MATCH ?"


def keyword_health(database: Database) -> ComponentHealth:
    """Write, find and remove a keyword row of no tenant, in one transaction."""
    started = time.perf_counter()
    try:
        with database.write() as connection:
            message = "" if _passes(connection) else "the canary is not found; run a repair"
    except BackendError as error:
        message = str(error)
    latency = (time.perf_counter() - started) * 1000
    return ComponentHealth("unhealthy" if message else "healthy", latency, message)


def _passes(connection: Connection) -> bool:
    number = -1 - secrets.randbelow(1 << 62)  # rows of tenants have numbers above 0
    word = f"canary{secrets.token_hex(8)}"
    add_keywords(connection, [(number, word, word)])
    found = connection.exec_driver_sql(_FIND, (f'scope : "{word}" AND body : "{word}"',)).scalar()
    remove_keywords(connection, [number])
    return bool(found == number)
