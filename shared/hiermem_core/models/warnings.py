"""Warnings: what was left out to fit, or is weaker than asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WarningCode = Literal[
    "turns_trimmed",
    "turns_not_covered",
    "notes_trimmed",
    "over_budget",
    "tool_result_truncated",
    "orphan_results_dropped",
    "pending_calls_dropped",
    "leading_turns_dropped",
    "blank_turns_dropped",
    "turn_unreadable",
    "counter_failed",
    "recall_trimmed",
    "recall_failed",
    "semantic_unavailable",
    "index_rebuilding",
    "unknown_namespace",
]


@dataclass(frozen=True, slots=True)
class ContextWarning:
    """What is weaker than asked for, without any content.

    Attributes:
        count: Turns concerned, where turns are.
        tokens: Tokens left out.
        ids: Ids of the turns concerned, where they are known without reading the whole thread.
        detail: Plain facts of the code, such as `first_seq`, `last_seq`, `roles`, `exchanges`.
    """

    code: WarningCode
    count: int = 0
    tokens: int = 0
    ids: tuple[str, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Say it in one line."""
        figures = {"turns": self.count, "tokens": self.tokens}
        facts = [f"{figure} {name}" for name, figure in figures.items() if figure]
        facts += [f"{name} {value}" for name, value in self.detail.items()]
        return f"{self.code}: {', '.join(facts)}" if facts else self.code


def warning_of(warnings: Sequence[ContextWarning], code: WarningCode) -> ContextWarning | None:
    """Return the first warning of a code, if there is one."""
    return next((warning for warning in warnings if warning.code == code), None)
