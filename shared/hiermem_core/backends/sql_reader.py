"""The living entries of one tenant in one snapshot of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import func, select

from hiermem_core.backends.pattern_rows import (
    COLUMNS,
    pattern_count,
    pattern_of,
)
from hiermem_core.backends.records import Derivation
from hiermem_core.backends.restrictions import Scope
from hiermem_core.backends.sql_kept import (
    EXPIRED,
    KEPT_BY_DIGEST,
    KEPT_BY_ID,
    KEPT_BY_KEY,
    KEPT_BY_NUMBER,
)
from hiermem_core.backends.sql_restrictions import (
    facts_of,
    in_namespace,
    listing,
    living,
    within,
)
from hiermem_core.backends.sql_rows import entry_of, kept_of
from hiermem_core.backends.turn_rows import roles_of_turns
from hiermem_core.models.moments import to_milliseconds
from hiermem_core.models.plain import load_json
from hiermem_core.storage.database import slices
from hiermem_core.storage.given import as_given
from hiermem_core.storage.run_tables import patterns
from hiermem_core.storage.sealing import seal_of
from hiermem_core.storage.tables import is_derived, memory_entries, vectors

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Row, Select

    from hiermem_core.backends.records import Kept
    from hiermem_core.backends.restrictions import Restrictions
    from hiermem_core.backends.sql_filters import Fields
    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.patterns import Pattern

_E, _P, _V = memory_entries.c, patterns.c, vectors.c


class SqlReader:
    """Read entries; see `EntryReader` for what each method promises.

    Args:
        embedder: The name of the embedder whose vectors count.
        fields: The metadata fields of the database.
    """

    def __init__(
        self,
        connection: Connection,
        tenant: str,
        now: datetime,
        *,
        embedder: str,
        fields: Fields,
    ) -> None:
        self.connection = connection
        self.tenant = tenant
        self.now = now
        self._embedder = embedder
        self._fields = fields

    def by_id(self, ids: Collection[str]) -> Mapping[str, Kept]:
        """Return those that exist."""
        return {kept.entry.id: kept for kept in map(kept_of, self._found(KEPT_BY_ID, ids))}

    def by_key(self, keys: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Kept]:
        """Return those that exist, by namespace and key."""
        found = map(kept_of, self._found(KEPT_BY_KEY, keys))
        return {(kept.entry.namespace, kept.entry.key or ""): kept for kept in found}

    def by_digest(self, digests: Collection[str]) -> Mapping[str, Kept]:
        """Return for each digest the first entry that bears it."""
        seal = seal_of(self.connection.dialect)
        stored = {digest if seal is None else seal.blinded(digest): digest for digest in digests}
        result: dict[str, Kept] = {}
        for row in self._found(KEPT_BY_DIGEST, stored):
            result.setdefault(stored[row[-1]], kept_of(row[:-1]))
        return result

    def by_number(self, numbers: Collection[int]) -> Mapping[int, Kept]:
        """Return those that exist, by row number."""
        return {kept.number: kept for kept in map(kept_of, self._found(KEPT_BY_NUMBER, numbers))}

    def listed(
        self, restrictions: Restrictions, *, limit: int, offset: int = 0
    ) -> list[MemoryEntry]:
        """Return the entries within, newest change first, then by id."""
        scope = Scope(tenant=self.tenant, now=self.now, entries=restrictions)
        query = listing(restrictions, fields=self._fields)
        facts = facts_of(scope) | {"limit": limit, "offset": offset}
        return [entry_of(row) for row in self.connection.execute(query, facts).all()]

    def namespaces(self, under: str | None, *, limit: int, offset: int = 0) -> list[str]:
        """Return, sorted, the namespaces at or below `under` that hold an entry."""
        query = select(_E.namespace).distinct().where(_E.tenant == self.tenant, living(self.now))
        if under is not None:
            query = query.where(in_namespace(under, subtree=True))
        page = query.order_by(_E.namespace).limit(limit).offset(offset)
        return list(self.connection.execute(page).scalars())

    def vectors_of(self, number: int) -> list[tuple[float, ...]]:
        """Return the vectors of a row, as given."""
        query = select(_V.embedding).where(_V.row == number, _V.embedder == self._embedder)
        stored = self.connection.execute(query.order_by(_V.part)).scalars()
        return [tuple(np.frombuffer(one, "<f4").tolist()) for one in stored]

    def patterns(self, ids: Collection[str]) -> Mapping[str, Pattern]:
        """Return by id the patterns of living entries that are the text of one."""
        found: dict[str, Pattern] = {}
        for some in slices(list(ids)):
            rows = self.connection.execute(self._patterns().where(_P.id.in_(some)))
            found |= {row.id: pattern_of(row) for row in rows}
        return found

    def listed_patterns(self, *, min_confidence: float, limit: int) -> list[Pattern]:
        """Return the patterns of living entries, the most confident first, then by name."""
        sure = self._patterns().where(_P.confidence >= min_confidence)
        query = sure.order_by(_P.confidence.desc(), _P.name).limit(limit)
        return [pattern_of(row) for row in self.connection.execute(query)]

    def pattern_count(self) -> int:
        """Return how many patterns are kept, those of expired entries too."""
        return pattern_count(self.connection, self.tenant)

    def traces(
        self, restrictions: Restrictions, ids: Collection[str] | None = None
    ) -> dict[int, str]:
        """Return row number and id of all entries within, expired ones too."""
        query = select(_E.number, _E.id).where(
            _E.tenant == self.tenant, within(restrictions, self.tenant, fields=self._fields)
        )
        if ids is None:
            return dict(self.connection.execute(query).all())
        found: dict[int, str] = {}
        for some in slices(list(ids)):
            rows = self.connection.execute(query.where(_E.id.in_(some)))
            found |= dict(rows.all())
        return found

    def derivations(self) -> dict[str, Derivation]:
        """Return by id how each entry was derived that was, expired ones too."""
        query = select(_E.id, _E.number, _E.derived_from).where(
            _E.tenant == self.tenant, is_derived
        )
        return {
            name: Derivation(number, tuple(load_json(sources)))
            for name, number, sources in self.connection.execute(query)
        }

    def turn_roles(self, ids: Collection[str]) -> dict[str, str]:
        """Return the roles of those of the tenant's active turns that have these ids."""
        return roles_of_turns(self.connection, self.tenant, ids)

    def vector_count(self) -> int:
        """Return how many vectors are kept, of entries and turns, by whatever embedder."""
        query = select(func.count()).select_from(vectors).where(_V.tenant == self.tenant)
        return self.connection.execute(query).scalar_one()

    def expired_numbers(self, *, limit: int) -> list[int]:
        """Return row numbers of entries that expired and are not purged."""
        facts = {"tenant": self.tenant, "now_ms": to_milliseconds(self.now), "limit": limit}
        return list(self.connection.execute(EXPIRED, facts).scalars())

    def expired_count(self) -> int:
        """Return how many entries expired and are not purged."""
        query = select(func.count()).select_from(memory_entries).where(self.has_expired())
        return self.connection.execute(query).scalar_one()

    def has_expired(self) -> ColumnElement[bool]:
        """Return the condition that an entry of the tenant has expired."""
        return (_E.tenant == self.tenant) & (_E.expires_at <= to_milliseconds(self.now))

    def _patterns(self) -> Select[Any]:
        """Return the query of the tenant's patterns whose entry lives."""
        is_its = (_E.tenant == _P.tenant) & (_E.id == _P.id)
        found = select(*COLUMNS).join(memory_entries, is_its)
        return found.where(_P.tenant == self.tenant, living(self.now))

    def _found(self, query: Select[Any], names: Collection[Any]) -> Sequence[Row[Any]]:
        facts = {
            "tenant": self.tenant,
            "now_ms": to_milliseconds(self.now),
            "embedder": self._embedder,
            "names": as_given(names),
        }
        return self.connection.execute(query, facts).all()
