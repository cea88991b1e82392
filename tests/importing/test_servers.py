"""Databases on a server as sources: what is in their tables, and reading it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from importing.served import SESSION, connection_to, digest_of, filled, langchain
from sqlalchemy import text
from sqlalchemy.engine import make_url

from hiermem_core import import_memories


@pytest.mark.parametrize("kind", ["JSONB", "JSON", "TEXT"])
def test_a_table_of_langchain_on_postgres_is_imported_in_order(database, alice, said, kind):
    url = filled(database, langchain(kind))
    before = digest_of(url)

    report = import_memories(url, alice, format="langchain/sql")
    again = import_memories(url, alice, format="langchain/sql")

    assert (report.status, report.imported, report.threads) == ("complete", 4, (SESSION,))
    assert said(SESSION) == [
        (role, f"0 {n} 靴") for n, role in enumerate(("user", "assistant") * 2)
    ]
    turn = alice.thread(SESSION).turns()[0]
    assert turn.created_at == datetime(2026, 5, 1, 10, tzinfo=UTC)
    assert (again.imported, {item.reason for item in again.items}) == (0, {"unchanged"})
    assert digest_of(url) == before


def test_i49_interleaved_sessions_of_a_server_are_not_mixed(database, alice, said):
    url = filled(database, langchain(sessions=40, turns=3))

    report = import_memories(url, alice, format="langchain/sql", batch_size=7)

    assert len(report.threads) == 40
    for session in range(40):
        name = str(UUID(int=UUID(SESSION).int + session))
        assert [content for _, content in said(name)] == [f"{session} {n} 靴" for n in range(3)]


async def test_a_table_that_llamaindexs_own_store_writes_is_imported(postgres_url, alice, said):
    from llama_index.core.llms import ChatMessage
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

    url = postgres_url
    store = SQLAlchemyChatStore(table_name="llama_index_memory", async_database_uri=url)
    await store.add_message("k1", ChatMessage(role="user", content="Bonjour"))
    await store.add_message("k1", ChatMessage(role="assistant", content="Salut"))
    await store.archive_oldest_messages("k1", 1)
    await store._async_engine.dispose()

    report = import_memories(url, alice, format="llamaindex/sql")

    assert (report.status, report.imported) == ("complete", 2)
    assert said("k1") == [("assistant", "Salut")]
    archived = alice.thread("k1").turns(status="archived")
    assert [turn.content for turn in archived] == ["Bonjour"]


@pytest.mark.parametrize("kind", ["JSON", "JSONB"])
def test_arrays_of_llamaindexs_postgres_store_are_imported(database, alice, said, kind):
    chats = {"k1": ["Bonjour", "Salut"], "k2": ["昨日は雨でした"]}
    rows = [
        {"key": key, "value": [json.dumps(llama_message(one)) for one in contents]}
        for key, contents in chats.items()
    ]
    make = f"CREATE TABLE data_chatstore (id SERIAL PRIMARY KEY, key VARCHAR, value {kind}[])"
    put = f"INSERT INTO data_chatstore (key, value) VALUES (:key, CAST(:value AS {kind}[]))"
    url = database(make, rows=[(put, rows)])

    report = import_memories(url, alice, format="llamaindex/sql")
    again = import_memories(url, alice, format="llamaindex/sql")

    assert (report.status, report.imported, again.imported) == ("complete", 3, 0)
    assert {key: [content for _, content in said(key)] for key in chats} == chats


def llama_message(content):
    """Return a message as LlamaIndex dumps it."""
    blocks = [{"block_type": "text", "text": content}]
    return {"role": "user", "additional_kwargs": {}, "blocks": blocks}


COLLECTIVE = """CREATE TABLE collective_memory (id TEXT PRIMARY KEY, swarm_id TEXT, key TEXT,
value JSONB, type TEXT, confidence NUMERIC, created_by TEXT, created_at TIMESTAMP, ttl NUMERIC)"""
V3 = """CREATE TABLE memory_entries (id TEXT PRIMARY KEY, key TEXT, namespace TEXT, content TEXT,
type TEXT, embedding JSON, embedding_model TEXT, tags TEXT[], metadata JSONB, owner_id TEXT,
created_at BIGINT, updated_at BIGINT, expires_at BIGINT, access_count INTEGER, status TEXT)"""


def test_tables_of_claude_flow_on_postgres_are_imported_as_those_of_sqlite(database, place):
    row = (
        "INSERT INTO collective_memory VALUES ('c1', 'alpha', 'goal', '{\"a\": [1, 2.50]}',"
        " 'knowledge', 0.75, 'queen', '2026-11-01 08:00:00', NULL)"
    )
    url = database(COLLECTIVE, row)

    report = place.load(url, format="claude-flow/collective")

    (entry,) = place.entries().values()
    assert report.status == "complete"
    assert (entry.namespace, entry.key) == ("swarms/alpha", "goal")
    assert json.loads(entry.content) == {"a": [1, 2.5]}
    assert entry.metadata["import"]["fields"]["confidence"] == 0.75
    assert entry.created_at == datetime(2026, 11, 1, 8, tzinfo=UTC)


def test_arrays_of_a_server_are_lists_and_absent_values_are_absent(database, place):
    row = (
        "INSERT INTO memory_entries VALUES ('e1', 'k', 'n', 'Tee', 'semantic', NULL, NULL,"
        " ARRAY['a', 'größe', 'x,y'], '{\"m\": {\"deep\": [1]}}', NULL, 1793000000000, NULL, NULL,"
        " 3, 'active')"
    )
    url = database(V3, row)

    place.load(url, format="claude-flow/v3")

    (entry,) = place.entries().values()
    assert entry.tags == ("a", "größe", "x,y")
    assert entry.metadata["m"] == {"deep": [1]}
    assert entry.expires_at is None


def test_columns_of_any_type_stand_in_no_records_way(database, alice, said):
    message = json.dumps({"type": "human", "data": {"content": "hi"}})
    moments = ("infinity", "0044-03-15 BC")
    put = (
        "INSERT INTO chat (id, session_id, message, created_at, extra, price, took, host, span,"
        " mood) VALUES (:id, 's', CAST(:message AS JSONB), CAST(:at AS TIMESTAMPTZ), '(1,2)',"
        " '$1.00', '1 day', '127.0.0.1', '[1,2)', 'calm')"
    )
    url = database(
        "CREATE TYPE mood AS ENUM ('calm')",
        "CREATE TABLE chat (id INTEGER, session_id TEXT, message JSONB, created_at TIMESTAMPTZ,"
        " extra POINT, price MONEY, took INTERVAL, host INET, span INT4RANGE, mood mood)"
        " PARTITION BY LIST (session_id)",
        "CREATE TABLE chat_rest PARTITION OF chat DEFAULT",
        rows=[(put, [{"id": n, "message": message, "at": at} for n, at in enumerate(moments)])],
    )

    report = import_memories(url, alice, format="langchain/sql")

    assert (report.found, report.imported) == (2, 2)
    assert said("s") == [("user", "hi")] * 2


def test_bytes_that_are_no_utf8_and_json_that_is_none_fail_alone(database, alice):
    url = database(
        "CREATE TABLE chat (id SERIAL, session_id TEXT, message BYTEA)",
        rows=[
            (
                "INSERT INTO chat (session_id, message) VALUES ('s', :message)",
                [
                    {"message": b'{"type": "human", "data": {"content": "ok"}}'},
                    {"message": b"\xff\xfe"},
                    {"message": b"{"},
                    {"message": None},
                ],
            )
        ],
    )

    report = import_memories(url, alice, format="langchain/sql")

    reasons = [item.reason for item in report.items]
    assert (report.status, report.imported) == ("partial", 1)
    assert reasons == ["not_text", "invalid_json", "missing_field"]


def test_a_source_is_read_as_of_one_moment(database, alice):
    url = filled(database, langchain(turns=4))
    grown = []

    def grow(step):
        if not grown:
            filled_again = langchain(turns=2)
            database(rows=filled_again["rows"])
        grown.append(step)

    report = import_memories(url, alice, format="langchain/sql", batch_size=1, progress=grow)

    assert (report.found, len(grown) > 1) == (4, True)


def test_a_source_cannot_be_written_even_by_what_reading_it_runs(database, alice):
    url = filled(database, langchain())
    database(
        "CREATE TABLE seen (at TIMESTAMPTZ)",
        "CREATE FUNCTION see() RETURNS BOOLEAN LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO seen VALUES (now()); RETURN true; END'",
        "CREATE ROLE reader LOGIN PASSWORD 'pw' IN ROLE pg_read_all_data",
        "GRANT INSERT ON seen TO reader",
        "CREATE POLICY watched ON message_store USING (see())",
        "ALTER TABLE message_store ENABLE ROW LEVEL SECURITY",
    )
    theirs = (
        make_url(url).set(username="reader", password="pw").render_as_string(hide_password=False)
    )
    try:
        with connection_to(theirs) as connection:
            assert connection.execute(text("SELECT count(*) FROM message_store")).scalar() == 4
        report = import_memories(theirs, alice, format="langchain/sql")

        with connection_to(url) as connection:
            seen = connection.execute(text("SELECT count(*) FROM seen")).scalar()
    finally:
        database("DROP OWNED BY reader", "DROP ROLE reader")
    assert seen > 0
    assert (report.status, report.exit_code) == ("failed", 1)
    assert "read-only transaction" in report.stores[0].detail


def test_tables_that_may_not_be_read_are_told(database, alice):
    url = filled(database, langchain())
    database("CREATE ROLE stranger LOGIN PASSWORD 'pw'")
    theirs = (
        make_url(url).set(username="stranger", password="pw").render_as_string(hide_password=False)
    )
    try:
        report = import_memories(theirs, alice, format="langchain/sql")
    finally:
        database("DROP ROLE stranger")

    assert report.status == "failed"
    assert "permission denied for table message_store" in report.stores[0].detail


def test_a_server_that_refuses_to_list_its_tables_is_told(database, alice, monkeypatch):
    url = filled(database, langchain())
    monkeypatch.setattr("hiermem_core.importing.servers._COLUMNS", "SELECT 1 / 0")

    report = import_memories(url, alice, format="langchain/sql")

    assert (report.status, report.exit_code) == ("failed", 1)
    assert (report.stores[0].status, report.stores[0].detail) == ("damaged", "division by zero")


def test_a_dry_run_of_a_server_reports_the_same_and_stores_nothing(database, alice):
    url = filled(database, langchain())

    rehearsed = import_memories(url, alice, format="langchain/sql", dry_run=True)
    stored = list(alice.threads())
    done = import_memories(url, alice, format="langchain/sql")

    assert stored == []
    assert (rehearsed.found, rehearsed.imported) == (done.found, done.imported) == (4, 4)


def test_a_server_that_dies_while_it_is_read_leaves_whole_batches(alice):
    from postgres_server import running_server

    with running_server() as server:
        url = server.new_database()
        shape = langchain(turns=3000)
        with connection_to(url) as connection:
            connection.execute(text(shape["statements"][0]))
            connection.execute(text(shape["rows"][0][0]), shape["rows"][0][1])

        def kill(step):
            server.stop("immediate")

        report = import_memories(url, alice, format="langchain/sql", batch_size=100, progress=kill)
        server.start()
        again = import_memories(url, alice, format="langchain/sql")

    assert (report.status, report.exit_code) == ("partial", 1)
    assert 100 <= report.imported < 3000
    assert report.imported + again.imported == 3000
