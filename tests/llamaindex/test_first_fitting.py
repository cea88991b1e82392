"""The search for the cut of a window."""

from hypothesis import given
from hypothesis import strategies as st

from llamaindex_hiermem.window import first_fitting


@given(places=st.integers(0, 60), first=st.integers(0, 60), guess=st.integers(0, 60))
def test_the_first_place_that_fits_is_found_from_any_guess(places, first, guess):
    asked = []

    def fits(place):
        asked.append(place)
        return place >= first

    assert first_fitting(places, min(guess, places), fits) == min(first, places)
    assert len(asked) == len(set(asked))
    if guess == first < places:
        assert len(asked) <= 2
