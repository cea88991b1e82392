"""What storing messages would do, told without storing them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hiermem_core.errors import RedactionError, ThreadNotFoundError
from hiermem_core.importing.messages import MARK
from hiermem_core.importing.storing import (
    MISSHAPEN,
    another,
    conflict,
    continued,
    misshapen,
    refused,
    unchanged,
)
from hiermem_core.models.turns import fingerprint
from hiermem_core.threads.drafts import cleaned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hiermem_core import Thread
    from hiermem_core.importing.records import Message
    from hiermem_core.importing.report import ImportItem
    from hiermem_core.models.turns import Turn

_PAGE = 1000


class Rehearsal:
    """A thread as storing messages would leave it: what it says under each id."""

    def __init__(self, thread: Thread) -> None:
        self._said: dict[str, str] = {}
        self._is_open = True
        redaction = thread._services.memories.redaction  # noqa: SLF001 - a dry run says the same
        self._cleaner = partial(redaction.cleaner, "turn", thread.tenant_id, thread.id)
        newest: Turn | None = None
        for turn in _turns_of(thread):
            newest = turn
            self._said[str(turn.id)] = fingerprint(turn)
        if newest is not None:
            self._is_open = MARK in newest.metadata

    def store(
        self, messages: Sequence[Message], *, has_diverged: bool = False
    ) -> list[ImportItem | None]:
        """Return what `storing.store` would."""
        outcomes: list[ImportItem | None] = []
        for message in messages:
            outcome = self._outcome(message, has_diverged=has_diverged)
            is_conflict = outcome is not None and outcome.reason == "conflict"
            has_diverged = has_diverged or (is_conflict and not message.has_id)
            outcomes.append(outcome)
        return outcomes

    def _outcome(self, message: Message, *, has_diverged: bool) -> ImportItem | None:
        if has_diverged and not message.has_id:
            return another(message)
        try:
            name, said = str(message.turn.id), fingerprint(cleaned(message.turn, self._cleaner()))
        except RedactionError as error:
            return refused(message, error)
        except MISSHAPEN as error:
            return misshapen(message, error)
        known = self._said.get(name)
        if known is not None:
            is_same = message.is_archived or known == said
            return unchanged(message) if is_same else conflict(message)
        if not self._is_open:
            return continued(message)
        self._said[name] = said
        return None


def _turns_of(thread: Thread) -> Iterator[Turn]:
    after = 0
    while True:
        try:
            page = thread.turns(after=after, first=_PAGE, status=None)
        except ThreadNotFoundError:
            return
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].seq
