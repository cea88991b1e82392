"""Sources named by a URL: of a server, and of an SQLite file."""

from __future__ import annotations

import sqlite3
import traceback
from contextlib import closing

import pytest
from importing.served import SESSION, filled, langchain
from postgres_server import PASSWORD
from sqlalchemy.engine import make_url

from hiermem_core import HierMem, find_stores, import_memories
from hiermem_core.errors import InvalidInputError


def test_a_format_is_needed_and_listing_names_it(database, alice):
    url = filled(database, langchain())
    database("CREATE TABLE invoices (id SERIAL, total NUMERIC)")

    with pytest.raises(InvalidInputError, match="--list"):
        import_memories(url, alice)
    stores = find_stores(url)
    assert [(one.format, one.found) for one in stores] == [("langchain/sql", 4)]


def test_a_server_without_such_a_table_is_refused(database, alice):
    url = database("CREATE TABLE invoices (id SERIAL, total NUMERIC)")

    with pytest.raises(InvalidInputError, match="no table of langchain/sql"):
        import_memories(url, alice, format="langchain/sql")


def test_a_database_of_hiermem_is_refused_with_the_way_out(database, alice):
    url = database("CREATE TABLE memory_entries (tenant TEXT, id TEXT)")

    with pytest.raises(InvalidInputError, match="hiermem export"):
        import_memories(url, alice, format="claude-flow/v3")


def test_a_schema_is_named_by_the_search_path(database, alice, said):
    url = filled(database, langchain())
    database("CREATE SCHEMA chat", "ALTER TABLE message_store SET SCHEMA chat")

    with pytest.raises(InvalidInputError, match="no table"):
        import_memories(url, alice, format="langchain/sql")
    report = import_memories(f"{url}?options=-csearch_path%3Dchat", alice, format="langchain/sql")

    assert (report.imported, len(said(SESSION))) == (4, 4)


def test_a_password_is_in_no_report_and_in_no_error(database, alice, postgres_server):
    url = filled(database, langchain())
    gone = url.replace(f":{postgres_server.port}/", ":1/")
    in_query = f"{make_url(url).set(password=None)}?password={PASSWORD}"

    told = [import_memories(url, alice, format="langchain/sql").to_dict()]
    told.append(import_memories(in_query, alice, format="langchain/sql").to_dict())
    told.append([one.path for one in find_stores(url)])
    for wrong, reason in (
        (gone, "cannot be reached"),
        (url.replace(PASSWORD, PASSWORD + "x"), "password authentication failed"),
        (f"postgresql+psycopg://u:a@{PASSWORD}@h/d", "%40"),
        (f"postgresql://u:{PASSWORD}@h:port/d", "not a valid"),
        (f"mysql://u:{PASSWORD}@h/d", "mysql cannot be read"),
        (f"postgres://u:{PASSWORD}@no..host/d", "cannot be reached"),
        (f"{url}?no_such={PASSWORD}", "cannot be reached"),
    ):
        with pytest.raises(InvalidInputError, match=reason) as caught:
            import_memories(wrong, alice, format="langchain/sql")
        told += traceback.format_exception_only(caught.value)

    assert "***" in told[0]["source"]
    assert PASSWORD not in repr(told)
    assert "127.0.0.1" in told[0]["source"]


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+aiosqlite"])
def test_a_url_of_an_sqlite_file_is_the_file_and_needs_a_format(tmp_path, alice, said, scheme):
    path = tmp_path / "chat.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (id INTEGER, session_id TEXT, message TEXT)")
        message = '{"type": "human", "data": {"content": "hi"}}'
        connection.execute("INSERT INTO t VALUES (1, 's', ?)", (message,))
    before = {one: one.read_bytes() for one in tmp_path.glob("chat*")}
    url = f"{scheme}:///{path}"

    with pytest.raises(InvalidInputError, match="format"):
        import_memories(url, alice)
    report = import_memories(url, alice, format="langchain/sql")

    assert (report.status, said("s")) == ("complete", [("user", "hi")])
    assert {one: one.read_bytes() for one in tmp_path.glob("chat*")} == before


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///x.db?mode=ro"])
def test_a_url_of_no_sqlite_file_is_refused(alice, url):
    with pytest.raises(InvalidInputError, match="names no file"):
        import_memories(url, alice, format="langchain/sql")


def test_the_command_takes_a_url_and_shows_no_password(database, tmp_path, capsys):
    from hiermem_core.cli import main

    url = filled(database, langchain())
    place = ("--location", str(tmp_path / "m"), "--tenant", "alice")

    codes = [
        main(["import", url, "--list"]),
        main(["import", url, *place]),
        main(["import", url, "--format", "langchain/sql", "--no-index", *place]),
        main(["migrate", url, "--format", "langchain/sql", *place]),
    ]
    shown = "".join(capsys.readouterr())

    assert codes == [0, 2, 0, 2]
    assert "langchain/sql" in shown
    assert PASSWORD not in shown
    with HierMem.open(tmp_path / "m") as memory:
        assert len(memory.tenant("alice").thread(SESSION).turns()) == 4
