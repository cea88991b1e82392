"""Where the stores of claude-flow are found, and how far a damaged one is read."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from importing import shapes
from importing.stores import row, simple, store

from hiermem_core import InvalidInputError
from hiermem_core.importing import find_stores, import_memories


def test_i7_a_folder_of_expired_entries_is_empty_and_says_why(place):
    past = shapes.SECOND
    rows = [(f"k{n}", "x", past, past + 1) for n in range(3)]
    place.database(".swarm/memory.db", shapes.STORE, rows=[(shapes.PUT_EXPIRING, rows)])

    report = place.load()

    assert (report.status, report.exit_code) == ("empty", 3)
    assert report.reasons == {"expired": 3}


def test_i8_a_folder_without_a_known_path_names_what_was_looked_for(place):
    place.write("notes.json", {"a": 1})

    report = place.load()

    assert report.exit_code == 3
    assert "looked for memory/memory-store.json" in str(report)
    with pytest.raises(InvalidInputError, match="does not exist"):
        place.load(place.folder / "missing")


def with_log(place, name=".hive-mind/memory.db"):
    """Make a database whose rows are all in its log; close nothing until the test ends."""
    path = place.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(shapes.STORE)
    connection.execute(shapes.PUT, row("k1"))
    return path, connection


def test_i9_a_read_only_folder_with_a_log_is_read_and_nothing_is_created(place):
    path, connection = with_log(place)
    before = sorted(one.name for one in path.parent.iterdir())
    for one in path.parent.iterdir():
        one.chmod(0o444)
    path.parent.chmod(0o555)

    report = place.load()
    names = sorted(one.name for one in path.parent.iterdir())
    path.parent.chmod(0o755)
    connection.close()

    assert report.imported == 1
    assert names == before


def test_i10_without_its_log_the_store_is_empty_and_no_error(place):
    path, connection = with_log(place)
    data = path.read_bytes()
    connection.close()
    path.write_bytes(data)

    report = place.load()

    assert [(one.status, one.format) for one in report.stores] == [("empty", None)]
    assert report.exit_code == 3


def test_i11_a_database_that_changes_during_each_copy_is_busy(place, monkeypatch):
    path = store(place, row("k1"))
    from hiermem_core.importing import databases

    copy = databases.shutil.copyfile

    def disturbed(source, target):
        copy(source, target)
        with path.open("ab") as file:
            file.write(b"\0")

    with monkeypatch.context() as patch:
        patch.setattr(databases.shutil, "copyfile", disturbed)
        report = import_memories(place.folder, place.tenant)

    assert [one.status for one in report.stores] == ["busy"]
    assert (report.status, report.exit_code) == ("failed", 1)


def test_i12_a_page_of_zeros_is_a_placeholder(place):
    place.write(".swarm/memory.db", b"SQLite format 3\x00" + bytes(84) + bytes(3996))

    report = place.load()

    assert [one.status for one in report.stores] == ["placeholder"]
    assert (report.exit_code, report.warnings) == (3, ("placeholder",))


def test_i13_of_a_database_cut_in_the_middle_what_can_be_read_arrives(place):
    path = store(place, *[row(f"k{n}", "words " * 100) for n in range(400)])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 // 4096 * 4096])

    report = place.load()

    assert 0 < report.imported < 400
    assert [one.status for one in report.stores] == ["damaged"]
    assert (report.status, report.exit_code) == ("partial", 1)


def test_i14_a_mixed_table_is_read_as_the_unmixed_one(place, tmp_path):
    rows = [row("k1", "one"), row("k2", '{"a": 1}')]
    place.database(".swarm/memory.db", *shapes.MIXED, rows=[(shapes.PUT, rows)])

    report = place.load()

    mixed = place.entries()
    assert (report.imported, report.reasons) == (2, {})
    assert {name: one.content for name, one in mixed.items()} == {
        ("default", "k1"): "one",
        ("default", "k2"): '{"a": 1}',
    }
    plain = tmp_path / "plain" / ".swarm"
    plain.mkdir(parents=True)
    with closing(sqlite3.connect(plain / "memory.db")) as connection, connection:
        connection.execute(shapes.STORE)
        connection.executemany(shapes.PUT, rows)
    again = place.load(tmp_path / "plain")
    assert again.reasons == {"unchanged": 2}


def test_i15_a_row_with_content_in_a_mixed_table_follows_the_later_rule(place):
    path = place.database(".swarm/memory.db", *shapes.MIXED, rows=[(shapes.PUT, [row("k1")])])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO memory_entries (key, value, content, created_at, updated_at, tags, type) "
            "VALUES ('k2', '', 'new', 1796048835000, 1796048836000, '[\"t\"]', 'episodic')"
        )

    place.load()

    entry = place.entries()["default", "k2"]
    assert (entry.content, entry.type, entry.tags) == ("new", "episodic", ("t",))
    assert entry.created_at == datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)
    assert entry.updated_at - entry.created_at == timedelta(seconds=1)


def test_i36_several_tables_of_one_database_all_arrive(place):
    data = json.dumps({"title": "Retry", "content": "twice"})
    place.database(
        ".swarm/memory.db",
        *(shapes.STORE, shapes.COLLECTIVE, shapes.PATTERNS, "CREATE TABLE agents (id TEXT)"),
        rows=[
            (shapes.PUT, [row("k1")]),
            (
                "INSERT INTO collective_memory VALUES (?,?,?,?,?,?,?,?,?)",
                [("c1", "s1", "k", '"said"', "knowledge", 0.9, "q", "2026-11-30 14:00:00", None)],
            ),
            (
                "INSERT INTO patterns VALUES (?,?,?,?,?,?,?)",
                [("p1", "pattern", data, 1.5, 2, "2026-11-30 14:00:00", None)],
            ),
            ("INSERT INTO agents VALUES (?)", [("a1",)]),
        ],
    )

    report = place.load()

    assert [one.format.partition("/")[2] for one in report.stores] == [
        *("sqlite-store", "collective", "reasoning-bank")
    ]
    assert report.imported == 3
    assert report.by_kind == {"entry": 2, "pattern": 1}
    assert report.stores[0].ignored == {"agents": 1}
    assert report.warnings == ("confidence_clamped",)
    pattern = place.entries()["patterns", "Retry"]
    assert pattern.type == "procedural"
    assert place.tenant.patterns.get("Retry").confidence == 1.0
    assert place.load().reasons == {"unchanged": 3}


def test_a_store_that_moved_into_a_database_is_not_read_again(place):
    value = {
        "entries": {"k1": {"key": "k1", "value": "v", "storedAt": 1796048835000}},
        "version": 1,
    }
    place.write(".claude-flow/memory/store.json", value)
    assert [one.status for one in find_stores(place.folder)] == ["read"]
    place.write(".claude-flow/memory/.migrated-to-sqlite", b"")
    store(place, row("k1"))

    found = find_stores(place.folder)

    assert [one.status for one in found] == ["already_moved", "read"]


def test_a_folder_of_a_project_may_be_named_itself(place):
    store(place, row("k1"))

    assert place.load(place.folder / ".swarm").imported == 1


def test_a_format_that_does_not_fit_says_what_was_found(place):
    path = simple(place, one={"k": "v"})

    assert place.load(path, format="claude-flow/simple").imported == 1
    with pytest.raises(InvalidInputError, match="is claude-flow/simple, not mem0/export"):
        place.load(path, format="mem0/export")
    with pytest.raises(InvalidInputError, match="format: is unknown"):
        place.load(path, format="nonsense")


def test_a_database_of_ours_is_refused_with_the_remedy(place):
    with pytest.raises(InvalidInputError, match="hiermem export"):
        import_memories(place.folder.parent / "place" / "memory.db", place.tenant)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.csv", b"id,key,type,tags\n1,k,x,\n", "holds no values"),
        ("x.xml", b'<?xml version="1.0"?><!DOCTYPE memory><memory></memory>', None),
    ],
)
def test_exports_without_values_or_with_a_document_type_are_refused(place, name, content, told):
    path = place.write(name, content)

    if told:
        with pytest.raises(InvalidInputError, match=told):
            place.load(path)
    else:
        assert place.load(path).reasons == {"invalid_record": 1}
