"""Recall: one ranking over the entries of a tenant and the turns of its threads."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.questions import named_participant, without_names
from hiermem_core.backends.ranking import Candidate, places_beside, rank
from hiermem_core.backends.records import Scored
from hiermem_core.backends.restrictions import Restrictions, Scope
from hiermem_core.backends.turn_rows import (
    facts_of,
    numbers_at,
    participants_of,
)
from hiermem_core.errors import BackendError, ThreadNotFoundError
from hiermem_core.models.context import ContextWarning
from hiermem_core.models.entries import MemoryEntry
from hiermem_core.models.events import SearchServed
from hiermem_core.models.queries import Hit, RecallResult, TurnHit
from hiermem_core.recall.recalled_turns import recalled_turns, turns_before
from hiermem_core.threads import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from hiermem_core.backends.ranking import Place, Ranked, TurnFacts
    from hiermem_core.backends.records import Vector
    from hiermem_core.backends.sql import SqlBackend
    from hiermem_core.models.queries import RecallThreads
    from hiermem_core.protocols import Backend
    from hiermem_core.service.collaborators import Collaborators
    from hiermem_core.storage.database import Database

LEG = 200
"""Rows each leg gives to the ranking."""

_COMMON_SHARE = 0.03
_ENTRY_FIELDS = tuple(entry_field.name for entry_field in fields(MemoryEntry))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be recalled.

    Attributes:
        thread_id: The thread that asks.
        threads: `"this"`: its turns; `"all"`: those of every thread; `None`: entries only.
        entries: Which entries; `None`: none.
        before_seq: Of the asking thread only turns before this seq, as the others are at hand.
        with_previous: After so many of the first turns found, the turn before it follows.
    """

    tenant: str
    question: str
    thread_id: str | None = None
    threads: RecallThreads | None = "all"
    entries: Restrictions | None = field(default_factory=Restrictions)
    before_seq: int | None = None
    limit: int = 10
    with_previous: int = 0
    explain: bool = False


@dataclass(frozen=True, slots=True)
class _Source:
    """Where rows are found, and which of them."""

    backend: Backend
    scope: Scope


@dataclass(slots=True)
class _Found:
    """The rows both legs found in a source."""

    source: _Source
    values: dict[int, float]
    cosines: dict[int, float]
    plan: str


