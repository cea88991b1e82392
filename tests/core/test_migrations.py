"""Locations written by a newer and by an older schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from core.children import run_until_killed

from hiermem_core import HierMem
from hiermem_core.errors import MigrationError
from hiermem_core.storage import migrations
from hiermem_core.testing import FakeEmbedder, FaultPlan, InjectedFault
from hiermem_core.testing.contracts.samples import said
from hiermem_core.tokens.counters import ApproximateCounter

OLD = migrations.SCHEMA_VERSION
NEW = OLD + 1

MIGRATE_AND_DIE = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.storage import migrations
from hiermem_core.testing import FaultPlan

def step(connection):
    connection.exec_driver_sql("CREATE TABLE added (value TEXT)")
    connection.exec_driver_sql("UPDATE turns SET content = 'migrated'")

old = migrations.SCHEMA_VERSION
migrations.SCHEMA_VERSION, migrations.STEPS = old + 1, {old: step}
with FaultPlan("migration.before_commit", action="kill"):
    HierMem.open(sys.argv[1], counter=ApproximateCounter())
"""


OPEN_AND_DIE = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FaultPlan

with FaultPlan(sys.argv[2], action="kill", count=int(sys.argv[3])):
    HierMem.open(sys.argv[1], counter=ApproximateCounter())
"""

WRITTEN_BEFORE_ENTRIES = Path(__file__).with_name("schema_1.sql")
"""What the first schema wrote: a thread of two exchanges, an edited turn, archived turns."""


@pytest.fixture
def first_schema(tmp_path):
    """Give a location as the first schema left it."""
    (tmp_path / "memory").mkdir()
    with closing(sqlite3.connect(tmp_path / "memory" / "memory.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(WRITTEN_BEFORE_ENTRIES.read_text(encoding="utf-8"))
    return tmp_path / "memory"


def opened(location, **options):
    return HierMem.open(location, counter=ApproximateCounter(), **options)


def recalled(hiermem, question, tenant="acme"):
    """Return the contents recalled of a tenant."""
    return {hit.content for hit in hiermem.tenant(tenant).recall(question)}


@pytest.fixture
def location(tmp_path):
    """Give a location of today's schema with two turns."""
    with HierMem.open(tmp_path / "memory", counter=ApproximateCounter()) as hiermem:
        hiermem.tenant("acme").thread("t1").append(said(["one", "two"]))
    return tmp_path / "memory"


@pytest.fixture
def newer_library(monkeypatch):
    """Make this library one schema newer; give the list of the steps it ran."""
    ran = []

    def step(connection):
        connection.exec_driver_sql("CREATE TABLE added (value TEXT)")
        ran.append(OLD)

    monkeypatch.setattr(migrations, "SCHEMA_VERSION", NEW)
    monkeypatch.setattr(migrations, "STEPS", {OLD: step})
    return ran


def contents_of(location):
    with HierMem.open(location, counter=ApproximateCounter()) as hiermem:
        return [turn.content for turn in hiermem.tenant("acme").thread("t1").turns()]


def files_of(location):
    return {path.name: path.read_bytes() for path in location.iterdir()}


def schema_of(file):
    with sqlite3.connect(file) as connection:
        query = "SELECT value FROM metadata WHERE key = 'schema_version'"
        return int(connection.execute(query).fetchone()[0])


def write_schema(location, version):
    with sqlite3.connect(location / "memory.db") as connection:
        connection.execute(
            "UPDATE metadata SET value = ? WHERE key = 'schema_version'", (str(version),)
        )
    connection.close()


def test_e15_the_turns_of_the_first_schema_are_there_and_recalled(first_schema):
    with opened(first_schema) as hiermem:
        thread = hiermem.tenant("acme").thread("t1")

        assert [turn.id for turn in thread.turns()] == ["q1", "a1", "q2", "a2", "r2", "a3"]
        assert recalled(hiermem, "samovar flea market") >= {
            "Where did we buy the samovar?",
            "At the flea market in Tula.",
        }
        assert "It weighs 4.3 kg." in recalled(hiermem, "what it weighs")
        assert "An old samovar" not in recalled(hiermem, "an old samovar")
        assert recalled(hiermem, "samovar", "other") == {"Our samovar is a secret."}
        assert hiermem.doctor().is_sound
    assert schema_of(first_schema / "memory.db") == migrations.SCHEMA_VERSION
    assert schema_of(first_schema / "memory.db.schema-1") == 1


