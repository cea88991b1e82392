"""From what callers say of sessions and steps to values that hold every rule. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError, LimitExceededError
from hiermem_core.models.ids import check_name
from hiermem_core.models.metadata import (
    DATA_DEPTH_LIMIT,
    DATA_LIMIT,
    checked_json,
    checked_object,
)
from hiermem_core.models.sessions import SESSION_STATUSES
from hiermem_core.service.checking import CONTENT_LIMIT, checked_number

if TYPE_CHECKING:
    from hiermem_core.models.sessions import SessionStatus
    from hiermem_core.models.text import TextCleaner


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step to be stored.

    Attributes:
        id: A fresh one is made when `None`.
        user_id: Of the session, where this step starts it.
    """

    action: str
    state: Any = None
    reward: float | None = None
    next_state: Any = None
    id: str | None = None
    user_id: str | None = None


def checked_step(draft: StepDraft, cleaner: TextCleaner) -> StepDraft:
    """Return a copy of a draft that holds every rule.

    Raises:
        InvalidInputError: A field cannot be stored.
        LimitExceededError: A field is larger than its limit.
        RedactionError: The redactor fails at a text, or rejects it.
    """
    return StepDraft(
        action=_action(draft.action, cleaner),
        state=_state("state", draft.state, cleaner),
        reward=None if draft.reward is None else checked_number("reward", draft.reward),
        next_state=_state("next_state", draft.next_state, cleaner),
        id=None if draft.id is None else check_name("id", draft.id),
        user_id=None if draft.user_id is None else check_name("user_id", draft.user_id),
    )


def checked_data(data: Any, cleaner: TextCleaner) -> dict[str, Any] | None:
    """Return a copy of a session's data; `None` of none.

    Raises:
        InvalidInputError: It is no JSON object.
        LimitExceededError: It is too large, or too deep.
        RedactionError: The redactor fails at a text, or rejects it.
    """
    if data is None:
        return None
    return checked_object("data", data, cleaner, limit=DATA_LIMIT, deepest=DATA_DEPTH_LIMIT)


def checked_status(status: Any) -> SessionStatus:
    """Return a status of a session.

    Raises:
        InvalidInputError: It is none.
    """
    if not isinstance(status, str) or status not in SESSION_STATUSES:
        known = ", ".join(SESSION_STATUSES)
        raise InvalidInputError("status", f"is unknown; use one of {known}")
    return status  # type: ignore[return-value]  # checked


def _action(value: Any, cleaner: TextCleaner) -> str:
    if not isinstance(value, str):
        raise InvalidInputError("action", f"must be text, not {type(value).__name__}")
    if not value.strip():
        raise InvalidInputError("action", "is blank; say what was done")
    if len(value) > CONTENT_LIMIT:
        raise LimitExceededError("action", limit=CONTENT_LIMIT, actual=len(value))
    return cleaner.text(value)


def _state(name: str, value: Any, cleaner: TextCleaner) -> Any:
    return checked_json(name, value, cleaner, limit=DATA_LIMIT, deepest=DATA_DEPTH_LIMIT)
