"""Answering queries on the entries of one tenant."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from hiermem_core.backends.records import Scored
from hiermem_core.backends.restrictions import Scope
from hiermem_core.errors import (
    BackendError,
    IndexUnavailableError,
    InvalidInputError,
    UnsupportedSearchError,
)
from hiermem_core.models.entries import MemoryEntry
from hiermem_core.models.metadata import copied
from hiermem_core.models.namespaces import close_names
from hiermem_core.models.queries import EVERYWHERE, Hit, SearchResult
from hiermem_core.models.warnings import ContextWarning
from hiermem_core.ranking.scoring import Candidate, fuse_by_rank, rank
from hiermem_core.service.checking_vectors import checked_vector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from hiermem_core.backends.records import Kept, Vector
    from hiermem_core.backends.restrictions import Restrictions
    from hiermem_core.models.queries import MemoryQuery
    from hiermem_core.protocols import EntryReader
    from hiermem_core.service.collaborators import Collaborators

LEG = 200
"""Rows each leg of a hybrid search gives to the ranking; what lies beyond follows in leg order."""

_ENTRY_FIELDS = tuple(field.name for field in fields(MemoryEntry))
_NEVER = frozenset({"keyword", "semantic", "hybrid"})


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows with their scores, best first, and what explains them."""

    rows: Sequence[tuple[int, float]]
    terms: Mapping[int, Mapping[str, Any]]
    plan: str
    warnings: tuple[ContextWarning, ...] = ()


