"""The keyword index of PostgreSQL: `tsvector`s of FTS5's terms, a GIN index, and BM25 from counts.

A vector's lexemes are the tokens of the row's scope, marked, and the terms of its body; how many
positions a term has says how often it stands there, up to 255, the most that PostgreSQL keeps. The
first letter of a pair of an unspaced script has a lexeme too, for questions of one letter. A
body of more terms than one vector holds has several. Rows and terms are counted per tenant, so
that no tenant shifts another's scores.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Double, bindparam, column, text

from hiermem_core.backends.fts5_terms import Fts5Terms
from hiermem_core.models.plain import dump_json
from hiermem_core.ranking.words import K1, LEAST_IDF, B, is_lone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from hiermem_core.storage.database import Database

_MARK = "/"
"""Begins a lexeme that is a token of a scope: no term has it."""

_BEGINNING = "^"
"""Begins a lexeme that stands for all terms which begin with the letter after it."""

_MOST_POSITIONS = 255
_MOST_BYTES = 400_000
"""Of one vector, of PostgreSQL's 1,048,575, since each lexeme has a head of its own."""

_LONGEST_TERM = 1_000
"""Bytes; PostgreSQL takes 2,046. A longer term stands as its digest, and is found all the same."""

_ADD = (
    "INSERT INTO keywords (rowid, part, tenant, length, body) VALUES (%s, %s, %s, %s, %s::tsvector)"
)
_REMOVE = "DELETE FROM keywords WHERE rowid = ANY(%s::bigint[]) RETURNING tenant, part, length"
_COUNT = (
    "INSERT INTO keyword_counts AS kept (tenant, rows, length) VALUES (%s, %s, %s)"
    " ON CONFLICT (tenant) DO UPDATE"
    " SET rows = kept.rows + excluded.rows, length = kept.length + excluded.length"
)
_RECOUNT = (
    "INSERT INTO keyword_counts (tenant, rows, length)"
    " SELECT tenant, count(*), sum(length) FROM keywords WHERE tenant = %s AND part = 0"
    " GROUP BY tenant"
)

_BEST = f"""
WITH kept AS (
    SELECT rows::float8, length::float8 / rows AS average
    FROM keyword_counts WHERE tenant = :of AND rows > 0
),
asked AS MATERIALIZED (
    SELECT one.lexeme, kept.average, greatest(
            {LEAST_IDF},
            ln((greatest(kept.rows, found.rows) - found.rows + 0.5) / (found.rows + 0.5))
        )::float8 AS idf
    FROM kept, jsonb_to_recordset(CAST(:terms AS jsonb)) AS one(lexeme text, query text), LATERAL (
        SELECT count(*)::float8 AS rows FROM keywords WHERE body @@ one.query::tsquery
    ) AS found
),
occurring AS (
    SELECT keywords.rowid, asked.idf, cardinality(word.positions)::float8 AS times,
        {K1}::float8 * ({1 - B}::float8 + {B}::float8 * keywords.length / asked.average) AS norm
    FROM keywords, LATERAL unnest(keywords.body) AS word, asked
    WHERE keywords.body @@ CAST(:expression AS tsquery) AND word.lexeme = asked.lexeme
)
SELECT rowid AS number, sum(idf * times * {K1 + 1}::float8 / (times + norm)) AS value
FROM occurring GROUP BY rowid ORDER BY value DESC, number LIMIT :size
"""  # noqa: S608 - constants

_MATCHES = text(
    "SELECT count(*) FROM (SELECT DISTINCT rowid FROM keywords"
    " WHERE body @@ CAST(:expression AS tsquery) LIMIT :size) AS found"
)

_terms = Fts5Terms()


