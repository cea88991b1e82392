"""What was recalled for a question stays for all model calls that answer it."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from cachetools import TTLCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core import Hit, TurnHit

Question = tuple[str, str, str]
"""Tenant, thread, and the id of the question's turn."""

_KEPT = 1000
_SECONDS = 600.0


class RecalledHits:
    """The hits shown for a question, until an entry of its tenant changes.

    So the calls of one tool loop read the same block, and look for it once. Bounded in number and
    age; safe to use from threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: TTLCache[Question, tuple[int, tuple[Hit | TurnHit, ...]]] = TTLCache(
            _KEPT, _SECONDS
        )

    def find(self, question: Question | None, generation: int) -> Sequence[Hit | TurnHit] | None:
        """Return the hits of a question at this generation of the entries; `None`: look for it."""
        if question is None:
            return None
        with self._lock:
            kept = self._kept.get(question)
        return kept[1] if kept is not None and kept[0] == generation else None

    def keep(
        self, question: Question | None, generation: int, hits: Sequence[Hit | TurnHit]
    ) -> None:
        """Keep what was found; nothing found is looked for again, as the window may shrink."""
        if question is not None and hits:
            with self._lock:
                self._kept[question] = (generation, tuple(hits))
