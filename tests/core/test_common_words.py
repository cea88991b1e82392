"""Common words are left out of keyword searches over many rows."""

import pytest

from hiermem_core import HierMem
from hiermem_core.backends import common_words
from hiermem_core.testing.clocks import FakeClock

ROWS = 200


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setattr(common_words, "LEAST_ROWS", 100)
    with HierMem.open(tmp_path / "memory", backend="sqlite", clock=FakeClock()) as hiermem:
        memory = hiermem.tenant("a").memory
        memory.bulk_insert(
            f"river {'otter' if place < 5 else 'stone'} {place}" for place in range(ROWS)
        )
        yield memory


def test_a_common_word_beside_a_rare_one_is_left_out(memory):
    found = memory.search("river otter", mode="keyword", limit=100)

    assert sorted(hit.content.split()[1] for hit in found) == ["otter"] * 5


def test_common_words_alone_are_looked_up(memory):
    assert len(memory.search("river", mode="keyword", limit=500)) == ROWS
    assert len(memory.search("river stone", mode="keyword", limit=500)) == ROWS


def test_a_word_that_has_become_common_is_left_out_once_the_rows_have_grown(memory):
    before = memory.search("otter 3", mode="keyword", limit=500)
    memory.bulk_insert(f"otter again {place}" for place in range(ROWS))

    after = memory.search("otter 3", mode="keyword", limit=500)

    assert len(before) == 5
    assert len(after) == 2


def test_with_few_rows_every_word_is_looked_up(tmp_path):
    with HierMem.open(tmp_path / "memory", backend="sqlite") as hiermem:
        memory = hiermem.tenant("a").memory
        memory.bulk_insert(f"river {'otter' * (place < 5)}{place}" for place in range(50))

        assert len(memory.search("river otter0", mode="keyword", limit=100)) == 50
