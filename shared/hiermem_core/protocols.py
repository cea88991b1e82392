"""What users and backends implement: every interface, with its contract, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from datetime import datetime

    from hiermem_core.models.events import Event
    from hiermem_core.models.threads import ModelInfo, Profile, ThreadLoad
    from hiermem_core.models.turns import TurnDraft


class Clock(Protocol):
    """The source of time."""

    def now(self) -> datetime:
        """Return the present as an aware datetime in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never step back."""


@runtime_checkable
class TokenCounter(Protocol):
    """Count tokens.

    Counts are whole numbers, at least 0, deterministic, offline and defined for every text. Counts
    are stored with turns under `id`, so an id stands for one way of counting for good. A counter
    that only estimates says so by an attribute `exact = False`.
    """

    @property
    def id(self) -> str:
        """Name this way of counting."""

    def count(self, text: str) -> int:
        """Return the tokens of a text."""

    def count_turn(self, turn: TurnDraft) -> int:
        """Return the tokens of a turn with framing, name, parts and tool calls."""


class Observer(Protocol):
    """Get told of every committed change. What it raises is logged and affects nothing."""

    def __call__(self, event: Event) -> None:
        """Take one event."""


class ThreadMemory(Protocol):
    """The history part of a context: the seam for a strategy of your own.

    `load` returns everything the model should know from a thread, sized for this call: the turns
    read verbatim, in order, the current exchange last, and notes. It never calls a model and never
    writes. What it returns beyond the budget is trimmed by the assembler, oldest first.

    Raises `ThreadNotFoundError` for an unknown thread; other exceptions propagate to the caller.
    """

    def load(
        self,
        *,
        tenant_id: str,
        thread_id: str,
        budget_tokens: int,
        model: ModelInfo,
        profile: Profile,
    ) -> ThreadLoad:
        """Return window and notes within `budget_tokens`."""
