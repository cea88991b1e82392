"""The unused ends of Chroma's files, which hold what was in memory before."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from core.vector_index import World, opened_database, vector_for

from hiermem_core.errors import IndexUnavailableError
from hiermem_core.vector_index.files import look_at_files
from hiermem_core.vector_index.tails import Tails


def segment_in(folder, *, vectors=2, room=4, size=8, version=1):
    """Make a segment's files, full of what is not zero."""
    segment = folder / "segment"
    segment.mkdir()
    (segment / "header.bin").write_bytes(struct.pack("<iQQQQ", version, 0, room, vectors, size))
    (segment / "data_level0.bin").write_bytes(b"x" * room * size)
    (segment / "length.bin").write_bytes(b"y" * room * 4)
    return segment


def test_what_is_behind_the_last_vector_is_wiped_and_nothing_else(tmp_path):
    segment = segment_in(tmp_path)
    files = Tails().files_of(tmp_path)

    assert (segment / "data_level0.bin").read_bytes() == b"x" * 16 + bytes(16)
    assert (segment / "length.bin").read_bytes() == b"y" * 8 + bytes(8)
    assert files == look_at_files(tmp_path)


@pytest.mark.parametrize("facts", [{"version": 2}, {"vectors": 5}])
def test_files_of_another_kind_are_left_alone(tmp_path, facts):
    segment = segment_in(tmp_path, **facts)
    Tails().files_of(tmp_path)

    assert (segment / "data_level0.bin").read_bytes() == b"x" * 32


def test_a_segment_without_its_files_is_left_alone(tmp_path):
    segment = segment_in(tmp_path)
    (segment / "length.bin").unlink()
    (segment / "header.bin").write_bytes(b"short")
    Tails().files_of(tmp_path)
    Tails().files_of(tmp_path / "none")

    assert (segment / "data_level0.bin").read_bytes() == b"x" * 32


def test_each_file_is_wiped_once_a_size(tmp_path):
    segment = segment_in(tmp_path)
    data = segment / "data_level0.bin"
    tails = Tails()
    tails.files_of(tmp_path)
    data.write_bytes(b"z" * 32)
    tails.files_of(tmp_path)
    left_alone = data.read_bytes()
    data.write_bytes(b"z" * 40)
    tails.files_of(tmp_path)

    assert left_alone == b"z" * 32
    assert data.read_bytes() == b"z" * 16 + bytes(24)


def test_a_file_that_cannot_be_written_is_an_error_of_the_index(tmp_path):
    segment = segment_in(tmp_path)
    (segment / "data_level0.bin").unlink()
    (segment / "data_level0.bin").mkdir()

    with pytest.raises(IndexUnavailableError):
        Tails().files_of(tmp_path)


def filled(folder, seeds, *, tenants=3):
    """Fill an index with a vector a seed and tenant, close it, and return its files' bytes."""
    with opened_database(folder) as database:
        world = World(database, folder)
        for tenant in range(tenants):
            world.store((seed + tenant for seed in seeds), tenant=f"tenant {tenant}")
            world.indexer.drain()
        world.indexer.close()
    files = (folder / "chroma").rglob("*")
    return b"".join(path.read_bytes() for path in files if path.is_file())


def test_a_new_index_holds_nothing_of_one_that_was_closed_before(tmp_path):
    left = []
    for number in range(4):
        first = range(1_000 * number, 1_000 * number + 20)
        before = filled(tmp_path / f"old {number}", first)
        after = filled(tmp_path / f"new {number}", [1_000 * number + 500])
        vectors = np.stack([vector_for(seed) for seed in range(first.start, first.stop + 2)])
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        parts = [
            row[place : place + 3].tobytes() for row in [*vectors, *units] for place in range(13)
        ]
        assert any(part in before for part in parts)
        left += [part for part in parts if part in after]

    assert left == []


def test_an_index_whose_ends_were_wiped_finds_all_it_holds(tmp_path):
    with opened_database(tmp_path) as database:
        world = World(database, tmp_path)
        numbers = world.store(range(1_500))
        world.indexer.drain()
        world.store(range(1_500, 1_510))
        world.indexer.close()
        again = World(database, tmp_path)
        again.indexer.drain()
        again.store([2_000])
        again.indexer.drain()
        found = [again.nearest(vector_for(seed))[0] for seed in range(0, 1_500, 100)]
        state = again.state()
        again.indexer.close()

    assert found == [numbers[seed] for seed in range(0, 1_500, 100)]
    assert state.indexed == 1_511
    assert np.all(np.diff(numbers) > 0)
