"""Anything at all is given to everything public: it answers, or raises a typed error, no other.

`make fuzz` tries 3,000 examples each.
"""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiermem_core import ApproximateCounter, HierMem, HierMemError
from hiermem_core.importing import import_memories
from hiermem_core.testing import FakeEmbedder

if TYPE_CHECKING:
    from pathlib import Path

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
ODD = st.sampled_from(
    [
        *(
            "",
            " ",
            "\x00",
            "\ud83d",
            "'",
            '"',
            "--",
            ";",
            "%",
            "_",
            "*",
            "NEAR(",
            "a:b",
            "$.",
            "$or",
        ),
        *("a/b", "/a", "a//b", "..", "\u202e", "\u2028", "1e999", "NaN", "' OR 1=1 --", "?", ":x"),
    ]
)
TEXTS = st.text(max_size=12) | ODD | st.text(st.characters(), max_size=6)
NUMBERS = (
    st.integers() | st.floats() | st.booleans() | st.none() | st.sampled_from([2**63, -(2**63) - 1])
)
NAMES = st.sampled_from(
    ["$eq", "$ne", "$gt", "$gte", "$in", "$nin", "$and", "$or", "$not", "$exists", "$contains", "n"]
)
VALUES = st.recursive(
    TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXTS, inner, max_size=4),
    max_leaves=12,
)
ANYTHING = VALUES | st.binary(max_size=6) | st.datetimes() | st.tuples(VALUES)
FIELDS = st.sampled_from(
    [
        *("mode", "vector", "namespace", "subtree", "filter", "type", "tags", "key", "source"),
        *("min_trust", "user_id", "created_after", "updated_before", "limit", "offset"),
        *("threshold", "fusion", "explain", "include_embedding"),
    ]
)
ENTRY = st.sampled_from(
    [
        *("content", "id", "namespace", "type", "key", "tags", "metadata", "passages", "embedding"),
        *("created_at", "ttl", "source", "trust", "derived_from", "user_id"),
    ]
)
TURN = st.sampled_from(
    [
        *("role", "content", "tool_calls", "tool_call_id", "name", "id", "metadata", "parts"),
        *("created_at", "user_id", "pinned", "source", "function_call", "refusal"),
    ]
)
ROLES = st.sampled_from(["user", "assistant", "tool", "system", "developer", "function"])