class EntrySearch:
    """Search the entries of a tenant."""

    def __init__(self, shared: Collaborators, tenant_id: str) -> None:
        self._backend = shared.backend
        self._vectoriser = shared.vectoriser
        self._tenant = tenant_id
        self._clock = shared.clock

    @property
    def modes(self) -> frozenset[str]:
        """The modes that can be asked for."""
        modes = set(self._backend.modes) | EVERYWHERE
        return frozenset(modes)

    def run(self, query: MemoryQuery, mode: str, restrictions: Restrictions) -> SearchResult:
        """Return the hits of a query in the mode that answers it."""
        now = self._clock.now()
        if _is_void(query, mode):
            result = SearchResult()
        elif mode in _NEVER:
            result = self._ranked_hits(query, mode, restrictions, now)
        else:
            result = self._listed_hits(query, _narrowed(restrictions, query, mode), now)
        return self._with_namespace_warning(result, restrictions, now)

    def mode_of(self, query: MemoryQuery) -> str:
        """Return the mode that answers a query: the one asked for, else the best there is.

        Raises:
            InvalidInputError: The mode compares a text, and there is none.
            UnsupportedSearchError: The backend has no index for it.
        """
        if query.mode is not None:
            self._check_mode(query)
            return query.mode
        if query.text is None and query.vector is None:
            return "listing"
        if query.text is None:
            query = replace(query, mode="semantic")
            self._check_mode(query)
            return "semantic"
        found = [mode for mode in ("hybrid", "semantic", "keyword") if self._has(mode, query)]
        if not found:
            self._refuse("semantic")
        return found[0]

    def _has(self, mode: str, query: MemoryQuery) -> bool:
        if mode not in self._backend.modes:
            return False
        return (
            mode == "keyword" or query.vector is not None or self._vectoriser.embedder is not None
        )

    def _check_mode(self, query: MemoryQuery) -> None:
        if query.mode in {"exact", "prefix"} and query.text is None:
            raise InvalidInputError(
                "text", f"is missing; {query.mode} search compares keys with it"
            )
        if query.mode in _NEVER and not self._has(str(query.mode), query):
            self._refuse(str(query.mode))

    def _refuse(self, mode: str) -> None:
        backend = self._backend
        if mode in backend.modes:
            remedy = 'give an embedder, or install "hiermem-core[embed]"'
        else:  # a hybrid backend lacks a mode where a codec encodes what is kept
            other = "" if backend.name == "hybrid" else 'backend="hybrid", or '
            remedy = f"use {other}one of the modes {', '.join(sorted(self.modes))}"
        raise UnsupportedSearchError(mode, backend.name, remedy)

    def _listed_hits(
        self, query: MemoryQuery, restrictions: Restrictions, now: datetime
    ) -> SearchResult:
        if (query.threshold or 0) > 1:
            return SearchResult()
        with self._backend.read(self._tenant, now) as reader:
            entries = reader.listed(restrictions, limit=query.limit, offset=query.offset)
            numbers = reader.by_id({e.id for e in entries}) if query.include_embedding else {}
            hits = [
                _hit(entry, 1.0, embedding_of(reader, numbers.get(entry.id)), {})
                for entry in entries
            ]
        return SearchResult(hits)

    def _ranked_hits(
        self, query: MemoryQuery, mode: str, restrictions: Restrictions, now: datetime
    ) -> SearchResult:
        scope = Scope(tenant=self._tenant, now=now, entries=restrictions)
        wanted = query.offset + query.limit
        if not wanted:
            return SearchResult()
        ranked = self._rank_again(query, mode, scope, wanted)
        rows = [row for row in ranked.rows if row[1] >= (query.threshold or 0)]
        with self._backend.read(self._tenant, now) as reader:
            page = _first_living(reader, rows, wanted, in_legs=mode != "keyword")[query.offset :]
            hits = [
                _hit(
                    one.entry,
                    score,
                    embedding_of(reader, one if query.include_embedding else None),
                    self._explanation(query, ranked, one.number),
                )
                for one, score in page
            ]
        return SearchResult(hits, warnings=ranked.warnings)

    def _explanation(self, query: MemoryQuery, ranked: Ranked, number: int) -> dict[str, Any]:
        if not query.explain:
            return {}
        return {**ranked.terms.get(number, {}), "plan": ranked.plan}

    def _rank_again(self, query: MemoryQuery, mode: str, scope: Scope, wanted: int) -> Ranked:
        """Rank, and once more where a reindex ended in between."""
        name = self._vectoriser.name
        with suppress(IndexUnavailableError):
            ranked = self._rank(query, mode, scope, wanted)
            if self._vectoriser.name == name:
                return ranked
        return self._rank(query, mode, scope, wanted)

    def _rank(self, query: MemoryQuery, mode: str, scope: Scope, wanted: int) -> Ranked:
        if mode == "keyword":
            found = self._backend.keyword(scope, query.text or "", limit=wanted)
            rows = [(number, value / (1 + value)) for number, value in found.rows]
            return Ranked(rows, {n: {"bm25": v} for n, v in found.rows}, found.plan)
        if mode == "semantic":
            found = self._backend.nearest(scope, self._vector(query), limit=wanted)
            rows = [(number, max(0.0, cosine)) for number, cosine in found.rows]
            return Ranked(rows, {n: {"cosine": c} for n, c in found.rows}, found.plan)
        return self._hybrid(query, scope, wanted)

    def _hybrid(self, query: MemoryQuery, scope: Scope, wanted: int) -> Ranked:
        depth = max(LEG, wanted)
        warnings: tuple[ContextWarning, ...] = ()
        words = self._backend.keyword(scope, query.text or "", limit=depth)
        try:
            vector = self._vector(query)
            near = self._backend.nearest(scope, vector, limit=depth)
        except BackendError as error:
            if query.vector is not None:
                raise
            warnings = (_weaker(error, is_degraded=self._vectoriser.is_degraded),)
            near, vector = Scored((), type(error).__name__), None
        plan = f"{words.plan}; {near.plan}"
        if query.fusion == "rrf":
            rows = fuse_by_rank([[n for n, _ in leg.rows[:LEG]] for leg in (words, near)])
            terms = _raw_terms(words, near)
        else:
            head = self._head(scope, vector, words, near, explain=query.explain)
            rows = [(one.number, one.score) for one in head]
            terms = {one.number: one.terms for one in head}
        seen = {number for number, _ in rows}
        beyond = [n for n, _ in (*near.rows[LEG:], *words.rows[LEG:]) if n not in seen]
        rows += [(number, 0.0) for number in dict.fromkeys(beyond)]
        return Ranked(rows, terms, plan, warnings)

    def _head(
        self, scope: Scope, vector: Vector | None, words: Scored, near: Scored, *, explain: bool
    ) -> Sequence[Any]:
        cosines = dict(near.rows[:LEG])
        values = dict(words.rows[:LEG])
        missing = [number for number in values if number not in cosines]
        if vector is not None and missing:
            cosines |= self._backend.cosines(scope, vector, missing)
        union = dict.fromkeys([*cosines, *values])
        candidates = [
            Candidate(number, values.get(number, 0.0), cosines.get(number), None)
            for number in union
        ]
        return rank(candidates, explain=explain)

    def _vector(self, query: MemoryQuery) -> Vector:
        if query.vector is not None:
            return checked_vector(query.vector, self._vectoriser.dimension)
        return self._vectoriser.question(query.text or "")

    def _with_namespace_warning(
        self, result: SearchResult, restrictions: Restrictions, now: datetime
    ) -> SearchResult:
        if result or restrictions.namespace is None:
            return result
        with self._backend.read(self._tenant, now) as reader:
            warnings = namespace_warnings(reader, restrictions.namespace)
        return SearchResult(result, warnings=(*result.warnings, *warnings))


