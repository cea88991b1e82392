"""Vectors by number in the collections of Chroma."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from core.vector_index import until, vector_for
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.errors import IndexUnavailableError, InvalidInputError
from hiermem_core.vector_index import probing
from hiermem_core.vector_index.chroma import ChromaIndex, collection_name
from hiermem_core.vector_index.connecting import embedded

VECTORS = np.stack([vector_for(seed) for seed in range(300)])


def cosines_of(vector, numbers):
    chosen = VECTORS[numbers]
    lengths = np.linalg.norm(chosen, axis=1) * np.linalg.norm(vector)
    return chosen @ vector / lengths


@pytest.fixture
def index(tmp_path):
    opened = ChromaIndex(embedded(tmp_path / "gen-1"))
    yield opened
    opened.close()


def filled(index, count=100, name="hm_a"):
    index.add(name, range(count), VECTORS[:count])
    return name


def test_nearest_gives_numbers_and_cosines_best_first(index):
    name = filled(index)

    numbers, cosines = index.nearest(name, VECTORS[7], 10)

    assert numbers[0] == 7
    assert len(numbers) == 10
    assert np.allclose(cosines, cosines_of(VECTORS[7], numbers), atol=1e-5)
    assert (np.diff(cosines) <= 0).all()


def test_a_collection_smaller_than_asked_gives_all_it_has(index):
    numbers, _ = index.nearest(filled(index, 3), VECTORS[0], 50)

    assert sorted(numbers) == [0, 1, 2]


def test_an_unknown_collection_is_empty(index):
    assert len(index.nearest("hm_none", VECTORS[0], 5)[0]) == 0
    assert index.count("hm_none") == 0
    assert len(index.numbers("hm_none")) == 0
    index.remove("hm_none", [1])
    index.drop("hm_none")


def test_adding_and_removing_twice_changes_nothing(index):
    name = filled(index)
    index.add(name, range(90, 110), VECTORS[90:110])
    index.remove(name, [5, 999])
    index.remove(name, [5])

    assert index.numbers(name).tolist() == [*range(5), *range(6, 110)]
    assert index.count(name) == 109


def test_a_removed_number_is_not_found_and_an_emptied_collection_answers(index):
    name = filled(index, 20)
    index.remove(name, range(10))
    left, _ = index.nearest(name, VECTORS[3], 20)
    index.remove(name, range(20))

    assert sorted(left) == [*range(10, 20)]
    assert len(index.nearest(name, VECTORS[3], 20)[0]) == 0


def test_among_leaves_out_numbers_that_are_not_there(index):
    name = filled(index)

    assert index.nearest(name, VECTORS[4], 5, among=[3, 4, 777])[0].tolist()[0] == 4
    assert set(index.nearest(name, VECTORS[4], 5, among=[3, 4, 777])[0]) == {3, 4}
    assert len(index.nearest(name, VECTORS[4], 5, among=[777])[0]) == 0
    assert len(index.nearest(name, VECTORS[4], 5, among=[])[0]) == 0


def test_more_than_one_of_chromas_batches_goes_in_and_out(index):
    count = index._most_at_once + 10
    matrix = np.random.default_rng(1).standard_normal((count, 4)).astype("f4")
    index.add("hm_b", range(count), matrix)
    full = index.count("hm_b")
    index.remove("hm_b", range(count - 1))

    assert full == count
    assert index.numbers("hm_b").tolist() == [count - 1]


def test_values_that_chroma_refuses_are_an_error_of_the_value(index):
    name = filled(index)

    with pytest.raises(InvalidInputError) as refused:
        index.add(name, [500], np.full((1, 16), np.nan, "f4"))
    with pytest.raises(InvalidInputError):
        index.add(name, [501], np.ones((1, 4), "f4"))
    with pytest.raises(InvalidInputError):
        index.nearest(name, np.ones(4, "f4"), 3)
    assert refused.value.__cause__ is not None
    assert not index.has_failed
    assert index.count(name) == 100


def test_what_was_added_is_there_after_reopening(tmp_path):
    index = ChromaIndex(embedded(tmp_path / "gen-1"))
    name = filled(index)
    index.close()
    index.close()
    again = ChromaIndex(embedded(tmp_path / "gen-1"))
    found = again.nearest(name, VECTORS[42], 1)[0].tolist()
    again.close()

    assert found == [42]
    with pytest.raises(IndexUnavailableError):
        index.count(name)


def test_two_folders_in_one_process_do_not_meet(tmp_path, index):
    other = ChromaIndex(embedded(tmp_path / "gen-2"))
    filled(index, 10)
    filled(other, 20)
    index.close()

    assert other.count("hm_a") == 20
    other.close()


def test_the_bulk_setting_ends_with_the_bulk(tmp_path):
    index = ChromaIndex(embedded(tmp_path / "gen-1"))
    index.begin_bulk("hm_a")
    before = index._handle("hm_a").configuration_json["hnsw"]["sync_threshold"]
    index.end_bulk("hm_a")
    index.close()
    again = ChromaIndex(embedded(tmp_path / "gen-1"))
    after = again._handle("hm_a").configuration_json["hnsw"]
    again.close()

    assert before == 10_000
    assert (after["sync_threshold"], after["space"], after["max_neighbors"]) == (
        1_000,
        "cosine",
        16,
    )


def test_no_more_collections_than_allowed_stay_open(tmp_path):
    handles = psutil.Process().num_fds
    before = handles()
    index = ChromaIndex(embedded(tmp_path / "gen-1"), most_open=4)
    for place in range(12):  # an index has files of its own from the first rewriting on
        index.add(f"hm_{place}", range(1_100), np.repeat(VECTORS[:275], 4, axis=0)[:, :4])
    found = [index.nearest(f"hm_{place}", VECTORS[5][:4], 1)[0].tolist() for place in range(12)]
    loaded, opened = len(index._loaded), handles() - before
    index.close()

    assert all(found)
    assert loaded <= 4
    assert opened < 40


def test_many_threads_ask_and_add_and_close_at_once(index):
    name = filled(index, 200)
    errors, found = [], []

    def ask(seed):
        rng = np.random.default_rng(seed)
        for number in rng.integers(0, 200, 20).tolist():
            try:
                found.append(number in index.nearest(name, VECTORS[number], 3)[0])
            except IndexUnavailableError as error:
                errors.append(str(error))

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, seed) for seed in range(8)]
        index.add(name, range(200, 300), VECTORS[200:300])
        index.remove(name, range(250, 300))
        until(lambda: len(found) >= 40)
        index.close()
        for one in asked:
            one.result()

    assert all(found)
    assert all("closed" in error for error in errors)


def test_twenty_opens_and_closes_leave_no_file_and_no_thread(tmp_path):
    process = psutil.Process()

    def open_and_close():
        index = ChromaIndex(embedded(tmp_path / "gen-1"))
        filled(index, 10)
        index.close()

    open_and_close()
    before = (process.num_fds(), process.num_threads())
    for _ in range(20):
        open_and_close()

    assert until(lambda: process.num_fds() <= before[0] + 2)
    assert until(lambda: process.num_threads() <= before[1] + 2)


def test_a_broken_database_of_chroma_is_an_index_error_without_a_path(tmp_path):
    folder = tmp_path / "gen-1"
    folder.mkdir()
    (folder / "chroma.sqlite3").write_bytes(b"this is no database" * 100)

    with pytest.raises(IndexUnavailableError) as failed:
        ChromaIndex(embedded(folder))
    assert failed.value.__cause__ is not None
    assert str(tmp_path) not in str(failed.value)


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_collections_name_stands_for_one_tenant_and_embedder(tenant, embedder, other, another):
    is_same = (tenant, embedder) == (other, another)

    assert (collection_name(tenant, embedder) == collection_name(other, another)) is is_same
    assert collection_name(tenant, embedder).isascii()


def test_the_canary_leaves_no_trace(index):
    assert probing.canary_message(index) == ""
    assert index.count(probing.CANARY) == 0
    index.close()
    assert "closed" in probing.canary_message(index)
