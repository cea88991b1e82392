"""A codec on PostgreSQL: what the server is given, and that all else is as without one."""

from __future__ import annotations

from contextlib import closing

import pytest
from core.memory_backends import CODEC, on
from core.test_codec import SAID, WORD, learned, opened, use

from hiermem_core import ApproximateCounter, ConfigurationError, HierMem, move_memories
from hiermem_core.testing.contracts import (
    DuplicateContract,
    EntryContract,
    ForgettingContract,
    QuotaContract,
    ThreadStoreContract,
)


class TestEntries(EntryContract):
    opened = on("postgres_sealed")


class TestDuplicates(DuplicateContract):
    opened = on("postgres_sealed")


class TestForgetting(ForgettingContract):
    opened = on("postgres_sealed")


class TestQuotas(QuotaContract):
    opened = on("postgres_sealed")


class TestThreads(ThreadStoreContract):
    @pytest.fixture
    def hiermem(self, clock, location):
        options = {"clock": clock, "counter": ApproximateCounter(), "codec": CODEC}
        with HierMem.open(location, **options) as hiermem:
            yield hiermem


def test_no_table_holds_a_word_of_what_was_said(location):
    import psycopg

    with opened(location, **learned(), audit=True) as hiermem:
        use(hiermem)
        assert WORD in hiermem.tenant("alice").thread("t1").state().summary
    url, _, schema = location.replace("+psycopg", "").partition("?schema=")
    with closing(psycopg.connect(url)) as connection:
        named = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
        tables = [name for (name,) in connection.execute(named, (schema,))]
        rows = {
            name: [row for (row,) in connection.execute(f'SELECT t::text FROM {schema}."{name}" t')]
            for name in tables
        }

    assert sum(map(len, rows.values())) > 40
    traces = (WORD.lower(), "象", "größer", "fish")
    found = [n for n, kept in rows.items() for row in kept if any(t in row.lower() for t in traces)]
    assert found == []


def test_a_location_on_a_server_opens_with_its_codec_and_no_other(location):
    with opened(location) as hiermem:
        hiermem.tenant("alice").remember(SAID)

    with pytest.raises(ConfigurationError, match="open it with the codec"):
        HierMem.open(location)


def test_a_file_is_moved_into_a_sealed_server_and_back(tmp_path, location):
    with opened(tmp_path / "plain", None, **learned()) as hiermem:
        use(hiermem)
    move_memories(tmp_path / "plain", location, target_codec=CODEC)
    move_memories(location, tmp_path / "back", source_codec=CODEC)

    exports = []
    for name in ("plain", "back"):
        with opened(tmp_path / name, None) as hiermem:
            hiermem.tenant("alice").export(tmp_path / f"{name}.jsonl")
            exports.append((tmp_path / f"{name}.jsonl").read_bytes().split(b"\n", 1)[1])
    assert exports[0] == exports[1]
