"""Named points where a test may fail or kill the process; free of cost otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS: frozenset[str] = frozenset(
    {
        "rows.before_commit",
        "rows.after_commit",
        "migration.before_commit",
        "updates.after_enqueue",
        "updates.after_model",
        "updates.before_commit",
        "index.before_apply",
        "index.after_apply",
        "index.before_swap",
        "index.after_swap",
    }
)
"""Every point the library passes."""

_plan: Callable[[str], None] | None = None


def install(plan: Callable[[str], None] | None) -> None:
    """Have `plan` called with the name of each point passed, in this process."""
    global _plan  # noqa: PLW0603 - one plan per process is the purpose
    _plan = plan


def reach(point: str) -> None:
    """Pass a named point."""
    if _plan is not None:
        _plan(point)
