"""Turns of an older schema, and turns that recall did not list."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from core.children import run_until_killed

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder, FaultPlan, InjectedFault
from hiermem_core.testing.contracts.samples import asked_and_answered, said

SECONDS = 60
TABLES = ("keywords", "outbox", "vectors", "entry_tags", "memory_entries")
TABLES += ("participants", "searchable", "tenants")

COUNTS = {"t1": 600, "t2": 20}
"""Exchanges of each thread; more turns than are listed in one transaction, and fewer."""

OPEN_AND_DIE = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder, FaultPlan
with FaultPlan("rows.before_commit", action="kill", count=int(sys.argv[2])):
    HierMem.open(sys.argv[1], embedder=FakeEmbedder(32), counter=ApproximateCounter())
"""


def opened(location, **options):
    given = {"embedder": FakeEmbedder(32), "counter": ApproximateCounter()}
    return HierMem.open(location, **given | options)


@pytest.fixture
def old(tmp_path):
    """Give a location of the first schema with turns in two tenants."""
    location = tmp_path / "memory"
    with opened(location) as hiermem:
        for tenant in ("acme", "other"):
            for thread, count in COUNTS.items():
                turns = asked_and_answered(f"{tenant} {thread} {n}" for n in range(count))
                hiermem.tenant(tenant).thread(thread).append(turns)
        hiermem.tenant("acme").thread("t1").append([{"role": "system", "content": "be brief"}])
        hiermem.tenant("acme").thread("t1").append([{"role": "user", "content": "  "}])
    with closing(sqlite3.connect(location / "memory.db")) as connection, connection:
        for table in TABLES:
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE metadata SET value = '1' WHERE key = 'schema_version'")
        connection.execute("DELETE FROM metadata WHERE key LIKE 'embedder%'")
    return location


def assert_listed(hiermem):
    report = hiermem.doctor()
    assert report.unlisted == 0
    assert report.is_sound
    for tenant in ("acme", "other"):
        memory = hiermem.tenant(tenant).memory
        assert memory.wait_for_index(SECONDS)
        assert memory.stats().index.indexed == 2 * sum(COUNTS.values())
        hits = hiermem.tenant(tenant).recall(f"{tenant} t1 533", limit=2)
        assert {hit.content for hit in hits} == {f"{tenant} t1 533?", f"{tenant} t1 533!"}


def test_turns_of_an_older_schema_are_listed_when_it_is_opened(old):
    with opened(old) as hiermem:
        assert_listed(hiermem)
    with opened(old) as hiermem:
        assert not hiermem._services.reindexing._parts.listing.is_due()


@pytest.mark.parametrize("count", [3, 5])
def test_a_listing_that_was_killed_goes_on_at_the_next_opening(old, count):
    run_until_killed(OPEN_AND_DIE, old, count)

    with opened(old) as hiermem:
        assert_listed(hiermem)


def test_a_listing_that_fails_leaves_the_location_as_it_was(old):
    with FaultPlan("rows.before_commit", count=4), pytest.raises(InjectedFault):
        opened(old)

    with opened(old) as hiermem:
        assert_listed(hiermem)


def test_turns_are_not_listed_where_they_are_not_wanted_but_later(old):
    with opened(old, index_turns=False) as hiermem:
        assert hiermem.doctor().unlisted == 0
        assert hiermem.tenant("acme").memory.stats().index.indexed == 0
    with opened(old) as hiermem:
        assert_listed(hiermem)


def test_a_reindex_lists_turns_stored_without_index_turns(tmp_path):
    with opened(tmp_path, index_turns=False) as hiermem:
        hiermem.tenant("acme").thread("t1").append(said(f"cherry {n}" for n in range(30)))
    with opened(tmp_path) as hiermem:
        hiermem.tenant("acme").thread("t1").append(said(["cherry 30"]))
        found = hiermem.doctor().unlisted

        report = hiermem.reindex()

        assert found == 30
        assert (report.rows, report.embedded) == (31, 31)
        assert hiermem.doctor().is_sound
        positions = "SELECT seq, position FROM searchable ORDER BY seq"
        with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
            assert connection.execute(positions).fetchall() == [(n, n) for n in range(1, 32)]


def test_a_turn_that_says_nothing_is_not_missed(tmp_path):
    with opened(tmp_path) as hiermem:
        thread = hiermem.tenant("acme").thread("t1")
        thread.append([{"role": "user", "content": " \n "}, {"role": "user", "content": "cherry"}])
        thread.append([{"role": "system", "content": "be brief"}])

        assert hiermem.doctor().unlisted == 0
