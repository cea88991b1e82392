"""The formats of claude-flow of which no files were kept as a model."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from importing import shapes
from importing.conftest import Place

from hiermem_core import aimport_memories, find_stores
from hiermem_core.importing.claude_flow.advanced_exports import csv_fields
from hiermem_core.importing.claude_flow.sparc import parts_of
from hiermem_core.importing.values import compact_json, decoded, structured

BEGUN = datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)
SQL_TEXT = "2026-11-30 14:27:15"
MS = shapes.SECOND * 1000

TABLES = {
    "unified-memory": (
        (
            "CREATE TABLE memory_entries (id INTEGER PRIMARY KEY, key TEXT, value TEXT, "
            "namespace TEXT, timestamp INTEGER, source TEXT)"
        ),
        (1, "k", '{"a":1}', "n", MS, "old.db"),
        ("n", "k", '{"a":1}', {"source": "old.db"}),
    ),
    "v3-initial": (
        (
            "CREATE TABLE memory_entries (id INTEGER PRIMARY KEY, key TEXT UNIQUE, value TEXT, "
            "namespace TEXT, type TEXT, created_at TEXT, updated_at TEXT, expires_at TEXT, "
            "metadata TEXT)"
        ),
        (1, "k", "text", "n", "task", SQL_TEXT, SQL_TEXT, None, None),
        ("n", "k", "text", None),
    ),
    "hive-memories": (
        (
            "CREATE TABLE memories (id TEXT, namespace TEXT, key TEXT, value TEXT, type TEXT, "
            "timestamp INTEGER, created_at TEXT)"
        ),
        ("m1", "n", "k", "[1]", "knowledge", MS, None),
        ("n", "k", "[1]", None),
    ),
    "hive-memory": (
        (
            "CREATE TABLE memory (key TEXT, namespace TEXT, value TEXT, ttl INTEGER, "
            "access_count INTEGER, last_accessed_at TEXT, created_at TEXT, expires_at TEXT, "
            "metadata TEXT)"
        ),
        ("k", "n", "text", 7200, 0, None, SQL_TEXT, None, '{"m":1}'),
        ("n", "k", "text", None),
    ),
    "collective": (
        shapes.COLLECTIVE,
        ("c1", "s/1", "k", '"said"', "error", 0.9, "queen", SQL_TEXT, None),
        (
            *("swarms/s%2F1", "k", "said"),
            {"swarm_id": "s/1", "confidence": 0.9, "created_by": "queen"},
        ),
    ),
    "sparc": (
        (
            "CREATE TABLE memory_items (id TEXT, category TEXT, key TEXT, value TEXT, "
            "metadata TEXT, "
            "vector_embedding BLOB, ttl INTEGER, created_at INTEGER, updated_at INTEGER, "
            "version INTEGER, namespace TEXT)"
        ),
        ("i1", "cat", "k", '"v"', '{"tags":["t"]}', b"\xff", None, MS, MS, 2, "n"),
        ("n/cat", "k", "v", {"category": "cat", "version": 2}),
    ),
    "reasoning-bank": (
        shapes.PATTERNS,
        (
            "p1",
            "reasoning_memory",
            json.dumps({"original_key": "k", "original_value": "v", "namespace": "n"}),
            *(0.7, 1, SQL_TEXT, None),
        ),
        ("n", "k", "v", {"confidence": 0.7}),
    ),
    "reasoning-bank-model": (
        (
            "CREATE TABLE patterns (id INTEGER, problem TEXT, solution TEXT, rationale TEXT, "
            "confidence REAL, success_rate REAL, domain TEXT, tags TEXT, created_at TEXT)"
        ),
        (7, "slow", "cache", None, 0.5, None, "web", '["a"]', SQL_TEXT),
        ("patterns", "web/7", "slow\n\ncache", None),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_gives_its_entry(place, name):
    table, values, (namespace, key, content, fields) = TABLES[name]
    word = table.split()[2]
    marks = ",".join("?" * len(values))
    path = place.database("x.db", table, rows=[(f"INSERT INTO {word} VALUES ({marks})", [values])])

    report = place.load(path)

    assert [one.format for one in report.stores] == [f"claude-flow/{name}"]
    (entry,) = place.entries().values()
    assert (entry.namespace, entry.key, entry.content) == (namespace, key, content)
    assert entry.created_at == BEGUN
    if fields is not None:
        assert entry.metadata["import"]["fields"] == fields
    assert place.load(path).reasons == {"unchanged": 1}


def test_times_to_live_count_from_where_their_format_says(place):
    table, values, _ = TABLES["hive-memory"]
    place.database(
        "x.db", table, rows=[("INSERT INTO memory VALUES (?,?,?,?,?,?,?,?,?)", [values])]
    )
    place.load(place.folder / "x.db")

    (entry,) = place.entries().values()

    assert entry.expires_at == BEGUN + timedelta(hours=2)


def test_what_a_swarm_noted_by_the_way_lasts_from_its_last_access(place):
    rows = [
        ("c1", "s", "old", '"x"', "context", 1, "q", "2026-11-30 13:00:00", None),
        ("c2", "s", "used", '"x"', "context", 1, "q", "2026-11-30 13:00:00", "2026-11-30 14:30:00"),
        ("c3", "s", "fact", '"x"', "knowledge", 1, "q", "2026-01-01 00:00:00", None),
    ]
    put = "INSERT INTO collective_memory VALUES (?,?,?,?,?,?,?,?,?)"
    place.database(".hive-mind/hive.db", shapes.COLLECTIVE, rows=[(put, rows)])

    report = place.load()

    assert [(item.ref, item.reason) for item in report.items] == [("c1", "expired")]
    assert {one.key for one in place.entries().values()} == {"used", "fact"}


SPARC = """# the key
---
id: i1
category: notes
created: 1796048835000
version: 2
namespace: n
tags: [a, b]
---

