"""The choice of how the nearest vectors are found."""

import pytest

from hiermem_core.backends.planner import Planner

PLANNER = Planner(exact_limit=100, most_fetched=1000)


@pytest.mark.parametrize(
    ("matching", "total", "indexed", "in_memory", "way"),
    [
        (None, 100, False, True, "scan"),
        (None, 100, True, True, "scan"),
        (5, 101, True, False, "candidates"),
        (100, 10_000, False, False, "candidates"),
        (None, 101, True, True, "index"),
        (None, 101, False, True, "scan"),
        (None, 101, False, False, "blocks"),
    ],
)
def test_the_cheapest_way_is_chosen(matching, total, indexed, in_memory, way):
    chosen = PLANNER.way(matching=matching, total=total, indexed=indexed, in_memory=in_memory)

    assert chosen == way


@pytest.mark.parametrize("wanted", [1, 10, 400, 5000])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.01, 0.0])
def test_the_index_is_asked_for_more_and_more_up_to_the_most(wanted, share):
    sizes = PLANNER.fetch_sizes(wanted, share)

    assert sizes == sorted(set(sizes))
    assert sizes[-1] == PLANNER.most_fetched
    assert sizes[0] >= min(wanted, PLANNER.most_fetched)


def test_a_smaller_share_asks_for_more():
    firsts = [PLANNER.fetch_sizes(10, share)[0] for share in (1.0, 0.5, 0.1, 0.01)]

    assert firsts == [20, 40, 200, 1000]


def test_a_first_batch_holds_several_times_what_is_wanted():
    assert PLANNER.first_size(1) == 200
    assert PLANNER.first_size(100) == 400
    assert PLANNER.first_size(900) == 1000
    assert PLANNER.first_size(10, is_restricted=False) == 28


@pytest.mark.parametrize(
    ("share", "total", "is_plenty"), [(0.5, 1000, True), (0.1, 1000, False), (0.21, 1000, True)]
)
def test_far_more_rows_than_are_scanned_exactly_are_plenty(share, total, is_plenty):
    assert PLANNER.is_plenty(share, total) is is_plenty
