"""A location of the schema in which a row had one vector."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.storage import migrations
from hiermem_core.testing import FakeEmbedder

LATER_COLUMNS = {
    "memory_entries": ["passages"],
    "threads": ["answered_seq"],
    "notes": ["reset_seq", "failures", "failed_seq"],
}

ONE_VECTOR_A_ROW = """
    CREATE TABLE old (
        number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL,
        "row" INTEGER NOT NULL REFERENCES searchable (number) ON DELETE CASCADE,
        embedder TEXT NOT NULL, dimension INTEGER NOT NULL, embedding BLOB NOT NULL,
        norm DOUBLE NOT NULL, is_whole BOOLEAN NOT NULL, UNIQUE ("row", embedder));
    INSERT INTO old SELECT
        number, tenant, "row", embedder, dimension, embedding, norm, is_whole FROM vectors;
    DROP TABLE vectors;
    ALTER TABLE old RENAME TO vectors;
    UPDATE sqlite_sequence SET seq = 3 WHERE name = 'vectors';
    CREATE INDEX vectors_by_tenant ON vectors (tenant, embedder, number);
    UPDATE metadata SET value = '2' WHERE key = 'schema_version';
"""


def opened(location):
    return HierMem.open(location, counter=ApproximateCounter(), embedder=FakeEmbedder())


@pytest.fixture
def location(tmp_path):
    """Give a location of the second schema: two entries with vectors, one was deleted."""
    with opened(tmp_path / "memory") as hiermem:
        memory = hiermem.tenant("acme").memory
        for name in ("pears", "apples", "plums"):
            memory.store(name, id=name)
        memory.delete("plums")
    with closing(sqlite3.connect(tmp_path / "memory" / "memory.db")) as connection:
        for table, columns in LATER_COLUMNS.items():
            known = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            for column in known & set(columns):
                connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.executescript(ONE_VECTOR_A_ROW)
    return tmp_path / "memory"


def test_e15_its_vectors_are_there_and_entries_may_have_passages(location):
    with opened(location) as hiermem:
        memory = hiermem.tenant("acme").memory

        assert memory.search_semantic("pears", 1)[0].id == "pears"
        basket = memory.store("a basket", passages=["figs", "dates"])
        assert memory.search_semantic("dates", 1)[0].id == basket
        assert memory.stats().index.indexed == 3
        assert hiermem.doctor().is_sound
    with closing(sqlite3.connect(location / "memory.db")) as connection:
        (version,) = connection.execute(
            "SELECT value FROM metadata WHERE key = 'schema_version'"
        ).fetchone()
    assert int(version) == migrations.SCHEMA_VERSION


def test_no_number_of_a_vector_is_used_again(location):
    with opened(location) as hiermem:
        hiermem.tenant("acme").memory.store("figs")
    with closing(sqlite3.connect(location / "memory.db")) as connection:
        numbers = [row[0] for row in connection.execute("SELECT number FROM vectors ORDER BY 1")]

    assert numbers == [1, 2, 4]
