"""From the tool calls of a conversation to the steps of a session. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from hiermem_core.models.metadata import DATA_LIMIT
from hiermem_core.models.plain import dump_json
from hiermem_core.service.checking import CONTENT_LIMIT
from hiermem_core.sessions.checking import StepDraft

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hiermem_core.models.turns import ToolCall, TurnDraft

_STEP_IDS = UUID("0b9d0a4e-4d5c-5a1f-9a44-2f6c1f0c7d35")


def steps_of(session_id: str, turns: Iterable[TurnDraft]) -> list[StepDraft]:
    """Return a step for each tool result that stands after its call, in the order of the results.

    The action is the tool and its arguments; the state is what the user or a tool said before the
    call, and the next state is what the result says. What is too large for a step is named by its
    turn. A result whose turn has an id is the same step, however often it is given.
    """
    seen: Any = None
    calls: dict[str | None, tuple[ToolCall, Any]] = {}
    steps = []
    for turn in turns:
        calls |= {call.id: (call, seen) for call in turn.tool_calls}
        if turn.role == "tool" and turn.tool_call_id in calls:
            call, state = calls[turn.tool_call_id]
            steps.append(
                StepDraft(
                    action=_action(call),
                    state=state,
                    next_state=_said(turn),
                    id=_step_id(session_id, turn),
                    user_id=turn.user_id,
                )
            )
        if turn.role in {"user", "tool"} and turn.content:
            seen = _said(turn)
    return steps


def _action(call: ToolCall) -> str:
    name = call.name.strip() or "tool"
    args = call.args if isinstance(call.args, str) else dump_json(call.args)
    action = f"{name} {args}".rstrip()
    return action if len(action) <= CONTENT_LIMIT else name[:CONTENT_LIMIT]


def _said(turn: TurnDraft) -> Any:
    text = turn.content
    if text is None or len(dump_json(text).encode("utf-8", "replace")) <= DATA_LIMIT:
        return text
    return {"turn": turn.id}


def _step_id(session_id: str, turn: TurnDraft) -> str | None:
    return None if turn.id is None else str(uuid5(_STEP_IDS, f"{session_id}\n{turn.id}"))