Say it.

<!-- vector: [0.1, 0.2] -->
"""


def test_markdown_of_sparc_gives_its_entries(place):
    place.write("memory/.memory-index.json", {"foreign": "/elsewhere/x.md"})
    place.write("memory/notes/x.md", SPARC.encode())

    place.load()

    (entry,) = place.entries().values()
    assert (entry.namespace, entry.key, entry.content) == ("n/notes", "the key", "Say it.")
    assert (entry.tags, entry.created_at) == (("a", "b"), BEGUN)
    assert parts_of(SPARC.replace("[a, b]", "\n- a\n- b"))[1]["tags"] == ["a", "b"]


def test_a_shared_copy_without_its_original_is_imported_once(place):
    about = {"originalId": "gone", "sharedFrom": "a", "sharedTo": "b", "tags": ["t"]}
    copies = [
        {"id": f"c{n}", "agentId": "a", "type": "result", "content": "x", "metadata": about}
        for n in range(2)
    ]
    place.write("swarm-memory/entries.json", copies)

    report = place.load()

    assert [(item.ref, item.reason, item.of) for item in report.items] == [
        ("c1", "shared_copy", "c0")
    ]
    assert report.imported == 1


def test_what_only_a_knowledge_base_has_is_imported_from_there(place):
    kept = {"id": "m1", "agentId": "a", "content": "kept", "metadata": {}}
    evicted = {"id": "m2", "agentId": "a", "content": "evicted", "metadata": {}}
    base = {"id": "kb", "name": "KB", "entries": [kept, evicted], "metadata": {"domain": "d"}}
    place.write("swarm-memory/entries.json", [kept])
    place.write("swarm-memory/knowledge-bases.json", [base])

    report = place.load()

    assert [(item.ref, item.reason) for item in report.items] == [("m1", "duplicate")]
    about = place.entries()["agents/a", "m2"].metadata["import"]
    assert about["fields"]["knowledge_base"] == "kb"


def test_a_file_that_is_no_json_in_a_known_place_is_damaged(place):
    place.write("memory/memory-store.json", b'{"a": [')
    place.write("memory.json", b'{"a": 5}')

    found = find_stores(place.folder)

    assert [(one.path, one.status) for one in found] == [
        ("memory/memory-store.json", "damaged"),
        ("memory.json", "unrecognised"),
    ]
    assert place.load().exit_code == 1


def test_bytes_that_are_no_utf_8_are_replaced_with_a_warning(place):
    data = json.dumps({"a": [{"key": "k", "value": "caf@", "timestamp": MS}]}).encode()
    place.write("memory/memory-store.json", data.replace(b"@", b"\xe9"))

    report = place.load()

    assert report.warnings == ("undecodable_bytes",)
    assert place.contents() == {("a", "k"): "caf\ufffd"}


def test_source_metadata_beyond_the_limits_is_kept_as_text(place):
    deep = {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1}}}}}}}}}
    place.write("memory/index.json", {"e1": shapes.noted("e1", metadata=deep, context=deep)})

    place.load()

    (entry,) = place.entries().values()
    fields = entry.metadata["import"]["fields"]
    assert json.loads(fields["metadata"]) == json.loads(fields["context"]) == deep


def test_a_key_named_import_gives_way(place):
    place.write("memory/index.json", {"e1": shapes.noted("e1", metadata={"import": 1, "b": 2})})

    place.load()

    (entry,) = place.entries().values()
    assert (entry.metadata["import_"], entry.metadata["b"]) == (1, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-7, "1e-7"),
        (1e-6, "0.000001"),
        (1e16, "10000000000000000"),
        (1e21, "1e+21"),
        (-0.0, "0"),
        (2.5, "2.5"),
        ({"a": [None, True, "é"]}, '{"a":[null,true,"é"]}'),
        ("\ud800", '"\\ud800"'),
    ],
)
def test_compact_json_is_javascript_s(value, text):
    assert compact_json(value) == text


def test_a_text_is_taken_as_it_is_where_it_is_no_structure():
    assert (structured("3").kind, structured("[1").content) == (None, "[1")
    assert (decoded('"a"').content, decoded("x").content) == ("a", "x")


def test_a_line_of_the_csv_export_may_hold_commas_anywhere_but_in_its_end():
    assert csv_fields('k,"a,b",string,n,t1;t2') == {
        "key": "k",
        "value": "a,b",
        "type": "string",
        "namespace": "n",
        "tags": ["t1", "t2"],
    }


async def test_the_async_twin_gives_the_same_report(place):
    place.database(".swarm/memory.db", shapes.STORE, rows=[(shapes.PUT, [("k", "v", "n", 1, 1)])])

    report = await aimport_memories(place.folder, place.tenant)

    assert report.imported == 1


@pytest.mark.parametrize("backend", ["in_memory", "sqlite", "hybrid", "chroma"])
def test_every_backend_takes_an_import_and_its_repeat(tmp_path, backend):
    place = Place(tmp_path, backend)
    rows = [(f"k{n}", f"text {n}", "n", shapes.SECOND, shapes.SECOND) for n in range(30)]
    place.database(".swarm/memory.db", shapes.STORE, rows=[(shapes.PUT, rows)])

    assert place.load(batch_size=7).imported == 30
    generation = place.tenant.memory.generation()
    assert place.load(batch_size=11).reasons == {"unchanged": 30}
    assert place.tenant.memory.generation() == generation
    assert {one.created_at for one in place.entries().values()} == {BEGUN}
    place.memory.close()
