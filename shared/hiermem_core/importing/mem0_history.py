"""The format `mem0/history`: what became of each memory, and the newest messages.

The last event of a memory decides. Its entry has the id it has in an export.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.importing.mem0_export import FORMAT as EXPORT
from hiermem_core.importing.mem0_export import NAMESPACE
from hiermem_core.importing.messages import Place, read_message
from hiermem_core.importing.reading import Facts, entry_record, read_each
from hiermem_core.importing.records import SQLITE, skipped
from hiermem_core.importing.times import moment_of
from hiermem_core.importing.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

FORMAT = "mem0/history"

COLUMNS = frozenset({"memory_id", "old_memory", "new_memory", "event"})
MESSAGE_COLUMNS = frozenset({"session_scope", "role", "content"})

_DELETE = "DELETE"


def read_history(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield a record for each memory, by its last event.

    Raises:
        InvalidInputError: It is not said that all users are of the tenant.
    """
    if not reading.all_users:
        reason = "a history names no users; if all its memories are of this tenant: --all-users"
        raise InvalidInputError("source", reason)
    lasts: dict[Any, tuple[str, Row]] = {}
    firsts: dict[Any, Row] = {}
    for position, row in rows:
        name = row.raw("memory_id") or position
        lasts[name] = (position, row)
        firsts.setdefault(name, row)

    def read(row: Row) -> Record:
        name = row.needed("memory_id")
        if (row.text("event") or "").upper() == _DELETE or row.get("is_deleted"):
            return skipped(name, "deleted")
        facts = Facts(
            format=FORMAT,
            id_format=EXPORT,
            value=Value(row.given("new_memory")),
            namespace=NAMESPACE,
            id=name,
            created_at=moment_of(firsts[row.raw("memory_id")].get("created_at")),
            updated_at=moment_of(row.get("updated_at")),
            fields={field: row.text(field) for field in ("actor_id", "role")},
            precedence=SQLITE,
        )
        return entry_record(facts, reading)

    yield from read_each(lasts.values(), read)


def read_messages(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the messages, a thread a scope."""
    counts: dict[str, int] = {}

    def read(numbered: tuple[str, Row]) -> Record:
        position, row = numbered
        names = ("id", "role", "content", "name", "created_at")
        message = {name: row.get(name) for name in names}
        thread = reading.thread or row.needed("session_scope")
        counts[thread] = counts.get(thread, -1) + 1
        return read_message(message, Place(FORMAT, thread, counts[thread], position))

    yield from read_each(rows, read, kind="turn", named=True)
