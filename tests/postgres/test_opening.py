"""Opening a location on a server: races, versions, what cannot be opened, and passwords."""

from __future__ import annotations

import logging
import secrets
import traceback
from contextlib import closing

import pytest
from core.children import start
from core.test_processes import run_together
from postgres_server import PASSWORD
from sqlalchemy import make_url

from hiermem_core import ApproximateCounter, HierMem, HierMemSettings
from hiermem_core.errors import BackendUnavailableError, ConfigurationError, MigrationError
from hiermem_core.storage import migrations
from hiermem_core.testing.contracts.samples import said

OLD = migrations.SCHEMA_VERSION
NEW = OLD + 1

OPEN_AND_APPEND = """
from hiermem_core import ApproximateCounter, HierMem
print("ready", flush=True)
sys.stdin.readline()
with HierMem.open(sys.argv[1], counter=ApproximateCounter()) as hiermem:
    hiermem.tenant("acme").thread("t1").append([{"role": "user", "content": "here"}])
"""

MIGRATE_AND_APPEND = """
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.storage import migrations

def step(connection):
    connection.exec_driver_sql("CREATE TABLE added (value TEXT)")
    migrations._add_column(connection, "threads", "mood", "BIGINT NOT NULL DEFAULT 7")
    connection.exec_driver_sql("INSERT INTO added SELECT content FROM turns")

old = migrations.SCHEMA_VERSION
migrations.SCHEMA_VERSION, migrations.STEPS = old + 1, {old: step}
print("ready", flush=True)
sys.stdin.readline()
with HierMem.open(sys.argv[1], counter=ApproximateCounter()) as hiermem:
    hiermem.tenant("acme").thread("t1").turns()
"""


@pytest.fixture
def filled(location):
    """Give a location with two turns."""
    with HierMem.open(location, counter=ApproximateCounter()) as hiermem:
        hiermem.tenant("acme").thread("t1").append(said(["one", "two"]))
    return location


def ask(location, statement):
    """Return the rows of a statement in a location's schema, committed."""
    import psycopg

    url, _, schema = location.replace("+psycopg", "").partition("?schema=")
    with closing(psycopg.connect(url, options=f"-csearch_path={schema}")) as connection:
        cursor = connection.execute(statement)
        rows = cursor.fetchall() if cursor.description else []
        connection.commit()
    return rows


def version_of(location):
    query = "SELECT value FROM metadata WHERE key = 'schema_version'"
    return int(ask(location, query)[0][0])


def write_schema(location, version):
    statement = f"UPDATE metadata SET value = '{version}' WHERE key = 'schema_version'"
    ask(location, statement)


def shown(error):
    """Return all that a traceback, a log and a debugger show of an error."""
    told = "".join(traceback.format_exception(error))
    return told + repr(error) + repr(vars(error)) + repr(error.__cause__)


def test_two_processes_that_open_an_empty_database_at_once_both_succeed(postgres_url):
    children = [start(OPEN_AND_APPEND, postgres_url) for _ in range(2)]

    ends = run_together(children)

    assert [status for status, _, _ in ends] == [0, 0], ends
    with HierMem.open(postgres_url) as hiermem:
        assert [turn.seq for turn in hiermem.tenant("acme").thread("t1").turns()] == [1, 2]


def test_e15_two_newer_libraries_at_once_take_a_step_once(filled):
    children = [start(MIGRATE_AND_APPEND, filled) for _ in range(2)]

    ends = run_together(children)

    assert [status for status, _, _ in ends] == [0, 0], ends
    assert version_of(filled) == NEW
    assert sorted(ask(filled, "SELECT value FROM added")) == [("one",), ("two",)]
    assert ask(filled, "SELECT mood FROM threads") == [(7,)]


def test_e15_a_step_that_fails_changes_nothing(filled, monkeypatch):
    def step(connection):
        connection.exec_driver_sql("CREATE TABLE added (value TEXT)")
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "SCHEMA_VERSION", NEW)
        patch.setattr(migrations, "STEPS", {OLD: step})
        with pytest.raises(ZeroDivisionError):
            HierMem.open(filled)

    assert version_of(filled) == OLD
    with HierMem.open(filled) as hiermem:
        assert len(hiermem.tenant("acme").thread("t1").turns()) == 2


@pytest.mark.parametrize("version", [0, NEW, 99])
def test_e15_a_schema_without_a_known_way_is_refused_and_left(filled, version):
    write_schema(filled, version)

    with pytest.raises(MigrationError) as refused:
        HierMem.open(filled)

    assert (refused.value.stored, refused.value.supported) == (version, OLD)
    assert version_of(filled) == version


def test_e15_a_newer_library_that_migrates_meanwhile_is_not_undone(filled, monkeypatch):
    write_schema(filled, OLD - 1)

    def newer_comes_first(database):
        prepared(database)
        write_schema(filled, NEW)

    prepared = migrations.Database.prepare
    monkeypatch.setattr(migrations.Database, "prepare", newer_comes_first)
    with pytest.raises(MigrationError):
        HierMem.open(filled)

    assert version_of(filled) == NEW