def namespace_warnings(reader: EntryReader, namespace: str) -> tuple[ContextWarning, ...]:
    """Return the warning that a namespace holds no entry, with close names, if that is so."""
    if reader.namespaces(namespace, limit=1):
        return ()
    known = reader.namespaces(None, limit=10_000)
    close = close_names(namespace, known)
    return (ContextWarning("unknown_namespace", detail={"close": close}),)


def needs_vectors(query: MemoryQuery, mode: str) -> bool:
    """Tell whether stored vectors are compared to answer a query."""
    is_empty = query.limit == 0 or _is_void(query, mode)
    return mode in {"semantic", "hybrid"} and not is_empty


def _is_void(query: MemoryQuery, mode: str) -> bool:
    """Tell whether nothing can answer: a blank text, or two keys at once."""
    if mode == "exact":
        return query.key not in (None, query.text)
    return mode in _NEVER and query.vector is None and not (query.text or "").strip()


def _weaker(error: BackendError, *, is_degraded: bool) -> ContextWarning:
    facts = {"error": type(error).__name__}
    return ContextWarning(
        "index_rebuilding" if is_degraded else "semantic_unavailable", detail=facts
    )


def _narrowed(restrictions: Restrictions, query: MemoryQuery, mode: str) -> Restrictions:
    """Return the restrictions with what a mode asks of the key or tags."""
    text = query.text
    if mode == "exact":
        return replace(restrictions, key=text)
    if mode == "prefix":
        return replace(restrictions, key_prefix=text)
    if mode == "tag" and text is not None:
        return replace(restrictions, tags=(*restrictions.tags, text))
    return restrictions


def _first_living(
    reader: EntryReader, rows: Sequence[tuple[int, float]], wanted: int, *, in_legs: bool
) -> list[tuple[Kept, float]]:
    """Return the first hits in their total order; reads no more entries than that takes."""
    rows = sorted(rows, key=lambda row: -row[1])
    living: list[tuple[Kept, float]] = []
    start = 0
    while start < len(rows) and len(living) < wanted:
        end = min(len(rows), start + wanted - len(living))
        while end < len(rows) and rows[end][1] == rows[end - 1][1]:
            end += 1
        some = rows[start:end]
        kept = reader.by_number([number for number, _ in some])
        living += [(kept[number], score) for number, score in some if number in kept]
        start = end
    return _in_order(living, in_legs=in_legs)[:wanted]


def _in_order(living: list[tuple[Kept, float]], *, in_legs: bool) -> list[tuple[Kept, float]]:
    """Return hits in their total order: score, newest change, id.

    Args:
        in_legs: Those of score 0 lie beyond the ranking and stay in the order of the legs.
    """

    def order(one: tuple[Kept, float]) -> tuple[float, float, str]:
        kept, score = one
        if in_legs and not score:
            return (0.0, 0.0, "")
        return (-score, -kept.entry.updated_at.timestamp(), kept.entry.id)

    return sorted(living, key=order)


def _raw_terms(words: Scored, near: Scored) -> dict[int, dict[str, Any]]:
    terms: dict[int, dict[str, Any]] = {}
    for place, (number, value) in enumerate(words.rows, 1):
        terms.setdefault(number, {}).update(bm25=value, keyword_rank=place)
    for place, (number, cosine) in enumerate(near.rows, 1):
        terms.setdefault(number, {}).update(cosine=cosine, vector_rank=place)
    return terms


def embedding_of(reader: EntryReader, kept: Kept | None) -> Any:
    """Return the vector of an entry, or with passages their vectors; `None` without any."""
    vectors = [] if kept is None else reader.vectors_of(kept.number)
    if not vectors or kept is None:
        return None
    return vectors[0] if kept.entry.passages is None else tuple(vectors)


def _hit(entry: MemoryEntry, score: float, embedding: Any, explanation: Any) -> Hit:
    values = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
    values["metadata"] = copied(entry.metadata)
    values["embedding"] = embedding
    return Hit(**values, score=score, explanation=explanation)
