"""Where recall finds rows: entries, and turns beside them where both are in one database."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.records import Scored
from hiermem_core.backends.turn_rows import facts_of, numbers_at
from hiermem_core.models.entries import MemoryEntry
from hiermem_core.models.metadata import copied
from hiermem_core.models.queries import Hit, TurnHit
from hiermem_core.ranking.scoring import Candidate, places_beside
from hiermem_core.recall.recalled_turns import recalled_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from hiermem_core.backends.records import Vector
    from hiermem_core.backends.restrictions import Scope
    from hiermem_core.protocols import Backend
    from hiermem_core.ranking.scoring import TurnFacts
    from hiermem_core.storage.database import Database

    HitMaker = Callable[[float, Mapping[str, Any]], Hit | TurnHit]

LEG = 200
"""Rows each leg gives to the ranking at least; more where more hits are asked for."""

_ENTRY_FIELDS = tuple(field.name for field in fields(MemoryEntry))


class EntrySource:
    """The entries of a backend within a scope.

    Args:
        limit: Hits that are asked for.

    Attributes:
        plan: How the rows were found, in words.
    """

    def __init__(self, backend: Backend, scope: Scope, *, limit: int = 0) -> None:
        self.plan = ""
        self._depth = max(LEG, limit)
        self._backend = backend
        self._scope = scope

    def has_rows(self) -> bool:
        """Tell whether there is a row in scope."""
        return self._backend.has_rows(self._scope)

    def candidates(self, question: str, vector: Vector | None) -> list[Candidate]:
        """Return the union of what both legs find, each with its cosine."""
        words = near = Scored()
        if "keyword" in self._backend.modes:
            words = self._backend.keyword(self._scope, question, limit=self._depth)
        if vector is not None:
            near = self._backend.nearest(self._scope, vector, limit=self._depth)
        self.plan = "; ".join(filter(None, (words.plan, near.plan)))
        values, cosines = dict(words.rows), dict(near.rows)
        missing = [number for number in values if number not in cosines]
        cosines |= self._cosines(vector, missing)
        return _joined(values, cosines, {})

    def makers(self, numbers: Collection[int]) -> dict[int, HitMaker]:
        """Return what makes the hit of each of these rows that is there."""
        with self._backend.read(self._scope.tenant, self._scope.now) as reader:
            found = reader.by_number(numbers)
        return {number: _entry_maker(kept.entry) for number, kept in found.items()}

    def _cosines(self, vector: Vector | None, numbers: Sequence[int]) -> Mapping[int, float]:
        if vector is None or not numbers:
            return {}
        return self._backend.cosines(self._scope, vector, numbers)


class RowSource(EntrySource):
    """Entries and turns of one database within a scope."""

    def __init__(
        self, backend: Backend, scope: Scope, database: Database, *, limit: int = 0
    ) -> None:
        super().__init__(backend, scope, limit=limit)
        self._database = database

    def candidates(self, question: str, vector: Vector | None) -> list[Candidate]:
        """Return what both legs find, and the turns beside the best of it."""
        found = super().candidates(question, vector)
        if not self._scope.has_turns:
            return found
        values = {one.number: one.bm25 for one in found}
        cosines = {one.number: one.cosine for one in found if one.cosine is not None}
        with self._database.read() as connection:
            facts = facts_of(connection, values)
            places = places_beside(_joined(values, cosines, facts))
            at = numbers_at(connection, places, self._scope.unseen_before)
            beside = [number for number in at if number not in values]
            facts |= facts_of(connection, beside)
        values |= dict.fromkeys(beside, 0.0)
        cosines |= self._cosines(vector, beside)
        return _joined(values, cosines, facts)

    def makers(self, numbers: Collection[int]) -> dict[int, HitMaker]:
        """Return what makes the hit of each of these rows that is there."""
        with self._database.read() as connection:
            turns = recalled_turns(connection, numbers)
        entries = super().makers([number for number in numbers if number not in turns])
        return entries | {number: turn_maker(turn) for number, turn in turns.items()}


def turn_maker(turn: Mapping[str, Any]) -> HitMaker:
    """Return what makes the hit of a recalled turn."""
    return lambda score, explanation: TurnHit(**turn, score=score, explanation=explanation)


def _entry_maker(entry: MemoryEntry) -> HitMaker:
    values = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
    values["metadata"] = copied(entry.metadata)
    return lambda score, explanation: Hit(**values, score=score, explanation=explanation)


def _joined(
    values: Mapping[int, float], cosines: Mapping[int, float], facts: Mapping[int, TurnFacts]
) -> list[Candidate]:
    numbers = dict.fromkeys([*cosines, *values])
    return [
        Candidate(number, values.get(number, 0.0), cosines.get(number), facts.get(number))
        for number in numbers
    ]
