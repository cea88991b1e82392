"""The sliding window as a thread memory."""

from __future__ import annotations

import pytest

from hiermem_core import HierMem
from hiermem_core.testing.contracts import ThreadMemoryContract
from hiermem_core.threads.newest import NewestTurns
from hiermem_core.threads.sliding_window import SlidingWindow


class TestSlidingWindow(ThreadMemoryContract):
    @pytest.fixture(params=["file", "process"])
    def hiermem(self, request, tmp_path):
        location = ":memory:" if request.param == "process" else tmp_path / "memory"
        with HierMem.open(location) as hiermem:
            yield hiermem

    @pytest.fixture
    def memory(self, hiermem):
        return SlidingWindow(hiermem._services.database, NewestTurns(), counter=hiermem.counter)

    def test_it_gives_no_notes(self, thread, hiermem):
        assert thread.context(budget_tokens=500).notes == ""
