"""The system's clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Wall time in UTC, and the process's monotonic time."""

    def now(self) -> datetime:
        """Return the present in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never step back."""
        return time.monotonic()
