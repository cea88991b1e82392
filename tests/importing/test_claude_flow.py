"""What the formats of claude-flow give."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from importing import shapes

from hiermem_core import ConflictError, InvalidInputError
from hiermem_core.importing import find_stores, import_memories
from hiermem_core.importing.claude_flow.memory_markdown import parsed
from hiermem_core.importing.values import compact_json

LATER = datetime(2027, 1, 1, tzinfo=UTC)


def simple(place, **namespaces):
    listed = {
        name: [
            {"key": key, "value": value, "namespace": name, "timestamp": 1796048835000}
            for key, value in pairs.items()
        ]
        for name, pairs in namespaces.items()
    }
    return place.write("memory/memory-store.json", listed)


def store(place, *rows, name=".swarm/memory.db"):
    return place.database(name, shapes.STORE, rows=[(shapes.PUT, rows)])


def row(key, value="x", namespace="default", created=shapes.SECOND):
    return key, value, namespace, created, created


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


def test_i16_each_format_counts_in_its_own_unit(place):
    place.write(
        "memory/memory-store.json", {"a": [{"key": "k", "value": "v", "timestamp": 999999999999}]}
    )
    store(place, row("s", created=1796048835))

    place.load()

    moments = {one.key: one.created_at for one in place.entries().values()}
    assert moments["k"] == datetime(2001, 9, 9, 1, 46, 39, 999000, tzinfo=UTC)
    assert moments["s"] == datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)


@pytest.mark.parametrize("moment", [None, 0, -5, "soon"])
def test_i18_an_unknown_time_is_the_clock_s_and_a_repeat_is_unchanged(place, moment):
    place.write(
        "memory/memory-store.json", {"a": [{"key": "k", "value": "v", "timestamp": moment}]}
    )

    place.load()

    entry = place.entries()["a", "k"]
    assert entry.created_at == entry.updated_at == place.clock.now()
    assert entry.metadata["import"]["time_unknown"] is True
    place.clock.advance(3600)
    assert place.load().reasons == {"unchanged": 1}


def test_i19_what_is_past_its_expiry_is_imported_only_where_that_is_wanted(place):
    rows = [("k", "x", shapes.SECOND, shapes.SECOND - 5)]
    place.database(".swarm/memory.db", shapes.STORE, rows=[(shapes.PUT_EXPIRING, rows)])

    assert place.load().reasons == {"expired": 1}
    assert place.load(include_expired=True).imported == 1

    entry = place.entries()["default", "k"]
    assert (entry.ttl, entry.expires_at) == (None, None)
    assert entry.metadata["import"]["expires_at"] == "2026-11-30T14:27:10.000Z"


def test_i20_an_expiry_never_restarts(place):
    now = int(place.clock.now().timestamp())
    rows = [("k", "x", now - 3600, now + 3600)]
    place.database(".swarm/memory.db", shapes.STORE, rows=[(shapes.PUT_EXPIRING, rows)])

    place.load()

    entry = place.entries()["default", "k"]
    assert (entry.ttl, entry.expires_at) == (7200, place.clock.now() + timedelta(hours=1))
    place.clock.advance(3600)
    assert place.entries() == {}


def test_i21_one_key_of_two_namespaces_is_two_entries(place):
    simple(place, one={"k": "first"}, two={"k": "second"})

    place.load()

    assert place.contents() == {("one", "k"): "first", ("two", "k"): "second"}


def test_i22_fifty_namespaces_are_fifty(place):
    names = [f"n{n:02}" for n in range(50)]
    simple(place, **{name: {"k": name} for name in names})

    place.load()

    assert place.tenant.memory.list_namespaces() == names


def test_i23_odd_namespaces_become_ours(place):
    store(place, *(row("k", name or "none", name) for name in ("", "a//b", "/x", "swarm:agents")))

    place.load()

    names = place.tenant.memory.list_namespaces()
    assert names == ["%2Fx", "a%2F%2Fb", "default", "swarm:agents"]


def test_i24_of_one_key_said_three_times_the_newest_keeps_it(place):
    listed = [shapes.state_entry(f"m{n}", "k", json.dumps(text)) for n, text in enumerate("abb")]
    place.write("swarm-memory/state.json", shapes.state(*listed))

    report = place.load()

    entries = place.entries()
    keeper = entries.pop(("default/default", "k"))
    (other,) = entries.values()
    assert (keeper.content, other.content, other.key) == ("b", "a", None)
    assert keeper.metadata["import"]["id"] == "m1"
    assert other.metadata["import"]["superseded_by"] == keeper.id
    assert other.metadata["import"]["key"] == "k"
    assert [(item.ref, item.reason, item.of) for item in report.items] == [
        ("m2", "duplicate", "m1")
    ]
    assert place.load().reasons == {"unchanged": 2, "duplicate": 1}


def test_i25_values_of_a_swarm_are_decoded_once(place):
    texts = ['"text"', '{"a":1}', "3", "null", "not json"]
    listed = [shapes.state_entry(f"m{n}", f"k{n}", text) for n, text in enumerate(texts)]
    place.write("swarm-memory/state.json", shapes.state(*listed))

    place.load()

    found = {
        one.key: (one.content, one.metadata["import"].get("value_type"))
        for one in place.entries().values()
    }
    assert found == {
        "k0": ("text", None),
        "k1": ('{"a":1}', "object"),
        "k2": ("3", "number"),
        "k3": ("null", "null"),
        "k4": ("not json", None),
    }


def test_i26_stale_copies_in_a_partition_count_for_nothing(place):
    value = shapes.state(shapes.state_entry("m1", "k", '"old"'), partition="facts")
    value["entries"] = [shapes.state_entry("m1", "k", '"new"')]
    place.write("swarm-memory/state.json", value)

    report = place.load()

    assert (report.found, place.contents()) == (1, {("default/facts", "k"): "new"})


def backup(*entries, moment, is_sound=True):
    value = shapes.state(*entries, timestamp=moment, version="1", metadata={"namespace": "default"})
    del value["namespace"]
    body = compact_json({"entries": value["entries"], "partitions": value["partitions"]})
    digest = hashlib.sha256(body.encode()).hexdigest()
    return value | {"checksum": digest if is_sound else "0" * 64}


def test_i27_of_a_cut_state_the_newest_sound_backup_is_read(place):
    entry = shapes.state_entry
    place.write("swarm-memory/state.json", b'{"namespace": "default", "entr')
    place.write(
        "swarm-memory/backups/backup_1.json",
        backup(entry("m1", "k", '"older"'), moment="2026-11-01T00:00:00Z"),
    )
    place.write(
        "swarm-memory/backups/backup_2.json",
        backup(entry("m1", "k", '"newer"'), moment="2026-11-02T00:00:00Z", is_sound=False),
    )

    report = place.load()

    assert place.contents() == {("default/default", "k"): "older"}
    assert report.warnings == ("read_from_backup",)
    assert (report.status, report.exit_code) == ("partial", 1)
    assert [one.status for one in report.stores] == ["damaged", "read"]


def test_i28_what_only_a_backup_has_is_read_only_where_that_is_wanted(place):
    entry = shapes.state_entry
    place.write("swarm-memory/state.json", shapes.state(entry("m1", "k1", '"kept"')))
    place.write(
        "swarm-memory/backups/backup_1.json",
        backup(entry("m2", "k2", '"deleted"'), moment="2026-11-01T00:00:00Z"),
    )

    assert place.load().imported == 1
    assert place.load(include_backups=True).imported == 1
    assert place.contents()["default/default", "k2"] == "deleted"


def digest(value):
    return hashlib.sha256(compact_json(value).encode()).hexdigest()


def test_i29_a_checksum_tells_what_a_compressed_value_is(place):
    real = {"n": [1e-7, 1e16, 2.5]}
    text = compact_json(real)
    cases = {"text": digest(text), "real": digest(text), "parsed": digest(real), "none": "0" * 64}
    values = {"text": text, "real": real, "parsed": text, "none": text}
    listed = [
        {
            "id": f"e-{name}",
            "key": name,
            "value": values[name],
            "namespace": "n",
            "createdAt": "2026-11-30T14:00:00.000Z",
            "compressed": True,
            "checksum": checksum,
        }
        for name, checksum in cases.items()
    ]
    place.write("memory/data/entries.json", listed)

    place.load()

    about = {one.key: (one.content, one.metadata["import"]) for one in place.entries().values()}
    assert {content for content, _ in about.values()} == {'{"n":[1e-7,10000000000000000,2.5]}'}
    kinds = {key: facts.get("value_type") for key, (_, facts) in about.items()}
    assert kinds == {"text": "object", "real": "object", "parsed": "object", "none": None}
    assert [key for key, (_, facts) in about.items() if facts.get("checksum")] == ["none"]


AGENTS = """CREATE TABLE memory_entries (id TEXT PRIMARY KEY, agent_id TEXT, session_id TEXT,
type TEXT, content TEXT, context TEXT, timestamp TEXT, tags TEXT, version INTEGER, parent_id TEXT,
metadata TEXT, created_at TEXT, updated_at TEXT)"""


def test_i30_of_a_hybrid_store_the_higher_version_arrives(place):
    values = ("e1", "a", "s", "insight", "old", "{}", "2025-06-01T12:34:56.789Z", "[]", 1)
    put = (
        "INSERT INTO memory_entries VALUES (?,?,?,?,?,?,?,?,?,NULL,NULL,NULL,'2026-01-01 00:00:00')"
    )
    place.database("claude-flow.db", AGENTS, rows=[(put, [values])])
    place.write("memory/index.json", {"e1": shapes.noted("e1", content="new", version=2)})

    report = place.load()

    assert place.contents() == {("agents/a", "e1"): "new"}
    assert [(item.reason, item.of) for item in report.items] == [("superseded", "e1")]


MARKDOWN = """# Memory Entry: e1

