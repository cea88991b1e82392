"""What the audit log says of an operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One operation of a tenant, without content.

    Attributes:
        number: Grows with every record of the location, with gaps.
        actor: As named to `HierMem.tenant`.
        operation: The method's name, such as `store`, `forget` or `append`.
        ids: Of the entries, or turns, that were written or removed.
        count: How many those are; of a read, how many things it returned.
        outcome: `ok`, or the type of the error.
    """

    number: int
    at: datetime
    tenant_id: str
    actor: str | None
    operation: str
    thread_id: str | None
    ids: tuple[str, ...]
    count: int
    outcome: str