def test_another_program_s_tables_are_refused_and_left(postgres_url):
    ask(f"{postgres_url}?schema=public", "CREATE TABLE theirs (value TEXT)")

    with pytest.raises(ConfigurationError, match="another program's database"):
        HierMem.open(f"{postgres_url}?schema=public")

    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    assert ask(f"{postgres_url}?schema=public", tables) == [("theirs",)]


def test_schemas_of_one_database_are_locations_of_their_own(postgres_url):
    places = [f"{postgres_url}?schema=first", f"{postgres_url}?schema=second", postgres_url]
    for place in places:
        with HierMem.open(place) as hiermem:
            hiermem.tenant("acme").remember(place)

    for place in places:
        with HierMem.open(place) as hiermem:
            assert [hit.content for hit in hiermem.tenant("acme").memory.search()] == [place]


def test_a_database_that_is_not_in_utf_8_is_refused_and_left(postgres_server):
    url = postgres_server.new_database("ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")

    with pytest.raises(ConfigurationError, match="LATIN1; create one with ENCODING 'UTF8'"):
        HierMem.open(url)

    there = "SELECT count(*) FROM pg_namespace WHERE nspname = 'hiermem'"
    assert ask(f"{url}?schema=public", there) == [(0,)]
    postgres_server.drop_database(url)


def test_e9_a_schema_that_is_missing_is_not_created_unasked(location):
    with pytest.raises(ConfigurationError, match="nothing is stored"):
        HierMem.open(location, create=False)

    schema = location.rpartition("=")[2]
    there = f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'"
    assert ask(location, there) == [(0,)]


def test_a_location_that_is_there_opens_without_creating(filled):
    with HierMem.open(filled, create=False) as hiermem:
        assert len(hiermem.tenant("acme").thread("t1").turns()) == 2


def test_a_backup_says_what_to_use_instead(filled, tmp_path):
    with HierMem.open(filled) as hiermem, pytest.raises(ConfigurationError) as refused:
        hiermem.backup(tmp_path / "backup")

    assert "pg_dump" in str(refused.value)
    assert "hiermem export" in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_e9_no_handle_shows_the_password(filled, caplog):
    caplog.set_level(logging.DEBUG)
    settings = HierMemSettings(location=filled)
    with HierMem.open(settings=settings) as hiermem:
        tenant = hiermem.tenant("acme")
        database = hiermem._services.database
        handles = (hiermem, tenant, tenant.thread("t1"), tenant.stats(), hiermem.health(), settings)
        texts = [text for one in handles for text in (str(one), repr(one))]
        texts += [hiermem.location, tenant.location, repr(database.location)]

    assert PASSWORD in filled
    assert not [text for text in texts if PASSWORD in text]
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        {"password": "Wr0ng-" + PASSWORD},
        {"database": "no_such_database"},
        {"port": 1},
        {"username": "nobody_of_this_name"},
    ],
)
def test_e9_a_server_that_cannot_be_used_is_told_without_the_password(postgres_url, change):
    url = make_url(postgres_url).set(**change)

    with pytest.raises(BackendUnavailableError, match="check that the server runs") as failed:
        HierMem.open(url.render_as_string(hide_password=False))

    assert PASSWORD not in shown(failed.value)


def test_e9_a_user_without_the_right_to_create_is_told_so(postgres_server, postgres_url):
    name = f"reader_{secrets.token_hex(4)}"
    ask(f"{postgres_url}?schema=public", f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    url = make_url(postgres_url).set(username=name)

    with pytest.raises(ConfigurationError, match="may not create the schema") as refused:
        HierMem.open(url.render_as_string(hide_password=False))

    assert PASSWORD not in shown(refused.value)


def test_a_location_that_leaves_the_password_out_names_the_one_that_is_open(filled):
    with HierMem.open(filled, counter=ApproximateCounter()) as hiermem:
        found = HierMem.opened(hiermem.location)

        assert PASSWORD not in hiermem.location
        assert found is not None
        assert len(found.tenant("acme").thread("t1").turns()) == 2


def test_the_setting_has_the_password_that_a_location_leaves_out(filled, monkeypatch):
    with HierMem.open(filled, counter=ApproximateCounter()) as hiermem:
        named = hiermem.location
    with pytest.raises(BackendUnavailableError):
        HierMem.open(named)
    monkeypatch.setenv("HIERMEM_LOCATION", filled)

    with HierMem.open(named, counter=ApproximateCounter(), create=False) as hiermem:
        assert len(hiermem.tenant("acme").thread("t1").turns()) == 2
    with pytest.raises(BackendUnavailableError):  # another place: it is not asked by that password
        HierMem.open(f"{named}er", create=False)
