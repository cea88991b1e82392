"""Sessions: the runs of agents, and the steps of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from hiermem_core.models.displayed import Displayed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

SessionStatus = Literal["active", "paused", "completed", "failed", "abandoned", "expired"]
SESSION_STATUSES: tuple[str, ...] = get_args(SessionStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(Displayed):
    """One run of an agent.

    Attributes:
        data: What is known of it: a JSON object.
        ended_at: `None` while it is active or paused.
    """

    id: str
    data: Mapping[str, Any] = field(default_factory=dict)
    status: SessionStatus = "active"
    started_at: datetime
    ended_at: datetime | None = None
    user_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Displayed):
    """One step of a session.

    Attributes:
        step: Its place in the session, from 1.
        state: What was seen before, as JSON; `None`: nothing was noted.
        action: What was done.
        reward: What it was worth.
        next_state: What was got, as JSON.
    """

    id: str
    session_id: str
    step: int
    action: str
    state: Any = None
    reward: float | None = None
    next_state: Any = None
    created_at: datetime
