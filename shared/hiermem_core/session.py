"""The handle of one session."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError
from hiermem_core.models.ids import check_name
from hiermem_core.operations import watched
from hiermem_core.service.checking import checked_count
from hiermem_core.sessions.calls import steps_of
from hiermem_core.sessions.checking import StepDraft, checked_data, checked_status, checked_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hiermem_core.models.sessions import Session, SessionStatus, Step
    from hiermem_core.models.turns import TurnDraft
    from hiermem_core.services import Services


@watched(writes="start end delete log log_calls", reads="steps get")
class SessionLog:
    """One run of an agent, and the log of its steps: what was seen, done and got."""

    def __init__(
        self, services: Services, tenant: str, session_id: str, *, actor: str | None = None
    ) -> None:
        self._watch = (services.memories.operations, tenant, None, actor)
        self._cleaner = partial(services.memories.redaction.cleaner, "session", tenant)
        self.id = session_id
        self.tenant_id = tenant
        self._store = services.sessions
        self._check_open = services.database.check_open

    def start(
        self, data: Mapping[str, Any] | None = None, *, user_id: str | None = None
    ) -> Session:
        """Start the session, or have it be active again with the steps it has.

        Args:
            data: A JSON object; `None`: what it has.
            user_id: Whose it is, for `forget`; `None`: as before.

        Raises:
            InvalidInputError: The data is no JSON object.
            LimitExceededError: The data is too large.
        """
        self._check_open()
        user = None if user_id is None else check_name("user_id", user_id)
        return self._store.start(self.tenant_id, self.id, checked_data(data, self._cleaner()), user)

    def end(
        self, status: SessionStatus = "completed", data: Mapping[str, Any] | None = None
    ) -> Session:
        """End the session, or pause it; steps may still be logged.

        Args:
            data: Replaces what it has; `None`: nothing.

        Raises:
            SessionNotFoundError: It was never started.
            InvalidInputError: It is no status of an end, or the data no JSON object.
        """
        self._check_open()
        if checked_status(status) == "active":
            raise InvalidInputError("status", "is no end; use start to have it be active again")
        return self._store.end(self.tenant_id, self.id, status, checked_data(data, self._cleaner()))

    def delete(self) -> bool:
        """Delete the session with its steps; say whether there was one."""
        self._check_open()
        return self._store.delete(self.tenant_id, self.id)

    def log(
        self,
        action: str,
        *,
        state: Any = None,
        reward: float | None = None,
        next_state: Any = None,
        id: str | None = None,  # noqa: A002 - what it is called everywhere
        user_id: str | None = None,
    ) -> Step:
        """Store a step after the newest one, and return it; a session not there is started.

        However many threads and processes log, steps are numbered 1, 2, 3, ... without a gap.

        Args:
            state: What was seen before, as JSON.
            reward: What it was worth.
            next_state: What was got, as JSON.
            id: Of the step; one that the session has is returned as it is, nothing is stored.
            user_id: Of a session that this starts.

        Raises:
            InvalidInputError: A value is no JSON, or the action blank.
            LimitExceededError: A value is too large.
            ConflictError: Another session has a step of this id.
        """
        self._check_open()
        draft = StepDraft(action, state, reward, next_state, id, user_id)
        ready = checked_step(draft, self._cleaner())
        (step,) = self._store.log(self.tenant_id, self.id, [ready])
        return step

    def log_calls(self, turns: Iterable[TurnDraft]) -> list[Step]:
        """Store a step for each tool result among turns whose call stands before it; return them.

        The action is the tool and its arguments, the state what the user or a tool said before the
        call, the next state what the result says; what is too large for a step is named by its
        turn. One transaction. A result whose turn has an id is stored once.
        """
        self._check_open()
        drafts = [checked_step(draft, self._cleaner()) for draft in steps_of(self.id, turns)]
        return self._store.log(self.tenant_id, self.id, drafts)

    def steps(self, *, after: int = 0) -> list[Step]:
        """Return the steps after one, in order; none of a session that is not there."""
        self._check_open()
        return self._store.steps(self.tenant_id, self.id, after=checked_count("after", after))

    def get(self) -> Session | None:
        """Return what is known of the session; `None` where it was never started."""
        self._check_open()
        return self._store.get(self.tenant_id, self.id)

    def __repr__(self) -> str:
        """Name session and tenant."""
        return f"SessionLog({self.id!r}, tenant={self.tenant_id!r})"
