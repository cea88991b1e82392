"""What a memory recalls: which question is asked, and that it is searched once a turn."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hiermem_core import RecallResult, TurnHit, WorkingMemory
from llamaindex_hiermem.reading import newest_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from hiermem_core import Tenant, Thread, Turn

_QUESTIONS = 16
_SECONDS = 600.0

_look_up: ContextVar[Callable[[], RecallResult]] = ContextVar("look_up")


@dataclass(frozen=True, slots=True)
class Question:
    """What a memory is asked.

    Attributes:
        seq: Of the newest user turn, which tells one turn of the conversation from the next.
        follows: It is not stored yet; the caller adds it behind the messages.
    """

    text: str
    seq: int
    follows: bool


NOTHING = Question("", 0, follows=False)
"""What is asked where nobody needs to know."""


class TurnRecall:
    """The recall of one thread: within a turn, the same question is searched once.

    Between turns, and after every change of the tenant's entries, it is searched anew. Shared by
    the copies of a memory; safe to use from threads and loops at once.
    """

    def __init__(self, tenant: Tenant, thread: Thread) -> None:
        self._thread = thread
        self._kept = WorkingMemory(
            _searched,
            ttl_seconds=_SECONDS,
            max_entries=_QUESTIONS,
            generation=tenant.memory.generation,
        )

    def hits(self, question: Question, k: int, look_up: Callable[[], RecallResult]) -> RecallResult:
        """Return what `look_up` does, or did for this question in this turn.

        Never returns a turn that was deleted since.
        """
        token = _look_up.set(look_up)
        try:
            served = self._kept.search_with_source(question.text, question.seq, k)
        finally:
            _look_up.reset(token)
        result: RecallResult = served.result
        return result if served.source == "backend" else self._without_deleted(result)

    def _without_deleted(self, result: RecallResult) -> RecallResult:
        ids = [hit.id for hit in result if isinstance(hit, TurnHit)]
        if not ids:
            return result
        known = self._thread.known(ids)
        kept = [hit for hit in result if not isinstance(hit, TurnHit) or hit.id in known]
        return RecallResult(kept, warnings=result.warnings)


def question_of(thread: Thread, given: Any) -> Question:
    """Return what is asked: what the caller gives, else the newest user turn."""
    text = text_of_input(given)
    answered, newest = False, None
    for turn in newest_first(thread, page=8):
        if turn.role == "user":
            newest = turn
            break
        answered = answered or _is_answer(turn)
    seq = 0 if newest is None else newest.seq
    stored = "" if newest is None else newest.content or ""
    if text is None:
        return Question(stored, seq, follows=False)
    return Question(text, seq, follows=answered or newest is None or stored != text)


def text_of_input(given: Any) -> str | None:
    """Return the text of what a consumer gives as input: a text, a query bundle or a message."""
    for value in (given, getattr(given, "query_str", None), getattr(given, "content", None)):
        if isinstance(value, str):
            return value
    return None


def _is_answer(turn: Turn) -> bool:
    return turn.role == "assistant" and not turn.tool_calls


def _searched(question: str, seq: int, k: int) -> RecallResult:
    """Search as the caller of this call does; what it is asked is what tells calls apart."""
    del question, seq, k
    return _look_up.get()()
