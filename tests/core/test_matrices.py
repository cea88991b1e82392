"""Vectors in memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import HierMem
from hiermem_core.backends.matrices import (
    Matrices,
    Matrix,
    best,
    cosines_of,
    length_of,
    products,
    unit_of,
    units_of,
)

DICE = np.random.default_rng(3)


def records(count, dimension=8, start=1):
    vectors = DICE.standard_normal((count, dimension)).astype("<f4")
    return vectors, [
        (start + place, 100 + place, vector.tobytes(), length_of(vector))
        for place, vector in enumerate(vectors)
    ]


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0]), max_size=40), st.integers(0, 50))
def test_the_best_are_in_order_with_everything_that_ties_with_the_last(cosines, count):
    array = np.array(cosines, dtype=np.float32)

    places = best(array, count).tolist()

    ranked = sorted(range(len(cosines)), key=lambda place: (-cosines[place], place))
    edge = cosines[ranked[min(count, len(ranked)) - 1]] if count and ranked else 2.0
    assert places == [place for place in ranked if cosines[place] >= edge]


def test_a_matrix_grows_and_keeps_what_it_had():
    vectors, rows = records(3000)
    matrix = Matrix(8, capacity=2)
    for start in range(0, 3000, 700):
        matrix.add(rows[start : start + 700])

    unit = unit_of(vectors[7])

    assert len(matrix) == 3000
    assert matrix.last == 3000
    assert matrix.numbers.tolist() == list(range(1, 3001))
    assert int(np.argmax(matrix.cosines(unit))) == 7


def test_cosines_of_records_are_those_of_a_matrix():
    vectors, rows = records(500, dimension=384)
    matrix = Matrix(384)
    matrix.add(rows)
    unit = unit_of(vectors[3])

    numbers, cosines = cosines_of(rows, unit)

    assert numbers.tolist() == matrix.numbers.tolist()
    assert np.abs(cosines - matrix.cosines(unit)).max() <= 2e-6


@pytest.mark.parametrize("count", [0, 1, 20, 21, 22, 1000])
@pytest.mark.parametrize("dimension", [1, 384, 8192, 10_000])
def test_products_are_those_of_numpy(count, dimension):
    matrix = DICE.standard_normal((count, dimension)).astype("f4")
    vector = DICE.standard_normal(dimension).astype("f4")

    assert products(matrix, vector) == pytest.approx(matrix @ vector, rel=1e-4, abs=1e-3)


def test_no_records_have_no_cosines():
    numbers, cosines = cosines_of([], unit_of(np.ones(3, np.float32)))

    assert not len(numbers)
    assert not len(cosines)


@pytest.mark.parametrize("scale", [1e-40, 1e-20, 1.0, 1e20, 1e37])
def test_a_vector_of_any_length_has_its_direction(scale):
    vector = np.array([3.0, 4.0], dtype=np.float32) * np.float32(scale)

    unit = units_of([vector.tobytes()], [length_of(vector)])[0]

    assert unit == pytest.approx([0.6, 0.8], abs=1e-3)
    assert unit_of(vector) == pytest.approx([0.6, 0.8], abs=1e-3)


def test_a_matrix_above_half_the_limit_does_not_fit():
    matrices = Matrices(limit=8 * 4 * 1000)

    assert matrices.fits(500, 8)
    assert not matrices.fits(501, 8)


def test_what_is_forgotten_is_read_again(tmp_path):
    with HierMem.open(tmp_path / "memory") as hiermem:
        memory = hiermem.tenant("a").memory
        memory.store("one", embedding=[1.0, 0.0])
        search = hiermem.tenant("a")._services.turns._search
        memory.search(vector=[1.0, 0.0])
        matrices = search._matrices

        held = matrices.size_of("a", "given (2)")
        search.forget("a")

        assert held == 1
        assert matrices.size_of("a", "given (2)") is None
        assert [hit.content for hit in memory.search(vector=[1.0, 0.0])] == ["one"]
