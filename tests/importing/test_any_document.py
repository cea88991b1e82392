"""Documents and tables of any content: nothing raises, and each record is counted once."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from importing import shapes

from hiermem_core import HierMem, InvalidInputError
from hiermem_core.importing import import_memories
from hiermem_core.importing.folders import PATHS

NAMES = (
    *("id", "key", "value", "type", "data", "content", "entries", "partitions", "namespace"),
    *("metadata", "agentId", "sessionId", "memory", "results", "role", "messages", "store"),
    *("class_name", "chat_history", "lc", "kwargs", "version", "checksum", "createdAt"),
    *("compressed", "tags", "timestamp", "domain", "blocks", "expiresAt", "nodeId"),
)
SCALARS = st.sampled_from(
    [None, True, 0, -1, 7, 2.5, 1e300, 2**70, "", " ", "a", "a/b", "\ud800", "human", "user", "[1]"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=8),
    ),
    max_leaves=25,
)
CELLS = st.one_of(
    st.sampled_from([None, 0, -5, 2.5, "", "a", "[1]", '{"a": [1]}', b"\xff", 1796048835, "soon"]),
    st.floats(allow_nan=False),
)


def counted(source, **options):
    with HierMem.open(":memory:") as memory:
        alice = memory.tenant("alice")
        dry = import_memories(source, alice, batch_size=3, dry_run=True, **options)
        report = import_memories(source, alice, batch_size=3, **options)
        entries = alice.memory.stats().entries
        turns = sum(alice.thread(one.thread_id).count(None) for one in alice.threads())
        again = import_memories(source, alice, batch_size=5, **options)
    assert report.found == report.imported + report.skipped + report.failed
    assert report.imported == entries + turns
    assert (dry.imported, dry.reasons) == (report.imported, report.reasons)
    assert again.imported == 0
    json.dumps(report.to_dict())


@given(VALUES)
def test_whatever_a_document_holds_each_record_is_counted_once(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("source") / "any.json"
    path.write_text(json.dumps(value))
    try:
        counted(path, all_users=True)
    except InvalidInputError as error:
        assert error.name in {"source", "format"}  # noqa: PT017 - the only ones it may be refused for


@pytest.mark.parametrize("name", [name for name in PATHS if name.endswith(".json")])
@given(value=VALUES)
def test_nothing_in_a_known_place_is_refused(tmp_path_factory, name, value):
    path = tmp_path_factory.mktemp("project") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))

    counted(path.parents[len(name.split("/")) - 1], all_users=True)


TABLES = {
    "memory_entries": shapes.STORE,
    "later": shapes.LATER,
    "collective_memory": shapes.COLLECTIVE,
    "patterns": shapes.PATTERNS,
    "message_store": shapes.LANGCHAIN,
    "llama_index_memory": shapes.LLAMAINDEX,
    "history": shapes.MEM0,
    "messages": shapes.MEM0_MESSAGES,
}


@pytest.mark.parametrize("table", TABLES)
@given(data=st.data())
def test_whatever_a_table_holds_each_row_is_counted_once(tmp_path_factory, table, data):
    path = tmp_path_factory.mktemp("source") / "any.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(TABLES[table])
        name = TABLES[table].split()[2]
        columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
        rows = data.draw(st.lists(st.tuples(*[CELLS] * len(columns)), min_size=1, max_size=6))
        marks = ",".join("?" * len(columns))
        for row in rows:
            try:
                connection.execute(f"INSERT INTO {name} VALUES ({marks})", row)
            except sqlite3.IntegrityError:
                continue

    counted(path, all_users=True)
