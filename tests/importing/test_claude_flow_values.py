"""What a record of claude-flow becomes: its times, expiry, namespace, key, tags."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from importing import shapes
from importing.stores import row, simple, store

LATER = datetime(2027, 1, 1, tzinfo=UTC)


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

    memory = place.tenant.memory
    found = [memory.retrieve(one.id, include_embedding=True) for one in place.entries().values()]
    assert [len(one.embedding) for one in found] == [place.embedder.dimensions] * 3


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
