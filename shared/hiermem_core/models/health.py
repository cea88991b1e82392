"""Health and statistics of a location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ComponentHealth:
    """The canary of one store.

    Attributes:
        message: Empty when all is well.
    """

    status: Literal["healthy", "unhealthy"]
    latency_ms: float
    message: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """What works now.

    Attributes:
        status: `degraded`: the canary passes, and the newest write before it failed.
        last_error: That failed write, or the canary's, without content.
    """

    status: Literal["healthy", "degraded", "unhealthy"]
    rows: ComponentHealth
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class TenantStats:
    """Counts of one tenant.

    Attributes:
        tokens: By the HierMem's counter; turns counted by another counter are left out.
        uncounted_turns: Active turns without a count by that counter.
    """

    tenant_id: str
    threads: int
    turns: int
    archived_turns: int
    tokens: int
    uncounted_turns: int
    location: str
    schema: int
    counter: str
    exact_counter: bool
