"""Patterns: named, scored ways of doing things."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hiermem_core.models.displayed import Displayed
from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hiermem_core.models.entries import MemoryEntry

PATTERNS = "patterns"
"""The namespace of the entries that patterns are found by; an entry's key is its pattern's name."""

FIRST_CONFIDENCE = 0.5
_STEP = 0.1
_DIGITS = 12
"""Of a confidence; what is beyond comes from binary fractions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern(Displayed):
    """A way of doing things, and how well it has done.

    Attributes:
        id: Of the entry that search finds, too.
        name: The only one of the tenant's patterns; the entry's key.
        data: What it is made of: a JSON object.
        confidence: From 0 to 1.
        uses: How often it was reinforced.
        updated_at: When it was last learnt or reinforced.
    """

    id: str
    name: str
    data: Mapping[str, Any] = field(default_factory=dict)
    confidence: float = FIRST_CONFIDENCE
    uses: int = 0
    created_at: datetime
    updated_at: datetime
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class PatternHit(Displayed):
    """A pattern that answers a question.

    Attributes:
        text: What was found: the content of its entry.
        score: As of the search; the higher, the better it answers.
    """

    pattern: Pattern
    text: str
    score: float


def text_of_pattern(name: str, data: Mapping[str, Any]) -> str:
    """Return what is searched of a pattern that has no text of its own."""
    return f"{name}\n\n{dump_json(data)}"


def reinforced(pattern: Pattern, *, success: bool, now: datetime) -> Pattern:
    """Return a pattern after one more use: a tenth of the way nearer to 1, or to 0."""
    nearer = pattern.confidence + _STEP * (float(success) - pattern.confidence)
    confidence = round(nearer, _DIGITS)
    return replace(pattern, confidence=confidence, uses=pattern.uses + 1, updated_at=now)


def standing(pattern: Pattern | None, entry: MemoryEntry) -> Pattern | None:
    """Return what becomes of a pattern whose entry is written: it is the entry's, or gone.

    It has the entry's user, and goes where the entry bears its name no more.
    """
    if pattern is None or (entry.namespace, entry.key) != (PATTERNS, pattern.name):
        return None
    return pattern if pattern.user_id == entry.user_id else replace(pattern, user_id=entry.user_id)
