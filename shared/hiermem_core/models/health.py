"""Health and statistics of a location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hiermem_core.models.displayed import Displayed


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
class Health(Displayed):
    """What works now.

    Attributes:
        status: `unhealthy`: the rows fail. `degraded`: they pass, and something else does not, or
            the newest write before failed, or the index lags.
        rows: The database.
        keywords: The keyword index in it.
        index: The vector index; `None`: the backend keeps none.
        embedder: As its calls so far tell, it is not called for this; `None`: there is none.
        index_lag: Rows that wait for their vector, and changes that wait for the vector index. It
            lags when more rows wait than the next search embeds, or when some have failed.
        queue_depth: Updates of notes that are due.
        dead_jobs: Updates of notes that are given up until new turns come.
        last_error: Of the newest failure that is not over, without content.
    """

    status: Literal["healthy", "degraded", "unhealthy"]
    rows: ComponentHealth
    last_error: str | None = None
    keywords: ComponentHealth | None = None
    index: ComponentHealth | None = None
    embedder: ComponentHealth | None = None
    index_lag: int = 0
    queue_depth: int = 0
    dead_jobs: int = 0


@dataclass(frozen=True, slots=True)
class TenantStats(Displayed):
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
    sessions: int
    steps: int
    location: str
    schema: int
    counter: str
    exact_counter: bool
