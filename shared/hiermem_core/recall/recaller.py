"""Recall: one ranking over the entries of a tenant and the turns of its threads."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.restrictions import Restrictions, Scope
from hiermem_core.backends.turn_rows import participants_of
from hiermem_core.errors import BackendError, HierMemError, InvalidInputError
from hiermem_core.models.events import SearchServed
from hiermem_core.models.queries import RecallResult, TurnHit
from hiermem_core.models.warnings import ContextWarning
from hiermem_core.ranking.questions import named_participant, without_names
from hiermem_core.ranking.scoring import Candidate, rank
from hiermem_core.recall.recalled_turns import turns_before
from hiermem_core.recall.sources import EntrySource, RowSource, turn_maker
from hiermem_core.service.checking import as_query, restrictions_of
from hiermem_core.service.searching import namespace_warnings
from hiermem_core.threads import reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hiermem_core.backends.records import Vector
    from hiermem_core.backends.sql import SqlBackend
    from hiermem_core.models.queries import Hit, RecallThreads
    from hiermem_core.models.text import TextCleaner
    from hiermem_core.ranking.scoring import Ranked
    from hiermem_core.recall.sources import HitMaker
    from hiermem_core.service.collaborators import Collaborators
    from hiermem_core.storage.database import Database

_COMMON_SHARE = 0.03
"""A capitalised word that stands in more of the rows says who is meant, not what about."""


RESTRICTIONS = frozenset(spec.name for spec in fields(Restrictions)) - {"key_prefix"}
"""What recall can be restricted by; all of it is said of entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be recalled.

    Attributes:
        thread_id: The thread that asks.
        threads: `"this"`: its turns; `"all"`: those of every thread; `None`: entries only.
        entries: Which entries; `None`: none.
        before_seq: Of the asking thread only turns before this seq, as the others are at hand.
        with_previous: After so many of the first turns found, the turn before it follows.
        degrades: An embedder that cannot be used is warned of, whatever is wrong with it.
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
    degrades: bool = False


