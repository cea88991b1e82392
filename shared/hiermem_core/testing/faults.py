"""Faults at named points: fail there, or kill the process there."""

from __future__ import annotations

import os
import signal
from typing import Literal, Self

from hiermem_core.faults import POINTS, install


class InjectedFault(Exception):  # noqa: N818 - it is planned, not an error
    """Raised by a `FaultPlan` at its point."""


class FaultPlan:
    """Fail or kill at the `count`-th passing of a named point, while the block runs.

    Args:
        point: One of `hiermem_core.faults.POINTS`.
        action: `"fail"` raises `InjectedFault`; `"kill"` sends SIGKILL to this process.
    """

    def __init__(
        self, point: str, *, action: Literal["fail", "kill"] = "fail", count: int = 1
    ) -> None:
        if point not in POINTS:
            raise ValueError(f"{point!r} is no point; use one of {sorted(POINTS)}")
        self._point = point
        self._action = action
        self._left = count

    def __enter__(self) -> Self:
        """Start to watch."""
        install(self._pass)
        return self

    def __exit__(self, *failure: object) -> None:
        """Stop to watch."""
        install(None)

    def _pass(self, point: str) -> None:
        if point != self._point:
            return
        self._left -= 1
        if self._left != 0:
            return
        if self._action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise InjectedFault(point)
