"""The summary buffer: notes for what the window lost, and the newest exchanges beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hiermem_core.threads.counting import tokens_of
from hiermem_core.threads.notes_text import fit_notes
from hiermem_core.tokens.counters import GuardedCounter

if TYPE_CHECKING:
    from hiermem_core.learning.learner import Learner
    from hiermem_core.models.calls import CallMeta
    from hiermem_core.models.notes import ThreadState
    from hiermem_core.models.threads import ModelInfo, Profile, ThreadLoad
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.threads.notes import NotesStore
    from hiermem_core.threads.sliding_window import SlidingWindow

NOTES_SHARE = 4
"""Notes get at most one part in this many of the budget."""


class SummaryBuffer:
    """Give the stored notes and the newest exchanges that fit beside them; learn from answers.

    The current exchange comes first, then notes up to a quarter of the budget, then earlier
    exchanges.

    Args:
        update_every_turns: So many answered turns make an update due.
    """

    def __init__(
        self,
        window: SlidingWindow,
        notes: NotesStore,
        learner: Learner,
        *,
        counter: TokenCounter,
        update_every_turns: int,
    ) -> None:
        self._window = window
        self._notes = notes
        self._learner = learner
        self._counter = counter
        self._every = update_every_turns

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

        Never calls a model. Never writes.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        del model
        state = self._notes.read(tenant_id, thread_id).state
        counter = GuardedCounter(self._counter)
        notes, warnings = fit_notes(state, budget_tokens // NOTES_SHARE, counter)
        load = self._window.newest(
            tenant_id,
            thread_id,
            budget_tokens=max(0, budget_tokens - counter.count(notes)),
            profile=profile,
            covered_seq=state.turn_count,
        )
        room = budget_tokens - tokens_of(load.window, counter)
        if counter.count(notes) > room:
            notes, warnings = fit_notes(state, max(0, room), counter)
        return replace(load, notes=notes, warnings=(*load.warnings, *warnings))

    def save_context(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        user_id: str | None,
        profile: Profile,
        cheap_model_id: str | None,
        meta: CallMeta,
        request: Any = None,
        result: Any = None,
    ) -> None:
        """Learn what is due of the thread, from the stored turns. Reports what fails."""
        del user_id, request, result
        every = profile.working_memory.update_every_turns
        every = self._every if every is None else every
        self._learner.learn(tenant_id, thread_id, every=every, model_id=cheap_model_id, meta=meta)

    def get_state(self, *, tenant_id: str, thread_id: str) -> ThreadState:
        """Return the notes of a thread; empty where none were ever written.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        return self._notes.read(tenant_id, thread_id).state

    def reset(self, *, tenant_id: str, thread_id: str) -> None:
        """Clear the notes and mark every turn so far as seen; the turns stay.

        Raises:
            ThreadNotFoundError: The tenant has no such thread.
        """
        self._notes.reset(tenant_id, thread_id)
