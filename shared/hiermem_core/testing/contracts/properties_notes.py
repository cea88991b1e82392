"""Properties of contexts with notes."""
# ruff: noqa: D102 - a test's name says what it holds

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hiermem_core.errors import BudgetExceededError
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.models.threads import Profile, ThreadOptions
from hiermem_core.testing.contracts.counters import shared
from hiermem_core.testing.contracts.probes import notes_store
from hiermem_core.testing.contracts.properties import LEAVING_OUT, built_of, stored
from hiermem_core.testing.contracts.transcripts import Request, requests

if TYPE_CHECKING:
    from hiermem_core import HierMem

NOTES = ("They spoke of a lease. It was signed.", "the rent is 8,200", "Mara moves in May")


class NotesPropertiesContract:
    """What holds of every context with notes, whatever they cover.

    A subclass gives the fixture `hiermem`.
    """

    @pytest.fixture
    def hiermem(self) -> HierMem:
        """Give a HierMem; its threads are added to."""
        raise NotImplementedError

    @shared
    @given(request_=requests(), covered=st.integers(0, 40), cap=st.none() | st.integers(0, 3))
    def test_p7_every_turn_is_in_the_window_covered_by_notes_or_counted_once(
        self, hiermem: HierMem, request_: Request, covered: int, cap: int | None
    ) -> None:
        thread = stored(hiermem, request_.turns)
        summary, *facts = NOTES
        state = ThreadState(summary, tuple(Fact(text, 1, ((1,),)) for text in facts), covered)
        notes = notes_store(hiermem)
        mark = notes.read(thread.tenant_id, thread.id).mark
        assert notes.commit(thread.tenant_id, thread.id, state, onto=mark)
        options = ThreadOptions(strategy="summary_buffer", window_exchanges=cap)
        arguments = {**request_.arguments, "profile": Profile("notes", options)}

        try:
            one = built_of(thread, Request(request_.turns, request_.budget, arguments))
        except BudgetExceededError:
            assume(condition=False)
            raise

        shown = {turn.seq for turn in one.context.messages if turn.seq}
        gone = [turn for turn in one.turns if turn.seq not in shown]
        missed = [turn for turn in gone if turn.seq > covered]
        told = one.context.warnings
        counted = sum(w.count for w in told if w.code in LEAVING_OUT - {"turns_trimmed"})
        trimmed = sum(w.count for w in told if w.code == "turns_trimmed")
        assert len(missed) <= counted <= len(gone)
        assert trimmed <= len(gone)
        assert one.context.receipt.total <= request_.budget
