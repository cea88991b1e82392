"""Patterns, sessions and steps as the JSON objects of an export, and back. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.exporting.fields import count_of, field_of, moment_of, moment_text, present
from hiermem_core.models.ids import check_name
from hiermem_core.models.patterns import PATTERNS, Pattern
from hiermem_core.models.sessions import Session, Step
from hiermem_core.service.checking import checked_share
from hiermem_core.sessions.checking import StepDraft, checked_data, checked_status, checked_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hiermem_core.models.entries import MemoryEntry
    from hiermem_core.models.text import TextCleaner


def pattern_form(pattern: Pattern) -> dict[str, Any]:
    """Return the form of a pattern; its name is its entry's key."""
    return {
        "data": pattern.data,
        "confidence": pattern.confidence,
        "uses": pattern.uses,
        "created_at": moment_text(pattern.created_at),
        "updated_at": moment_text(pattern.updated_at),
    }


def read_pattern(form: Any, entry: MemoryEntry, cleaner: TextCleaner) -> Pattern:
    """Return the pattern of a form.

    Raises:
        InvalidInputError: A field is missing, or cannot be stored; or its entry is none of a
            pattern.
    """
    if not isinstance(form, dict):
        raise InvalidInputError("pattern", "is no object; mend it")
    if entry.namespace != PATTERNS or entry.key is None:
        raise InvalidInputError("pattern", f"has an entry elsewhere than in {PATTERNS}; mend it")
    return Pattern(
        id=entry.id,
        name=entry.key,
        data=checked_data(field_of(form, "data", dict), cleaner) or {},
        confidence=checked_share("confidence", form.get("confidence")),
        uses=count_of(form, "uses"),
        created_at=moment_of(form, "created_at"),
        updated_at=moment_of(form, "updated_at"),
        user_id=entry.user_id,
    )


def session_form(session: Session) -> dict[str, Any]:
    """Return the form of a session, without its steps."""
    ended_at = session.ended_at
    given = {
        "data": session.data,
        "ended_at": None if ended_at is None else moment_text(ended_at),
        "user_id": session.user_id,
    }
    form = {
        "kind": "session",
        "id": session.id,
        "status": session.status,
        "started_at": moment_text(session.started_at),
    }
    return form | present(given)


def read_session(form: Mapping[str, Any], cleaner: TextCleaner) -> Session:
    """Return the session of a form.

    Raises:
        InvalidInputError: A field is missing, or cannot be stored.
    """
    user_id = form.get("user_id")
    return Session(
        id=check_name("session", field_of(form, "id", str)),
        data=checked_data(form.get("data"), cleaner) or {},
        status=checked_status(form.get("status")),
        started_at=moment_of(form, "started_at"),
        ended_at=moment_of(form, "ended_at") if "ended_at" in form else None,
        user_id=None if user_id is None else check_name("user_id", user_id),
    )


def step_form(step: Step) -> dict[str, Any]:
    """Return the form of a step; its session is the one before it."""
    given = {"state": step.state, "reward": step.reward, "next_state": step.next_state}
    form = {
        "kind": "step",
        "step": step.step,
        "id": step.id,
        "action": step.action,
        "created_at": moment_text(step.created_at),
    }
    return form | {name: value for name, value in given.items() if value is not None}


def read_step(form: Mapping[str, Any], session_id: str, cleaner: TextCleaner) -> Step:
    """Return the step of a form, of a session.

    Raises:
        InvalidInputError: A field is missing, or cannot be stored.
    """
    draft = checked_step(
        StepDraft(
            action=field_of(form, "action", str),
            state=form.get("state"),
            reward=form.get("reward"),
            next_state=form.get("next_state"),
            id=field_of(form, "id", str),
        ),
        cleaner,
    )
    return Step(
        id=str(draft.id),
        session_id=session_id,
        step=count_of(form, "step", least=1),
        action=draft.action,
        state=draft.state,
        reward=draft.reward,
        next_state=draft.next_state,
        created_at=moment_of(form, "created_at"),
    )
