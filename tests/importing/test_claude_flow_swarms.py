"""What a swarm keeps: partitions, backups, compressed values, versions, renderings."""

from __future__ import annotations

import hashlib

from importing import shapes

from hiermem_core.importing.claude_flow.memory_markdown import parsed
from hiermem_core.importing.values import compact_json


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
