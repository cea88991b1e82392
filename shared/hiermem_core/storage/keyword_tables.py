"""The tables of the keyword index, which each engine has in its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
"""FTS5's tokenizer. The marks are part of words, as the vowel signs of Indic scripts are."""

_TOKENIZE = 'tokenize="{}"'.format(TOKENIZER.replace('"', '""'))

_FTS5 = (
    f"CREATE VIRTUAL TABLE IF NOT EXISTS keywords USING fts5(scope, body, {_TOKENIZE})",
    "INSERT INTO keywords(keywords, rank) VALUES ('rank', 'bm25(0.0, 1.0)')",
)
"""A row a searchable row, under its number: `scope` has no weight in its rank."""

_TSVECTOR = (
    """
    CREATE TABLE IF NOT EXISTS keywords (
        rowid bigint NOT NULL,
        part integer NOT NULL,
        tenant integer NOT NULL,
        length integer NOT NULL,
        body tsvector NOT NULL,
        PRIMARY KEY (rowid, part)
    )
    """,
    """
    CREATE INDEX IF NOT EXISTS keywords_by_word ON keywords USING gin (body)
        WITH (fastupdate = off)
    """,
    """
    CREATE TABLE IF NOT EXISTS keyword_counts (
        tenant integer PRIMARY KEY,
        rows bigint NOT NULL,
        length bigint NOT NULL
    )
    """,
)
"""A row a searchable row, or several for a very long one; and the rows and lengths of tenants."""

TERMS_INDEX = (
    f"CREATE VIRTUAL TABLE bodies USING fts5(body, content='', {_TOKENIZE})",
    "CREATE VIRTUAL TABLE instances USING fts5vocab('bodies', 'instance')",
)
"""An index without texts in SQLite that tells the terms of what goes through it."""


def create_keyword_tables(connection: Connection) -> None:
    """Create the tables, unless they are there."""
    for statement in _FTS5 if connection.dialect.name == "sqlite" else _TSVECTOR:
        connection.exec_driver_sql(statement)