def asked_of(
    tenant: str,
    question: str,
    *,
    threads: RecallThreads | None,
    thread_id: str | None = None,
    limit: int = 10,
    explain: bool = False,
    restrictions: Mapping[str, Any] | None = None,
    cleaner: TextCleaner | None = None,
) -> Asked:
    """Return what a caller asks to recall, checked.

    Args:
        restrictions: On entries, by the names of `MemoryQuery`.
        cleaner: Redacts the question, a key and tags.

    Raises:
        InvalidInputError: A name is unknown, or a value cannot be understood.
        LimitExceededError: The question or the limit is too large.
    """
    known = ("all", None) if thread_id is None else ("this", "all", None)
    if threads not in known:
        listed = ", ".join(repr(name) for name in known)
        raise InvalidInputError("threads", f"must be one of {listed}")
    given = dict(restrictions or {})
    unknown = sorted(set(given) - RESTRICTIONS)
    if unknown:
        raise InvalidInputError(unknown[0], "is no restriction of recall; leave it out")
    if given.get("user_id") is not None and threads is not None:
        raise InvalidInputError("user_id", "turns are not told apart by it; add threads=None")
    if not isinstance(question, str):
        raise InvalidInputError("question", "must be text")
    query = as_query(question, {"limit": limit, "explain": explain, **given}, cleaner)
    return Asked(
        tenant=tenant,
        question=query.text or "",
        thread_id=thread_id,
        threads=threads,
        entries=restrictions_of(query, cleaner),
        limit=query.limit,
        explain=query.explain,
    )


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
            EmbedderMismatchError: The location's vectors are by another embedder.
        """
        if not asked.question.strip() or not asked.limit:
            return RecallResult()
        self._shared.before_search(asked.tenant)
        scope = self._scope(asked)
        names = self._participants(scope)
        question = self._unnamed(asked.question, scope, names)
        vector, warnings = self._vector(question, degrades=asked.degrades)
        with self._database.read():
            sources = self._sources(scope, limit=asked.limit)
            found = self._found(asked, sources, question, vector, names)
            hits = self._with_previous(asked, found)
        warnings += self._namespace_warnings(asked, scope)
        mode = "keyword" if vector is None else "hybrid"
        self._shared.tell(SearchServed(asked.tenant, mode, len(hits)))
        return RecallResult(hits, warnings=warnings)

    def _namespace_warnings(self, asked: Asked, scope: Scope) -> tuple[ContextWarning, ...]:
        if asked.entries is None or asked.entries.namespace is None:
            return ()
        with self._shared.backend.read(asked.tenant, scope.now) as reader:
            return namespace_warnings(reader, asked.entries.namespace)

    def recall_beside(self, asked: Asked) -> RecallResult:
        """Return what `recall` does; embeds nothing where there is nothing to find."""
        return self.recall(asked) if self.has_anything(asked) else RecallResult()

    def has_anything(self, asked: Asked) -> bool:
        """Tell whether there is a row that could be found; embeds nothing."""
        return any(source.has_rows() for source in self._sources(self._scope(asked)))

    def _scope(self, asked: Asked) -> Scope:
        number = None
        if asked.thread_id is not None:
            with self._database.read() as connection:
                head = reading.head_of(connection, asked.tenant, asked.thread_id)
            number = None if head is None else head.number
        own = () if number is None else (number,)
        before = None
        if number is not None and asked.before_seq is not None:
            before = (number, asked.before_seq)
        return Scope(
            tenant=asked.tenant,
            now=self._shared.clock.now(),
            entries=asked.entries,
            threads={"all": None, "this": own, None: ()}[asked.threads],
            unseen_before=before,
        )

    def _sources(self, scope: Scope, *, limit: int = 0) -> list[EntrySource]:
        entries = self._shared.backend
        if entries is self._turns:
            return [RowSource(self._turns, scope, self._database, limit=limit)]
        turns = replace(scope, entries=None)
        return [
            EntrySource(entries, replace(scope, threads=(), unseen_before=None), limit=limit),
            RowSource(self._turns, turns, self._database, limit=limit),
        ]

    def _participants(self, scope: Scope) -> list[str]:
        if not scope.has_turns:
            return []
        with self._database.read() as connection:
            return participants_of(connection, scope.tenant, scope.threads)

    def _unnamed(self, question: str, scope: Scope, names: Sequence[str]) -> str:
        """Return the question without who is named: a name says who speaks, not about what."""
        if not scope.has_turns:
            return question
        is_common = self._turns.common_words(scope.tenant, _COMMON_SHARE)
        return without_names(question, participants=names, is_common=is_common)

    def _vector(
        self, question: str, *, degrades: bool
    ) -> tuple[Vector | None, tuple[ContextWarning, ...]]:
        modes = self._turns.modes
        if not self._shared.vectoriser.is_asked or "semantic" not in modes:
            facts = {"error": "no embedder"}
            without = (ContextWarning("semantic_unavailable", detail=facts),)
            return None, () if "keyword" in modes else without
        try:
            return self._shared.vectoriser.question(question), ()
        except HierMemError as error:
            if not (degrades or isinstance(error, BackendError)):
                raise
            facts = {"error": type(error).__name__}
            code = self._shared.vectoriser.weakness
            return None, (ContextWarning(code, detail=facts),)

    def _found(
        self,
        asked: Asked,
        sources: Sequence[EntrySource],
        question: str,
        vector: Vector | None,
        names: Sequence[str],
    ) -> list[Hit | TurnHit]:
        """Return the best rows of all sources, ranked together."""
        rows = [(s, one) for s in sources for one in s.candidates(question, vector)]
        candidates = [
            Candidate(place, one.bm25, one.cosine, one.turn) for place, (_, one) in enumerate(rows)
        ]
        named = named_participant(asked.question, names)
        best = rank(candidates, named=named, explain=asked.explain)[: asked.limit]
        makers: dict[int, HitMaker] = {}
        for source in sources:
            places = {
                rows[r.number][1].number: r.number for r in best if rows[r.number][0] is source
            }
            made = source.makers(places)
            makers |= {places[number]: maker for number, maker in made.items()}
        return [
            makers[one.number](one.score, _explanation(asked, one, rows[one.number][0].plan))
            for one in best
            if one.number in makers
        ]

    def _with_previous(self, asked: Asked, hits: Sequence[Hit | TurnHit]) -> list[Hit | TurnHit]:
        """Return the hits, each of the first turns followed by the turn before it."""
        if not asked.with_previous:
            return list(hits)
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
                result.append(turn_maker(previous)(hit.score, {}))
        return result


def _explanation(asked: Asked, one: Ranked, plan: str) -> dict[str, Any]:
    return {**one.terms, "plan": plan} if asked.explain else {}
