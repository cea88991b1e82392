"""Quotas, on each backend, in two processes, and what is counted in an older location."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

import pytest
from core.children import finish, start
from core.memory_backends import EVERY, on
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import ApproximateCounter, HierMem, Quota, QuotaExceededError
from hiermem_core.models.quotas import Allowance, Usage, octets
from hiermem_core.testing.contracts import QuotaContract

WRITER = """
from hiermem_core import ApproximateCounter, HierMem, Quota, QuotaExceededError
writer, rejected = sys.argv[2], 0
with HierMem.open(sys.argv[1], counter=ApproximateCounter(), local_embedder=False,
                  quota=Quota(max_entries=100, max_bytes=100_000)) as hiermem:
    print("ready", flush=True)
    sys.stdin.readline()
    memory = hiermem.tenant("acme").memory
    for number in range(80):
        try:
            memory.store(f"entry {number} of writer {writer}")
        except QuotaExceededError:
            rejected += 1
print(rejected)
"""


class TestQuotas(QuotaContract):
    opened = on(*EVERY)


def test_a71_of_two_processes_exactly_the_quota_is_stored(tmp_path):
    location = tmp_path / "memory"
    HierMem.open(location, counter=ApproximateCounter(), local_embedder=False).close()
    children = [start(WRITER, location, number) for number in range(2)]
    for child in children:
        child.stdout.readline()
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()

    rejected = [int(printed) for _, printed, _ in map(finish, children)]

    with HierMem.open(location, counter=ApproximateCounter(), local_embedder=False) as hiermem:
        assert hiermem.tenant("acme").memory.stats().entries == 100
    assert sum(rejected) == 60


def test_what_was_written_without_a_quota_is_counted(tmp_path):
    options = {"counter": ApproximateCounter(), "local_embedder": False}
    with HierMem.open(tmp_path, **options) as hiermem:
        hiermem.tenant("acme").memory.bulk_insert(["one", "two"])
        hiermem.tenant("acme").thread("t").append([{"role": "user", "content": "three"}])

    with HierMem.open(tmp_path, quota=Quota(max_entries=2, max_bytes=20), **options) as hiermem:
        with pytest.raises(QuotaExceededError):
            hiermem.tenant("acme").memory.store("three")
        with pytest.raises(QuotaExceededError) as refused:
            hiermem.tenant("acme").thread("t").append([{"role": "user", "content": "four"}])

    assert refused.value.used == len("one{}[]two{}[]three")


def test_the_count_equals_what_is_there_after_any_kind_of_write(tmp_path):
    options = {"counter": ApproximateCounter(), "local_embedder": False}
    with HierMem.open(tmp_path / "one", **options) as hiermem:
        acme = hiermem.tenant("acme")
        ids = acme.memory.bulk_insert([{"content": f"é {n}", "tags": ["a"]} for n in range(9)]).ids
        acme.memory.update(ids[0], content="longer than before", passages=["one", "two"])
        acme.memory.bulk_delete(ids[1:3])
        acme.memory.store("again", id=ids[3], metadata={"a": "b" * 50})
        acme.thread("t").append(
            [{"role": "user", "content": "said", "id": str(n)} for n in range(9)]
        )
        acme.thread("t").append([{"role": "user", "content": "other", "x": 1}], removing=["3"])
        acme.thread("t").edit_turn("4", "edited, and longer")
        acme.thread("t").delete_turns(["5"])
        acme.thread("t").replace([{"role": "user", "content": "anew"}])
        acme.export(tmp_path / "export.jsonl")
        hiermem.tenant("twin").import_export(tmp_path / "export.jsonl")
        acme.memory.forget(ids=[ids[4]])

    tables = sqlite3.connect(tmp_path / "one" / "memory.db")
    counted = dict(tables.execute("SELECT tenant, entries || ' ' || bytes FROM tenants"))
    entries = """SELECT tenant, count(*), sum(length(CAST(value || metadata || tags ||
        coalesce(passages, '') AS BLOB))) FROM memory_entries GROUP BY tenant"""
    said = """SELECT tenant, sum(length(CAST(coalesce(content, '') || coalesce(body, '') ||
        coalesce(dump, '') AS BLOB))) FROM turns JOIN threads ON number = thread GROUP BY tenant"""
    turns = dict(tables.execute(said))
    there = {name: f"{n} {size + turns[name]}" for name, n, size in tables.execute(entries)}
    tables.close()
    assert counted == there


def test_an_older_location_is_counted_when_it_is_migrated(tmp_path):
    options = {"counter": ApproximateCounter(), "local_embedder": False}
    with HierMem.open(tmp_path, **options) as hiermem:
        hiermem.tenant("acme").memory.store("one")
        hiermem.tenant("acme").thread("t").append([{"role": "user", "content": "two"}])
        hiermem.tenant("other").thread("t").append([{"role": "tool", "content": "three"}])
    with sqlite3.connect(tmp_path / "memory.db") as tables:
        kept = "SELECT tenant, entries, bytes FROM tenants ORDER BY tenant"
        before = tables.execute(kept).fetchall()
        tables.execute("UPDATE metadata SET value = '5' WHERE key = 'schema_version'")
        tables.execute("DELETE FROM tenants WHERE tenant = 'other'")
        for column in ("entries", "bytes", "minute_ms", "minute_writes"):
            tables.execute(f"ALTER TABLE tenants DROP COLUMN {column}")

    HierMem.open(tmp_path, **options).close()

    with sqlite3.connect(tmp_path / "memory.db") as tables:
        assert tables.execute(kept).fetchall() == before


@given(st.integers(0, 10), st.lists(st.tuples(st.integers(-3, 5), st.integers(-9, 9)), max_size=20))
def test_an_allowance_is_never_overdrawn_by_what_grows(limit, wishes):
    allowance = Allowance(Quota(max_entries=limit, max_bytes=limit * 2), Usage(), Usage, now_ms=1)

    for entries, size in wishes:
        before = allowance.usage
        with suppress(QuotaExceededError):
            allowance.take(entries=entries, size=size, writes=1)

        after = allowance.usage
        is_refused = after == before
        assert after.writes == before.writes + (not is_refused)
        assert is_refused or entries <= 0 or after.entries <= limit
        assert is_refused or size <= 0 or after.bytes <= limit * 2


@given(st.none() | st.text(st.characters(codec="utf-8")))
def test_octets_are_those_of_utf8(text):
    assert octets(text) == len((text or "").encode())
