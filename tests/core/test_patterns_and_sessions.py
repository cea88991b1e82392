"""Patterns and sessions, on each backend."""

from __future__ import annotations

from core.memory_backends import EVERY, on
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import Pattern
from hiermem_core.models.moments import from_milliseconds
from hiermem_core.models.patterns import reinforced
from hiermem_core.testing.contracts import PatternContract, SessionContract


class TestPatterns(PatternContract):
    opened = on(*EVERY)


class TestSessions(SessionContract):
    opened = on(*EVERY)


@given(outcomes=st.lists(st.booleans(), max_size=60), first=st.floats(0, 1))
def test_confidence_stays_within_its_bounds_and_goes_the_way_of_the_outcome(outcomes, first):
    moment = from_milliseconds(0)
    pattern = Pattern(id="p", name="p", confidence=first, created_at=moment, updated_at=moment)
    for success in outcomes:
        before, pattern = pattern, reinforced(pattern, success=success, now=moment)
        change = pattern.confidence - before.confidence
        assert 0 <= pattern.confidence <= 1
        assert change >= -1e-12 if success else change <= 1e-12

    assert pattern.uses == len(outcomes)
