"""A location from before patterns, sessions and steps had tables."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from core.children import run_until_killed

from hiermem_core import HierMem
from hiermem_core.storage.migrations import SCHEMA_VERSION
from hiermem_core.tokens.counters import ApproximateCounter

OPEN_AND_DIE = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FaultPlan

with FaultPlan("migration.before_commit", action="kill"):
    HierMem.open(sys.argv[1], counter=ApproximateCounter())
"""


def opened(location):
    return HierMem.open(location, counter=ApproximateCounter(), local_embedder=False)


def schema_of(file):
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT value FROM metadata WHERE key = 'schema_version'"
        return int(connection.execute(query).fetchone()[0])


@pytest.fixture
def fourth_schema(tmp_path):
    """Give a location as the fourth schema left it."""
    with opened(tmp_path / "memory") as hiermem:
        hiermem.tenant("acme").remember("wait a while", namespace="patterns", key="retry")
    with closing(sqlite3.connect(tmp_path / "memory" / "memory.db")) as connection:
        for table in ("trajectories", "sessions", "patterns"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE metadata SET value = '4' WHERE key = 'schema_version'")
        connection.commit()
    return tmp_path / "memory"


def test_e15_the_fourth_schema_learns_patterns_and_logs_sessions(fourth_schema):
    with opened(fourth_schema) as hiermem:
        acme = hiermem.tenant("acme")

        assert acme.patterns.list() == acme.sessions() == []
        assert acme.patterns.learn("retry", {"then": "wait"}).confidence == 0.5
        assert acme.session("s1").log("look").step == 1
        assert acme.memory.stats().entries == 1
        assert hiermem.doctor().is_sound
    assert schema_of(fourth_schema / "memory.db") == SCHEMA_VERSION
    assert schema_of(fourth_schema / "memory.db.schema-4") == 4


def test_e15_the_fourth_schema_is_left_usable_by_a_kill_before_the_commit(fourth_schema):
    run_until_killed(OPEN_AND_DIE, fourth_schema)

    assert schema_of(fourth_schema / "memory.db") == 4
    with opened(fourth_schema) as hiermem:
        assert hiermem.tenant("acme").patterns.list() == []
