"""Whether the keyword index works: a row that no tenant sees is written, found and removed."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from hiermem_core.backends.keywords import keyword_index, remove_keywords, rows_with
from hiermem_core.errors import BackendError
from hiermem_core.models.health import ComponentHealth

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database

_NOBODY = 0
"""No tenant has this number."""


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
    keyword_index(connection).add(connection, [(number, f"t{_NOBODY}", word)])
    is_found = rows_with(connection, _NOBODY, word, limit=1) == 1
    remove_keywords(connection, [number])
    return is_found
