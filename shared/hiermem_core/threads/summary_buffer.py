"""The summary buffer: notes for what the window lost, and the newest exchanges beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.models.threads import ThreadLoad
from hiermem_core.threads.counting import tokens_of
from hiermem_core.threads.notes_text import fit_notes
from hiermem_core.tokens.counters import GuardedCounter

if TYPE_CHECKING:
    from hiermem_core.models.threads import ModelInfo, Profile
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.threads.notes import NotesStore
    from hiermem_core.threads.sliding_window import SlidingWindow

NOTES_SHARE = 4
"""Notes get at most one part in this many of the budget."""


class SummaryBuffer:
    """Give the stored notes, and the newest exchanges that fit beside them.

    Never calls a model. Never writes. The current exchange comes first, then notes up to a quarter
    of the budget, then earlier exchanges.
    """

    def __init__(self, window: SlidingWindow, notes: NotesStore, *, counter: TokenCounter) -> None:
        self._window = window
        self._notes = notes
        self._counter = counter

    def load(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        budget_tokens: int,
        model: ModelInfo,
        profile: Profile,
    ) -> ThreadLoad:
        """Return window and notes within `budget_tokens`; the current exchange always, whole.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        state, _ = self._notes.read(tenant_id, thread_id)
        counter = GuardedCounter(self._counter)
        notes, warnings = fit_notes(state, budget_tokens // NOTES_SHARE, counter)
        load = self._window.load(
            tenant_id=tenant_id,
            thread_id=thread_id,
            budget_tokens=max(0, budget_tokens - counter.count(notes)),
            model=model,
            profile=profile,
        )
        room = budget_tokens - tokens_of(load.window, counter)
        if counter.count(notes) > room:
            notes, warnings = fit_notes(state, max(0, room), counter)
        return ThreadLoad(load.window, notes, (*load.warnings, *warnings))
