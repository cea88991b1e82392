"""Threads: what is known about them, and how they are loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from hiermem_core.models.displayed import Displayed
from hiermem_core.models.turns import Turn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hiermem_core.models.warnings import ContextWarning

Strategy = Literal["sliding_window", "summary_buffer"]


@dataclass(frozen=True, slots=True)
class ThreadInfo(Displayed):
    """One line about a thread.

    Attributes:
        turns: Active turns.
        last_seq: The newest seq ever given.
        tokens: Stored tokens of the active turns, per counter id.
    """

    thread_id: str
    turns: int
    last_seq: int
    tokens: Mapping[str, int]
    created_at: datetime
    updated_at: datetime


class TurnList(list[Turn]):
    """Turns in ascending seq, fresh for the caller."""

    @property
    def unreadable(self) -> list[Turn]:
        """The placeholders among them: turns whose stored form could not be decoded."""
        return [turn for turn in self if turn.unreadable is not None]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The model a context is built for; sizes in tokens, `None` where unknown."""

    id: str
    context_window: int
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ThreadOptions:
    """How a thread is loaded; `None` leaves the setting of the HierMem.

    Attributes:
        window_exchanges: Earlier exchanges beside the current one; `None`: the budget decides.
        update_every_turns: So many answered turns make an update of the notes due.
    """

    strategy: Strategy | None = None
    window_exchanges: int | None = None
    update_every_turns: int | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What one call may override.

    Attributes:
        cheap_model_id: The model that learns notes; `None` leaves the setting of the HierMem.
    """

    id: str = "default"
    working_memory: ThreadOptions = field(default_factory=ThreadOptions)
    cheap_model_id: str | None = None


@dataclass(frozen=True, slots=True)
class ThreadLoad:
    """What the model should know of a thread: turns read verbatim, and notes (or `""`).

    Attributes:
        covered_seq: The newest turn that the notes cover; `None`: this memory keeps no notes.
    """

    window: tuple[Turn, ...]
    notes: str = ""
    warnings: tuple[ContextWarning, ...] = ()
    covered_seq: int | None = None


@dataclass(frozen=True, slots=True)
class PruneReport(Displayed):
    """What a prune removed, or would remove.

    Attributes:
        turn_ids: Oldest first; whole exchanges.
        dry_run: Nothing was changed.
    """

    turns: int
    exchanges: int
    turn_ids: tuple[str, ...]
    dry_run: bool
