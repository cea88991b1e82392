"""The ids that messages have as turns: one rule for all who write to a thread. Pure.

Thread and message id give the id of the turn, whatever the message says. So who writes a message
again, through the middleware or a history, names the turn that is stored. A history, whose messages
are a log, stores what has another content under a further id; the middleware, whose messages are a
graph's state, where a message may be changed, leaves the turn as it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from hiermem_core import TurnDraft, fingerprint

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_TURN_IDS = UUID("5d0b2f0a-6f4b-5c0e-8c3b-0a54a6c1d9c7")


def turn_id_of(message: BaseMessage, thread_id: str) -> str | None:
    """Return the id that a message's turn has in a thread; `None` for a message without id."""
    return None if message.id is None else _named(thread_id, message.id)


def further(draft: TurnDraft) -> TurnDraft:
    """Return a draft under the next id of its content; the same one each time."""
    return replace(draft, id=_named(str(draft.id), fingerprint(draft)))


def _named(*parts: str) -> str:
    return str(uuid5(_TURN_IDS, "\n".join(parts)))