@pytest.fixture(scope="module")
def tenant(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    with HierMem.open(
        folder, counter=ApproximateCounter(), embedder=FakeEmbedder(16), busy_seconds=5
    ) as hiermem:
        one = hiermem.tenant("acme")
        one.memory.bulk_insert(
            [{"content": f"entry {n}", "metadata": {"n": n, "s": str(n)}} for n in range(20)]
        )
        one.thread("t").append([{"role": "user", "content": "hello"}])
        yield one


def answers(call, *arguments, **options):
    """Make a call; whatever it raises must be ours, and hold nothing of SQL."""
    try:
        return call(*arguments, **options)
    except HierMemError as error:
        text = f"{error} {error.__dict__}".lower()
        assert "sqlalchemy" not in text
        assert "select " not in text
        return None


@SHARED
@given(ANYTHING)
def test_filters(tenant, value):
    answers(tenant.memory.search, filter=value)
    answers(tenant.memory.search, "entry", filter={"n": value})
    answers(tenant.recall, "entry", filter={"s": {"$in": value}})


@SHARED
@given(ANYTHING, TEXTS)
def test_namespaces(tenant, value, text):
    answers(tenant.memory.search, namespace=value)
    answers(tenant.memory.list_namespaces, value)
    answers(tenant.memory.store, "text", namespace=value, id="fuzzed")
    answers(tenant.memory.retrieve, namespace=value, key=text)
    answers(tenant.memory.delete, namespace=text, key="k")
    answers(tenant.forget, namespace=value, dry_run=True)


@SHARED
@given(TEXTS | ANYTHING, st.dictionaries(FIELDS, ANYTHING, max_size=3))
def test_queries(tenant, text, fields):
    answers(tenant.memory.search, text, **fields)
    answers(tenant.recall, text)
    if isinstance(text, str):
        for mode in ("keyword", "semantic", "hybrid", "exact", "prefix"):
            answers(tenant.memory.search, text, mode=mode)


@SHARED
@given(st.dictionaries(ENTRY, ANYTHING, max_size=4), TEXTS)
def test_entries(tenant, fields, text):
    answers(tenant.memory.store, {"content": text, "id": "fuzzed", **fields})
    answers(tenant.memory.update, "fuzzed", {k: v for k, v in fields.items() if k != "id"})
    answers(tenant.memory.bulk_insert, [fields, {"content": text, "id": "fuzzed"}])
    answers(tenant.memory.retrieve, text)
    answers(tenant.memory.bulk_get, [text])


@SHARED
@given(st.lists(st.dictionaries(TURN, ANYTHING | ROLES, max_size=5), max_size=3), ROLES, TEXTS)
def test_turns(tenant, turns, role, text):
    thread = tenant.thread("fuzzed")
    answers(thread.append, turns)
    answers(thread.append, [{"role": role, **turn} for turn in turns])
    answers(thread.append, [{"role": role, "content": text}])
    answers(thread.context, current=text, budget_tokens=200)
    answers(thread.context, current=turns, budget_tokens=200)
    answers(thread.recall, text)
    thread.delete()


@SHARED
@given(TEXTS | ANYTHING, ANYTHING, NUMBERS)
def test_patterns_and_sessions(tenant, name, value, number):
    patterns = tenant.patterns
    answers(patterns.learn, name, value)
    answers(patterns.learn, name, {"a": value}, text=name, confidence=number, user_id=value)
    answers(patterns.reinforce, name, success=value)
    answers(patterns.find, name, k=number)
    answers(patterns.list, min_confidence=number, limit=number)
    answers(patterns.delete, name)
    answers(tenant.sessions, value, number)
    answers(lambda: tenant.session(name).start(value))
    session = tenant.session("fuzzed")
    answers(session.log, name, state=value, next_state=value, reward=number, id=value)
    answers(session.log, "act", state=value, user_id=name)
    answers(session.steps, after=number)
    answers(session.end, value, {"a": value})
    session.delete()


@SHARED
@given(ANYTHING, ANYTHING)
def test_names_and_figures(tenant, one, other):
    answers(lambda: tenant.thread(one).turns(last=other))
    answers(tenant.memory.bulk_delete, one)
    answers(tenant.memory.bulk_update, other)
    answers(tenant.memory.purge_expired, limit=one)
    answers(tenant.memory.wait_for_index, other if not isinstance(other, float) else 0)
    answers(tenant.forget, ids=one, user_id=other, dry_run=True)


@SHARED
@given(
    VALUES | st.lists(VALUES, max_size=4),
    st.sampled_from(["talk.jsonl", "a.json", "memory-store.json", "b.md", "c.db"]),
    st.binary(max_size=40),
)
def test_import_files(tenant, tmp_path_factory, value, name, noise):
    folder = tmp_path_factory.mktemp("source")
    lines = value if isinstance(value, list) else [value]
    texts = [json.dumps(line) for line in lines]
    for content in (json.dumps(value).encode(), "\n".join(texts).encode(), noise):
        (folder / name).write_bytes(content)
        answers(import_memories, folder / name, tenant, dry_run=True)
        answers(import_memories, folder, tenant)


@SHARED
@given(st.integers(0, 2**32), st.sampled_from(["export", "database"]))
def test_import_files_that_were_damaged(tenant, tmp_path_factory, seed, kind):
    folder = tmp_path_factory.mktemp("damaged")
    path = _export_of(tenant, folder) if kind == "export" else _database_in(folder)
    dice = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(dice.randint(1, 20)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path.write_bytes(bytes(data[: dice.randint(1, len(data))] if dice.random() < 0.3 else data))

    answers(import_memories, path, tenant, dry_run=True)
    answers(tenant.import_export, path, dry_run=True)


def _export_of(tenant, folder) -> Path:
    tenant.export(folder / "export.jsonl")
    return folder / "export.jsonl"


def _database_in(folder) -> Path:
    path = folder / "memory.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE memory_entries (id TEXT, key TEXT, value TEXT, namespace TEXT,"
            " metadata TEXT,"
            " created_at INTEGER, updated_at INTEGER, accessed_at INTEGER, access_count INTEGER,"
            " ttl INTEGER, expires_at INTEGER)"
        )
        rows = [(f"i{n}", f"k{n}", f'"value {n}"', "n", "{}", *[n] * 6) for n in range(5)]
        connection.executemany(f"INSERT INTO memory_entries VALUES ({', '.join('?' * 11)})", rows)
    return path
