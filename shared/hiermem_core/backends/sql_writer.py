"""Writing the entries of one tenant in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, select, tuple_, update

from hiermem_core.backends.keywords import add_keywords, entry_scope, remove_keywords
from hiermem_core.backends.pattern_rows import rewrite_pattern, write_patterns
from hiermem_core.backends.records import stored_bytes
from hiermem_core.backends.sql_reader import SqlReader
from hiermem_core.backends.sql_rows import NAMES, entry_row
from hiermem_core.backends.tenants import count_change, known_tenant
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.plain import dump_json, load_json
from hiermem_core.operations import touched
from hiermem_core.ranking.words import keyword_body
from hiermem_core.storage.database import slices
from hiermem_core.storage.inserting import insert_rows
from hiermem_core.storage.numbering import next_numbers
from hiermem_core.storage.sizes import entry_bytes, entry_row_bytes
from hiermem_core.storage.tables import entry_tags, memory_entries, searchable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from hiermem_core.backends.quotas import Gate
    from hiermem_core.backends.records import EntryWrite
    from hiermem_core.backends.vector_rows import VectorRows
    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.patterns import Pattern

_E = memory_entries.c
_T = entry_tags.c
_REFRESH = (
    update(memory_entries).where(_E.number == bindparam("row")).values(expires_at=bindparam("at"))
)


class SqlWriter(SqlReader):
    """Write entries; see `EntryWriter` for what each method promises.

    Args:
        vectors: Writes the vectors, and queues what is to be done about them.
        gate: Lets writes pass, or refuses them.
    """

    def __init__(self, *arguments: Any, vectors: VectorRows, gate: Gate, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._vectors = vectors
        self._gate = gate
        self._grown = 0
        self._larger = 0

    def admit(self, entry: MemoryEntry, old: MemoryEntry | None) -> None:
        """Count an entry that is to be put in place of another, if the quota has room for it."""
        if self._gate.is_shut:
            size = stored_bytes(entry) - (0 if old is None else stored_bytes(old))
            self._gate.admit(entries=int(old is None), size=size)

    def put(self, writes: Sequence[EntryWrite]) -> None:
        """Write entries and patterns; an expired one of the same id or key makes room."""
        if not writes:
            return
        number = known_tenant(self.connection, self.tenant)
        self._make_room([write.entry for write in writes])
        fresh = [write for write in writes if write.number is None]
        numbers = next_numbers(self.connection, searchable, len(fresh))
        inserted = dict(zip(numbers, fresh, strict=True))
        replaced = {write.number: write for write in writes if write.number is not None}
        self._replace(replaced)
        self._insert(inserted)
        written = inserted | replaced
        touched(write.entry.id for write in writes)
        self._tag(written)
        add_keywords(
            self.connection,
            [
                (row, entry_scope(number, write.entry.namespace), body_of(write.entry))
                for row, write in written.items()
            ],
        )
        write_patterns(self.connection, self.tenant, writes)
        self._vectors.renew(self.connection, self.tenant, written)
        self._gate.settle()
        self._count_change()

    def put_pattern(self, pattern: Pattern) -> None:
        """Write a pattern that is there anew; its entry stays as it is."""
        touched((pattern.id,))
        rewrite_pattern(self.connection, self.tenant, pattern)

    def remove(self, numbers: Collection[int]) -> None:
        """Remove rows with everything that hangs on them."""
        rows = list(numbers)
        if rows:
            self._erase(rows)
            self._count_change()

    def remove_expired(self, *, limit: int) -> tuple[int, int]:
        """Remove up to `limit` expired entries; return how many, and how many are left."""
        numbers = self.expired_numbers(limit=limit)
        self.remove(numbers)
        return len(numbers), self.expired_count()

    def refresh(self, moments: Mapping[int, datetime]) -> None:
        """Have rows expire at other moments; nothing else of them changes."""
        facts = [{"row": row, "at": to_milliseconds(moment)} for row, moment in moments.items()]
        if facts:
            touched(())
            self.connection.execute(_REFRESH, facts)
            count_change(self.connection, self.tenant)

    def rederive(self, sources: Mapping[int, tuple[str, ...]]) -> None:
        """Name other sources for rows, which are stale then; each entry's version grows."""
        for row, ids in sources.items():
            change = update(memory_entries).where(_E.number == row)
            self.connection.execute(
                change.values(
                    derived_from=dump_json(ids),
                    updated_at=to_milliseconds(self.now),
                    version=_E.version + 1,
                    is_stale=True,
                )
            )
        if sources:
            count_change(self.connection, self.tenant)

    def _count_change(self) -> None:
        grown, larger = self._grown, self._larger
        self._grown = self._larger = 0
        count_change(self.connection, self.tenant, entries=grown, size=larger)

    def _make_room(self, entries: Sequence[MemoryEntry]) -> None:
        if not self.expired_numbers(limit=1):
            return
        keys = [(entry.namespace, entry.key) for entry in entries if entry.key is not None]
        ids = [entry.id for entry in entries]
        for column, values in ((_E.id, ids), (tuple_(_E.namespace, _E.key), keys)):
            for some in slices(values):
                gone = select(_E.number).where(self.has_expired(), column.in_(some))
                self._erase(list(self.connection.execute(gone).scalars()))

    def _insert(self, rows: dict[int, EntryWrite]) -> None:
        self._grown += len(rows)
        numbered = ((row, self.tenant) for row in rows)
        insert_rows(self.connection, searchable, ("number", "tenant"), numbered)
        insert_rows(self.connection, memory_entries, NAMES, self._entry_rows(rows))

    def _replace(self, rows: dict[int, EntryWrite]) -> None:
        self._release(list(rows))
        remove_keywords(self.connection, rows)
        if len(rows) > 1:
            self._free_keys(list(rows))
        for row in self._entry_rows(rows):
            change = update(memory_entries).where(_E.number == row[0])
            self.connection.execute(change.values(dict(zip(NAMES, row, strict=True))))

    def _free_keys(self, numbers: Sequence[int]) -> None:
        """Take the keys from rows that are written anew, as they may pass them on to each other."""
        for some in slices(numbers):
            keyed = _E.number.in_(some) & _E.key.is_not(None)
            self.connection.execute(update(memory_entries).where(keyed).values(key=None))

    def _entry_rows(self, rows: dict[int, EntryWrite]) -> Iterable[tuple[Any, ...]]:
        for number, write in rows.items():
            row = entry_row(write.entry, tenant=self.tenant, number=number, digest=write.digest)
            self._larger += entry_row_bytes(row)
            yield row

    def _tag(self, rows: dict[int, EntryWrite]) -> None:
        tags = ((self.tenant, tag, row) for row, write in rows.items() for tag in write.entry.tags)
        insert_rows(self.connection, entry_tags, ("tenant", "tag", "entry"), tags)

    def _release(self, numbers: Sequence[int]) -> int:
        """Take the tags from rows that are to be written anew or removed, and their bytes off.

        Returns:
            How many of the rows there are.
        """
        count = 0
        for some in slices(numbers):
            query = select(_E.number, _E.id, _E.tags, entry_bytes).where(_E.number.in_(some))
            for row, name, tags, size in self.connection.execute(query).all():
                touched((name,))
                count += 1
                self._larger -= size
                if tags == "[]":
                    continue
                self.connection.execute(
                    delete(entry_tags).where(
                        _T.tenant == self.tenant, _T.tag.in_(load_json(tags)), _T.entry == row
                    )
                )
        return count

    def _erase(self, numbers: Sequence[int]) -> None:
        self._grown -= self._release(numbers)
        remove_keywords(self.connection, numbers)
        self._vectors.remove(self.connection, self.tenant, numbers)
        for some in slices(numbers):
            self.connection.execute(delete(searchable).where(searchable.c.number.in_(some)))


def body_of(entry: MemoryEntry) -> str:
    """Return what of an entry goes into the keyword index: its content and tags."""
    return keyword_body("\n".join([entry.content, *entry.tags]))