class TsvectorKeywords:
    """Words in `tsvector`s; see `KeywordIndex`."""

    engine = "PostgreSQL tsvector, BM25"
    is_faster_unscoped = False
    best = (
        text(_BEST)
        .bindparams(*map(bindparam, ("terms", "of", "expression", "size")))
        .columns(column("number", BigInteger), column("value", Double))
        .subquery()
    )

    def add(self, connection: Connection, rows: Sequence[tuple[int, str, str]]) -> None:
        """Add rows: number, scope and body."""
        made: list[tuple[int, int, int, int, str]] = []
        counted: dict[int, list[int]] = {}
        all_terms = _terms.of(body for _, _, body in rows)
        for (number, scope, _), terms in zip(rows, all_terms, strict=True):
            tokens = scope.split()
            tenant, length = int(tokens[0][1:]), len(tokens) + terms.total()
            counted.setdefault(tenant, []).append(length)
            vectors = enumerate(_vectors(tokens, terms))
            made += ((number, part, tenant, length, vector) for part, vector in vectors)
        if made:
            connection.exec_driver_sql(_ADD, made)
        for tenant, lengths in counted.items():
            connection.exec_driver_sql(_COUNT, (tenant, len(lengths), sum(lengths)))

    def remove(self, connection: Connection, numbers: Sequence[int]) -> None:
        """Remove rows; what is not there is skipped."""
        gone: dict[int, list[int]] = {}
        for tenant, part, length in connection.exec_driver_sql(_REMOVE, (list(numbers),)):
            if part == 0:
                gone.setdefault(tenant, []).append(length)
        for tenant, lengths in sorted(gone.items()):
            connection.exec_driver_sql(_COUNT, (tenant, -len(lengths), -sum(lengths)))

    def asked(
        self, words: Sequence[str], *, tenant: int, scope: Sequence[str] | None
    ) -> Mapping[str, Any] | None:
        """Return the terms, and the query for rows with one of them and of the scope's tokens."""
        ours = _quoted(f"{_MARK}t{tenant}")
        found = [
            _term(word, terms, ours)
            for word, terms in zip(words, _terms.of(words), strict=True)
            if terms
        ]
        if not found or scope == []:
            return None
        either = ours if scope is None else " | ".join(_quoted(_MARK + token) for token in scope)
        any_word = " | ".join(f"({one['query']})" for one in found)
        expression = f"({either}) & ({any_word})"
        return {"terms": dump_json(found), "of": tenant, "expression": expression}

    def count(self, connection: Connection, asked: Mapping[str, Any], *, limit: int) -> int:
        """Return how many rows match, counted up to a limit."""
        facts = {"expression": asked["expression"], "size": limit}
        count: int = connection.execute(_MATCHES, facts).scalar_one()
        return count

    def recount(self, connection: Connection, tenant: int) -> None:
        """Count a tenant's rows anew."""
        connection.exec_driver_sql("DELETE FROM keyword_counts WHERE tenant = %s", (tenant,))
        connection.exec_driver_sql(_RECOUNT, (tenant,))

    def shed_removed(self, database: Database) -> None:
        """Do nothing: the index is cleaned with its table."""


def _term(word: str, terms: Counter[str], ours: str) -> dict[str, str]:
    """Return a word of a question as the statement takes it.

    Args:
        terms: Of the word: one, or more where it holds an enclosing mark, of which all must be
            there.
        ours: The token of the tenant whose rows are counted.
    """
    lexemes = [_BEGINNING + word] if is_lone(word) else sorted(map(_lexeme, terms))
    query = " & ".join(map(_quoted, lexemes))
    return {"lexeme": lexemes[0], "query": f"{ours} & {query}"}


def _vectors(tokens: Sequence[str], counts: Counter[str]) -> Iterator[str]:
    """Yield the vectors of a row: each has the tokens, and as many of the terms as it holds."""
    head = [_quoted(_MARK + token) for token in tokens]
    lexemes, size = list(head), 0
    beginnings = Counter[str]()
    for term, times in counts.items():
        if is_lone(term[0]):
            beginnings[_BEGINNING + term[0]] += times
    for term, times in (counts + beginnings).items():
        lexeme = _quoted(_lexeme(term))
        positions = range(1, min(times, _MOST_POSITIONS) + 1)
        cost = len(lexeme.encode()) + 2 * len(positions) + 8
        if size + cost > _MOST_BYTES:
            yield " ".join(lexemes)
            lexemes, size = list(head), 0
        size += cost
        lexemes.append(f"{lexeme}:{','.join(map(str, positions))}")
    yield " ".join(lexemes)


def _lexeme(term: str) -> str:
    encoded = term.encode()
    return term if len(encoded) <= _LONGEST_TERM else hashlib.sha256(encoded).hexdigest()


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"