def test_e15_the_turns_of_the_first_schema_get_vectors_where_there_is_an_embedder(first_schema):
    with opened(first_schema, embedder=FakeEmbedder()) as hiermem:
        is_done = hiermem.tenant("acme").memory.wait_for_index()
        stats = hiermem.tenant("acme").memory.stats()

        assert is_done
        assert (stats.index.indexed, stats.index.pending) == (5, 0)


def test_e15_what_is_stored_after_the_migration_goes_on_from_what_was_there(first_schema):
    with opened(first_schema) as hiermem:
        tenant = hiermem.tenant("acme")
        (turn,) = tenant.thread("t1").append(said(["And the price of the samovar?"]))
        tenant.remember("The samovar cost 90")

        assert turn.seq == 7
        assert recalled(hiermem, "price of the samovar") >= {turn.content, "The samovar cost 90"}
        assert hiermem.doctor().is_sound


def test_e15_the_first_schema_is_left_usable_by_a_kill_before_the_commit(first_schema):
    run_until_killed(OPEN_AND_DIE, first_schema, "migration.before_commit", 1)

    assert schema_of(first_schema / "memory.db") == 1
    with opened(first_schema) as hiermem:
        assert "At the flea market in Tula." in recalled(hiermem, "flea market")


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_e15_a_kill_while_turns_are_listed_is_made_good_by_the_next_open(first_schema, count):
    run_until_killed(OPEN_AND_DIE, first_schema, "rows.before_commit", count)

    with opened(first_schema) as hiermem:
        assert "At the flea market in Tula." in recalled(hiermem, "flea market")
        assert recalled(hiermem, "samovar", "other") == {"Our samovar is a secret."}
        assert hiermem.doctor().is_sound


@pytest.mark.parametrize("version", [NEW, 99])
def test_e15_a_newer_schema_is_refused_and_its_file_left_byte_for_byte(location, version):
    write_schema(location, version)
    before = files_of(location)

    with pytest.raises(MigrationError) as refused:
        HierMem.open(location)

    assert (refused.value.stored, refused.value.supported) == (version, OLD)
    assert str(version) in str(refused.value)
    assert str(OLD) in str(refused.value)
    assert files_of(location) == before


def test_e15_an_older_schema_is_migrated_after_a_backup(location, newer_library):
    assert contents_of(location) == ["one", "two"]
    assert newer_library == [OLD]
    assert schema_of(location / "memory.db") == NEW
    assert contents_of(location) == ["one", "two"]
    assert newer_library == [OLD]


def test_e15_the_backup_is_a_location_that_the_older_library_opens(
    location, newer_library, monkeypatch
):
    contents_of(location)
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", OLD)
    (backup,) = [path for path in location.iterdir() if "schema" in path.name]

    (location / "memory.db").unlink()
    backup.rename(location / "memory.db")

    assert contents_of(location) == ["one", "two"]


def test_e15_a_step_that_fails_changes_nothing(location, monkeypatch):
    def step(connection):
        connection.exec_driver_sql("CREATE TABLE added (value TEXT)")
        connection.exec_driver_sql("UPDATE turns SET content = 'migrated'")
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "SCHEMA_VERSION", NEW)
        patch.setattr(migrations, "STEPS", {OLD: step})
        with pytest.raises(ZeroDivisionError):
            HierMem.open(location, counter=ApproximateCounter())

    assert schema_of(location / "memory.db") == OLD
    assert contents_of(location) == ["one", "two"]


def test_e15_a_migration_that_fails_before_its_commit_can_be_repeated(location, newer_library):
    with FaultPlan("migration.before_commit"), pytest.raises(InjectedFault):
        HierMem.open(location, counter=ApproximateCounter())

    assert contents_of(location) == ["one", "two"]
    assert newer_library == [OLD, OLD]
    assert schema_of(location / "memory.db") == NEW


def test_e15_a_migration_killed_before_its_commit_leaves_the_old_one_usable(location):
    run_until_killed(MIGRATE_AND_DIE, location)

    assert schema_of(location / "memory.db") == OLD
    assert contents_of(location) == ["one", "two"]


def test_e15_an_older_schema_without_a_known_way_is_refused_and_left(location):
    write_schema(location, 0)
    before = files_of(location)

    with pytest.raises(MigrationError) as refused:
        HierMem.open(location)

    assert (refused.value.stored, refused.value.supported) == (0, OLD)
    assert files_of(location) == before


def test_e15_a_driver_error_in_the_backup_is_a_backend_error(location, newer_library):
    from hiermem_core.errors import BackendError

    (location / f"memory.db.schema-{OLD}").mkdir()

    with pytest.raises(BackendError) as failed:
        HierMem.open(location, counter=ApproximateCounter())

    assert isinstance(failed.value.__cause__, sqlite3.Error | OSError)
    assert newer_library == []
