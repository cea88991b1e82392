"""`hiermem import` of other systems' memories: each is searchable after one command."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import chromadb
import pytest
from importing import shapes


@pytest.fixture
def write(tmp_path):
    def write(name, value):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    return write


@pytest.fixture
def database(tmp_path):
    def make(name, statement, put, *rows):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)
            connection.executemany(put, rows)

    return make


def commands():
    """Return the words of each command of the README's example, without its comment."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## Bring your memories along\n")[1].split("\n## ")[0]
    lines = section.split("```sh\n")[1].split("```")[0].splitlines()
    return [line.partition("#")[0].split()[1:] for line in lines]


@pytest.fixture
def old_systems(write, database, tmp_path):
    """Make the sources that the example names."""
    database(
        "old-project/.swarm/memory.db",
        *(shapes.STORE, shapes.PUT),
        ("plan", "The zeppelin ships on Friday", "project", shapes.SECOND, shapes.SECOND),
    )
    write(
        "chat_history.json",
        [{"type": "human", "data": {"content": "My umbrella is yellow", "type": "human"}}],
    )
    blocks = [{"block_type": "text", "text": "The piano needs tuning"}]
    message = {"role": "user", "additional_kwargs": {}, "blocks": blocks}
    database(
        "chat_store.db",
        *(shapes.LLAMAINDEX, "INSERT INTO llama_index_memory VALUES (?,?,?,?,?,?)"),
        (1, "user1", 1796048835000000000, "user", "active", json.dumps(message)),
    )
    write("openai-log.jsonl", '{"role": "user", "content": "Kangaroos box"}\n')
    memories = [
        shapes.memory("1", "Ann likes rhubarb", user_id="ann"),
        shapes.memory("2", "Bob likes rum", user_id="bob"),
    ]
    write("mem0.json", {"results": memories})
    moment = "2026-11-30 10:00:00"
    row = ("h1", "m9", None, "Plays the trombone", "ADD", moment, None, 0)
    database("history.db", shapes.MEM0, shapes.MEM0_PUT, row)
    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(tmp_path / "chroma_db"), settings=settings)
    collection = client.get_or_create_collection("notes", embedding_function=None)
    collection.add(ids=["1"], documents=["Volcanoes hiss"], embeddings=[[1.0, 0.0]])


def test_each_system_of_the_example_is_searchable_after_one_command(hiermem, old_systems):
    texts = ("zeppelin", "umbrella", "piano", "Kangaroos", "rhubarb", "trombone", "Volcanoes")
    for words, text in zip(commands(), texts, strict=True):
        run = hiermem(*words)
        assert run.code == 0, (words, run.err)

        hits = hiermem("recall", text, "--json").json["hits"]
        assert hits, text
        assert text in hits[0]["content"]


def test_a_dry_run_creates_nothing_and_reports_the_same(hiermem, old_systems, tmp_path):
    dry = hiermem("migrate", "old-project", "--dry-run", "--json")

    assert (dry.code, dry.json["imported"], dry.json["dry_run"]) == (0, 1, True)
    assert not (tmp_path / "memory").exists()
    assert hiermem("migrate", "old-project", "--json").json["imported"] == 1


def test_migrate_takes_claude_flow_only_and_the_folder_it_is_in(hiermem, old_systems, monkeypatch):
    run = hiermem("migrate", "mem0.json")

    assert run.code == 2
    assert "run: hiermem import" in run.err
    monkeypatch.chdir("old-project")
    assert hiermem("migrate").code == 0


def test_list_names_what_is_found_and_imports_nothing(hiermem, old_systems, tmp_path):
    run = hiermem("import", "old-project", "--list")

    assert run.out == ".swarm/memory.db: claude-flow/sqlite-store; 1 record\n"
    assert hiermem("migrate", "old-project", "--list", "--json").json["stores"][0]["found"] == 1
    assert not (tmp_path / "memory").exists()


def test_a_folder_without_anything_known_ends_with_3_and_says_where_it_looked(hiermem, tmp_path):
    (tmp_path / "empty").mkdir()

    run = hiermem("import", "empty")

    assert run.code == 3
    assert "looked for memory/memory-store.json" in run.out
    assert hiermem("import", "empty", "--list").code == 3


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("mem0.json",), 2, "memories of 2 users"),
        (("mem0.json", "--only", "ann"), 2, "FIELD=VALUE"),
        (("history.db",), 2, "--all-users"),
        (("mem0.json", "--format", "nonsense"), 2, "is unknown"),
        (("mem0.json", "--format", "claude-flow/simple"), 2, "is mem0/export"),
    ],
)
def test_wrong_use_says_what_to_do(hiermem, old_systems, words, code, told):
    run = hiermem("import", *words)

    assert (run.code, run.out) == (code, "")
    assert told in run.err


def test_a_conflict_that_is_to_fail_ends_with_1(hiermem, old_systems):
    hiermem("remember", "Something else", "--namespace", "project", "--key", "plan")

    run = hiermem("migrate", "old-project", "--on-conflict", "fail")

    assert run.code == 1
    assert "nothing was stored" in run.err
    assert (
        hiermem("migrate", "old-project", "--on-conflict", "overwrite", "--json").json["updated"]
        == 1
    )