class Recaller:
    """Find what answers a question among entries and turns.

    Never calls a model but the embedder, and never writes a turn or an entry.

    Args:
        turns: Searches the turns, and the entries too where they are in the same database.
    """

    def __init__(self, shared: Collaborators, turns: SqlBackend, database: Database) -> None:
        self._shared = shared
        self._turns = turns
        self._database = database

    def recall(self, asked: Asked) -> RecallResult:
        """Return the hits, best first; empty for a blank question.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        if not asked.question.strip() or not asked.limit:
            return RecallResult()
        self._shared.before_search(asked.tenant)
        now = self._shared.clock.now()
        with self._database.read() as connection:
            threads, before = self._threads(connection, asked)
            has_turns = threads != ()
            names = participants_of(connection, asked.tenant, threads) if has_turns else []
        question = asked.question
        if has_turns:
            is_common = self._turns.common_words(asked.tenant, _COMMON_SHARE)
            question = without_names(question, participants=names, is_common=is_common)
        scope = Scope(
            tenant=asked.tenant,
            now=now,
            entries=asked.entries,
            threads=threads,
            unseen_before=before,
        )
        vector, warnings = self._vector(question)
        with self._database.read():
            found = [self._search(source, question, vector) for source in self._sources(scope)]
            named = named_participant(asked.question, names)
            hits = self._ranked(asked, found, vector, named, now)
        mode = "hybrid" if vector is not None else "keyword"
        self._shared.tell(SearchServed(asked.tenant, mode, len(hits)))
        return RecallResult(hits, warnings=warnings)

    def has_anything(self, asked: Asked) -> bool:
        """Tell whether there is a row that could be found; embeds nothing."""
        with self._database.read() as connection:
            threads, before = self._threads(connection, asked)
        scope = Scope(
            tenant=asked.tenant,
            now=self._shared.clock.now(),
            entries=asked.entries,
            threads=threads,
            unseen_before=before,
        )
        return any(source.backend.has_rows(source.scope) for source in self._sources(scope))

    def _threads(
        self, connection: Connection, asked: Asked
    ) -> tuple[tuple[int, ...] | None, tuple[int, int] | None]:
        number = None
        if asked.thread_id is not None:
            head = reading.head_of(connection, asked.tenant, asked.thread_id)
            if head is None and asked.threads == "this" and asked.entries is None:
                raise ThreadNotFoundError(asked.thread_id)
            number = None if head is None else head.number
        before = None
        if number is not None and asked.before_seq is not None:
            before = (number, asked.before_seq)
        if asked.threads == "all":
            return None, before
        if asked.threads == "this" and number is not None:
            return (number,), before
        return (), None

    def _sources(self, scope: Scope) -> list[_Source]:
        entries = self._shared.backend
        if entries is self._turns:
            return [_Source(self._turns, scope)]
        of_entries = replace(scope, threads=(), unseen_before=None)
        return [_Source(entries, of_entries), _Source(self._turns, replace(scope, entries=None))]

    def _vector(self, question: str) -> tuple[Vector | None, tuple[ContextWarning, ...]]:
        if not self._shared.vectoriser.is_asked or "semantic" not in self._turns.modes:
            return None, ()
        try:
            return self._shared.vectoriser.question(question), ()
        except BackendError as error:
            facts = {"error": type(error).__name__}
            code = self._shared.vectoriser.weakness
            return None, (ContextWarning(code, detail=facts),)

    def _search(self, source: _Source, question: str, vector: Vector | None) -> _Found:
        backend, scope = source.backend, source.scope
        words = near = Scored()
        if "keyword" in backend.modes:
            words = backend.keyword(scope, question, limit=LEG)
        if vector is not None:
            near = backend.nearest(scope, vector, limit=LEG)
        values, cosines = dict(words.rows), dict(near.rows)
        missing = [number for number in values if number not in cosines]
        if vector is not None and missing:
            cosines |= backend.cosines(scope, vector, missing)
        return _Found(source, values, cosines, "; ".join(filter(None, (words.plan, near.plan))))

    def _ranked(
        self,
        asked: Asked,
        found: Sequence[_Found],
        vector: Vector | None,
        named: str | None,
        now: datetime,
    ) -> list[Hit | TurnHit]:
        keys: list[tuple[int, int]] = []
        candidates: list[Candidate] = []
        for place, one in enumerate(found):
            facts = self._facts(one, vector)
            for number in dict.fromkeys([*one.cosines, *one.values]):
                candidates.append(
                    Candidate(
                        len(keys),
                        one.values.get(number, 0.0),
                        one.cosines.get(number),
                        facts.get(number),
                    )
                )
                keys.append((place, number))
        ranked = rank(candidates, named=named, explain=asked.explain)
        return self._materialised(asked, found, ranked, keys, now)

    def _facts(self, one: _Found, vector: Vector | None) -> Mapping[int, TurnFacts]:
        """Return the facts of the turns found, and take the turns beside the best ones in."""
        if one.source.backend is not self._turns or not one.source.scope.has_turns:
            return {}
        numbers = dict.fromkeys([*one.cosines, *one.values])
        with self._database.read() as connection:
            facts = facts_of(connection, numbers)
            known = [
                Candidate(n, one.values.get(n, 0.0), one.cosines.get(n), facts.get(n))
                for n in numbers
            ]
            beside = self._numbers_beside(connection, one, places_beside(known), numbers)
            facts |= facts_of(connection, beside)
        cosines: Mapping[int, float] = {}
        if vector is not None and beside:
            cosines = self._turns.cosines(one.source.scope, vector, beside)
        for number in beside:
            one.values.setdefault(number, 0.0)
        one.cosines |= cosines
        return facts

    def _numbers_beside(
        self,
        connection: Connection,
        one: _Found,
        places: Sequence[Place],
        numbers: Mapping[int, Any],
    ) -> list[int]:
        before = one.source.scope.unseen_before
        return [n for n in numbers_at(connection, places, before) if n not in numbers]

    def _materialised(
        self,
        asked: Asked,
        found: Sequence[_Found],
        ranked: Sequence[Ranked],
        keys: Sequence[tuple[int, int]],
        now: datetime,
    ) -> list[Hit | TurnHit]:
        """Return the first hits; a row that went away meanwhile makes room for the next."""
        hits: list[Hit | TurnHit] = []
        start = 0
        while len(hits) < asked.limit and start < len(ranked):
            some = ranked[start : start + asked.limit - len(hits)]
            start += len(some)
            hits += self._hits_of(asked, found, some, keys, now)
        if asked.with_previous:
            return self._with_previous(asked, hits)
        return hits

    def _hits_of(
        self,
        asked: Asked,
        found: Sequence[_Found],
        ranked: Sequence[Ranked],
        keys: Sequence[tuple[int, int]],
        now: datetime,
    ) -> list[Hit | TurnHit]:
        numbers: dict[int, list[int]] = {}
        for one in ranked:
            place, number = keys[one.number]
            numbers.setdefault(place, []).append(number)
        made: dict[tuple[int, int], Callable[..., Hit | TurnHit]] = {}
        for place, some in numbers.items():
            source = found[place].source
            with source.backend.read(asked.tenant, now) as reader:
                for number, kept in reader.by_number(some).items():
                    made[place, number] = _entry_maker(kept.entry)
            if source.backend is self._turns:
                with self._database.read() as connection:
                    for number, turn in recalled_turns(connection, some).items():
                        made[place, number] = _turn_maker(turn)
        return [
            made[key](one.score, _explanation(one, found[key[0]].plan) if asked.explain else {})
            for one in ranked
            if (key := keys[one.number]) in made
        ]

    def _with_previous(self, asked: Asked, hits: Sequence[Hit | TurnHit]) -> list[Hit | TurnHit]:
        """Return the hits, each of the first turns followed by the turn before it."""
        first = [hit for hit in hits if isinstance(hit, TurnHit)][: asked.with_previous]
        with self._database.read() as connection:
            before = turns_before(connection, asked.tenant, first)
        present = {(hit.thread_id, hit.seq) for hit in hits if isinstance(hit, TurnHit)}
        result: list[Hit | TurnHit] = []
        for hit in hits:
            result.append(hit)
            previous = before.get((hit.thread_id, hit.seq)) if isinstance(hit, TurnHit) else None
            if previous is not None and (previous["thread_id"], previous["seq"]) not in present:
                present.add((previous["thread_id"], previous["seq"]))
                result.append(_turn_maker(previous)(hit.score, {}))
        return result


def _entry_maker(entry: MemoryEntry) -> Callable[[float, Mapping[str, Any]], Hit]:
    values = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
    return lambda score, explanation: Hit(**values, score=score, explanation=explanation)


def _turn_maker(turn: Mapping[str, Any]) -> Callable[[float, Mapping[str, Any]], TurnHit]:
    return lambda score, explanation: TurnHit(**turn, score=score, explanation=explanation)


def _explanation(one: Ranked, plan: str) -> dict[str, Any]:
    return {**one.terms, "plan": plan}
