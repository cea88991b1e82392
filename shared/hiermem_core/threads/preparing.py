"""Preparing turns to be stored: redacted, cleaned and counted, before any transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hiermem_core.errors import InvalidInputError, LimitExceededError
from hiermem_core.threads.counting import stored_counts
from hiermem_core.threads.drafts import cleaned, cleaned_drafts
from hiermem_core.threads.placing import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hiermem_core.models.redaction import Redaction
    from hiermem_core.models.turns import Turn, TurnDraft
    from hiermem_core.protocols import TokenCounter
    from hiermem_core.threads.drafts import TurnLike

BATCH_LIMIT = 10_000
"""Turns of one append."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What of given turns could not be stored as it was."""

    characters: int = 0
    paths: tuple[str, ...] = ()


class Preparing:
    """Make turns ready.

    Attributes:
        counter: Its counts are stored with the turns; a turn it fails on is stored without.
    """

    def __init__(self, counter: TokenCounter, redaction: Redaction) -> None:
        self.counter = counter
        self._redaction = redaction

    def all(
        self, tenant_id: str, thread_id: str, turns: Sequence[TurnLike]
    ) -> tuple[list[Turn], Changed]:
        """Return turns that can be stored.

        Raises:
            InvalidInputError: One of them cannot be.
            RedactionError: The redactor fails at one, or rejects it.
        """
        if isinstance(turns, str | bytes) or not hasattr(turns, "__iter__"):
            raise InvalidInputError("turns", "must be a list of turns")
        cleaner = self._redaction.cleaner("turn", tenant_id, thread_id)
        drafts = cleaned_drafts(turns, cleaner)
        if len(drafts) > BATCH_LIMIT:
            raise LimitExceededError("turns", limit=BATCH_LIMIT, actual=len(drafts))
        paths = tuple(path for draft in drafts for path in draft.replaced)
        ready = [counted(draft, self.counts(draft)) for draft in drafts]
        return ready, Changed(cleaner.replaced, paths)

    def one(self, tenant_id: str, thread_id: str, turn: TurnDraft) -> tuple[TurnDraft, Changed]:
        """Return one turn that can be stored; as `all`."""
        cleaner = self._redaction.cleaner("turn", tenant_id, thread_id)
        return cleaned(turn, cleaner), Changed(cleaner.replaced)

    def counts(self, draft: TurnDraft) -> dict[str, int]:
        """Return the counts to store with a turn."""
        return stored_counts(draft, self.counter)