**Agent**: a
**Session**: s
**Type**: decision
**Timestamp**: 2025-06-01T12:34:56.789Z
**Version**: 3

**Tags**: db, two words

## Content

Say it.

## Context

```json
{"fake": true}
```

**Agent**: nobody

## Context

```json
{
  "real": 1
}
```
"""


def test_i31_only_the_last_fence_is_the_context(place):
    place.write("memory/agents/a/2025-06-01/x_e1.md", MARKDOWN.encode())

    place.load()

    (entry,) = place.entries().values()
    assert entry.content.startswith("Say it.\n\n## Context")
    assert '"fake"' in entry.content
    fields = entry.metadata["import"]["fields"]
    assert (fields["context"], fields["version"], fields["agent_id"]) == ({"real": 1}, 3, "a")
    assert entry.tags == ("db", "two words")


def test_a_rendering_with_fences_of_both_kinds_gives_both():
    text = MARKDOWN + '\n## Metadata\n\n```json\n{"m": 2}\n```\n'

    name, fields = parsed(text)

    assert (name, fields["context"], fields["metadata"]) == ("e1", {"real": 1}, {"m": 2})


def test_i32_an_agent_is_one_segment(place):
    place.write("memory/index.json", {"e1": shapes.noted("e1", agentId="team/a")})

    place.load()

    assert place.tenant.memory.list_namespaces() == ["agents/team%2Fa"]


def test_i33_tags_are_texts_each_once(place):
    place.write("memory/index.json", {"e1": shapes.noted("e1", tags=["a", None, "a", 7])})

    place.load()

    assert [one.tags for one in place.entries().values()] == [("a", "7")]


def later(place, *rows):
    put = "INSERT INTO memory_entries (id, key, namespace, content, embedding, status) VALUES "
    return place.database(".swarm/memory.db", shapes.LATER, rows=[(put + "(?,?,?,?,?,?)", rows)])


def test_i34_a_deleted_row_leaves_its_key_free(place):
    later(place, ("1", "gone", "n", "x", None, "deleted"), ("2", "here", "n", "y", None, "active"))

    report = place.load()

    assert [(item.ref, item.reason) for item in report.items] == [("1", "deleted")]
    assert place.tenant.remember("anew", namespace="n", key="gone")
    assert place.contents() == {("n", "here"): "y", ("n", "gone"): "anew"}


def test_i35_vectors_of_a_source_are_made_anew(place):
    rows = [
        (str(n), f"k{n}", "n", f"text {n}", json.dumps([0.1] * length), "active")
        for n, length in enumerate((384, 768, 128))
    ]
    later(place, *rows)

    place.load()

    for entry in place.entries().values():
        found = place.tenant.memory.retrieve(entry.id, include_embedding=True)
        assert len(found.embedding) == place.embedder.dimensions


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
    assert (pattern.type, pattern.metadata["import"]["fields"]["confidence"]) == ("procedural", 1.0)
    assert place.load().reasons == {"unchanged": 3}


def test_i37_an_entry_edited_since_stays_unless_it_is_to_be_overwritten(place):
    store(place, row("k1", "theirs"), row("k2", "other"))
    place.load()
    entry = place.entries()["default", "k1"]
    place.tenant.memory.update(entry.id, content="ours")

    assert place.load().reasons == {"conflict": 1, "unchanged": 1}
    with pytest.raises(ConflictError, match="nothing was stored"):
        place.load(on_conflict="fail")
    assert place.contents()["default", "k1"] == "ours"
    report = place.load(on_conflict="overwrite")
    assert (report.updated, report.imported, report.status) == (1, 0, "complete")
    assert place.contents()["default", "k1"] == "theirs"
    assert place.entries()["default", "k1"].version == 3


def test_a_conflict_keeps_an_import_that_is_to_fail_from_storing_anything(place):
    place.tenant.remember("ours", key="k900")
    store(place, *[row(f"k{n}", "theirs") for n in range(901)])

    with pytest.raises(ConflictError, match="default/k900"):
        place.load(on_conflict="fail", batch_size=100)
    assert place.contents() == {("default", "k900"): "ours"}


def test_i38_a_bad_row_fails_alone(place):
    rows = [row(f"k{n}") for n in range(1000)]
    rows[10] = (None, "x", "default", 1, 1)
    rows[20] = row("k20", "x" * (1024 * 1024 + 1))
    rows[30] = row("k30", sqlite3.Binary(b"\xff\xfe"))
    store(place, *rows)

    report = place.load()

    assert report.imported == 997
    assert [item.reason for item in report.items] == [
        *("missing_field", "limit_exceeded", "not_text")
    ]
    assert (report.status, report.failed) == ("partial", 3)


def test_an_entry_deleted_since_is_imported_again(place):
    store(place, row("k1"))
    place.load()
    (entry,) = place.entries().values()
    place.tenant.memory.delete(entry.id)

    assert place.load().imported == 1


def test_i6_two_imports_at_once_store_each_record_once(place):
    store(place, *[row(f"k{n}", f"text {n}") for n in range(300)])
    reports = []

    def work():
        reports.append(import_memories(place.folder, place.tenant, batch_size=20))

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert sum(report.imported for report in reports) == 300
    assert all(report.found == 300 and not report.failed for report in reports)
    assert {one.version for one in place.entries().values()} == {1}
    assert len(place.entries()) == 300


def test_i17_no_time_zone_of_the_process_changes_a_moment(place, monkeypatch):
    import time

    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    try:
        place.write(
            "export.json",
            {
                "results": [
                    shapes.memory("1", "a", created_at="2026-07-01 12:00:00"),
                    shapes.memory("2", "b", created_at="2026-07-01T12:00:00"),
                    shapes.memory("3", "c", created_at="2026-07-01T05:00:00-07:00"),
                ]
            },
        )
        place.load(place.folder / "export.json")
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()

    moments = {one.created_at for one in place.entries().values()}
    assert moments == {datetime(2026, 7, 1, 12, tzinfo=UTC)}


def test_a_namespace_given_is_above_all_others_and_part_of_the_ids(place):
    store(place, row("k1"))

    place.load()
    report = place.load(namespace="old/project")

    assert report.imported == 1
    assert set(place.entries()) == {("default", "k1"), ("old/project/default", "k1")}
    assert len({one.id for one in place.entries().values()}) == 2


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


def test_i5_a_killed_import_goes_on_and_embeds_nothing_twice(place):
    from hiermem_core.testing import FaultPlan, InjectedFault

    store(place, *[row(f"k{n}", f"text {n}") for n in range(100)])
    with FaultPlan("rows.before_commit", count=5), pytest.raises(InjectedFault):
        import_memories(place.folder, place.tenant, batch_size=10)
    assert len(place.entries()) == 30
    place.embedder.calls.clear()

    report = place.load(batch_size=10)

    assert (report.imported, report.reasons) == (70, {"unchanged": 30})
    embedded = [text for call in place.embedder.calls for text in call_texts(call)]
    assert sorted(text for text in embedded if text.startswith("text")) == sorted(
        f"text {n}" for n in range(30, 100)
    )


def call_texts(call):
    return call if isinstance(call, list | tuple) else [call]


def test_what_an_import_stores_is_found_by_word_and_by_meaning(place):
    store(place, row("k1", "The harbour is closed on Sundays"))

    place.load()

    (hit, *_) = place.tenant.recall("harbour Sundays")
    assert hit.key == "k1"


def test_trajectories_and_sessions_are_counted_and_named_as_unsupported(place):
    place.database(
        ".swarm/memory.db",
        "CREATE TABLE task_trajectories (task_id TEXT, agent_id TEXT, trajectory_json TEXT)",
        rows=[("INSERT INTO task_trajectories VALUES ('t1', 'a', '[]')", [()])],
    )

    report = place.load()

    assert [(one.ref, one.kind, one.reason) for one in report.items] == [
        ("t1", "session", "unsupported")
    ]
    assert report.exit_code == 3
