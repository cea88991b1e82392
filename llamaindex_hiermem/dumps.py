"""What a memory writes into a dump, and what it reads from one, upstream's dumps included."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.types import DEFAULT_CHAT_STORE_KEY

from hiermem_core import Origin, ToolCall, Turn, TurnDraft
from llamaindex_hiermem.messages import message_to_turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TYPED = frozenset({"created_at", "origin", "tool_calls", "replaced"})


def thread_of(data: Mapping[str, Any]) -> str:
    """Return the thread of a dump, ours or upstream's."""
    return data.get("thread_id") or data.get("chat_store_key") or DEFAULT_CHAT_STORE_KEY


def turns_of(data: Mapping[str, Any]) -> list[TurnDraft]:
    """Return the turns in a dump, ours or upstream's; empty where it names a location."""
    if "messages" in data:
        return load_turns(data["messages"])
    messages = data.get("chat_history")
    if messages is None:
        messages = data.get("chat_store", {}).get("store", {}).get(thread_of(data), [])
    return [message_to_turn(ChatMessage.model_validate(message)) for message in messages]


def dump_turns(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return turns as plain JSON."""
    return [_dump_turn(turn) for turn in turns]


def load_turns(dumped: Sequence[Mapping[str, Any]]) -> list[TurnDraft]:
    """Return the turns of plain JSON."""
    return [_load_turn(turn) for turn in dumped]


def _dump_turn(turn: Turn) -> dict[str, Any]:
    plain = {field.name: getattr(turn, field.name) for field in fields(TurnDraft)}
    origin = turn.origin
    return {name: value for name, value in plain.items() if name not in _TYPED} | {
        "parts": [dict(part) for part in turn.parts],
        "created_at": turn.created_at.isoformat() if turn.created_at else None,
        "tool_calls": [[call.id, call.name, call.args, call.error] for call in turn.tool_calls],
        "origin": [origin.framework, origin.role, origin.dump] if origin else None,
    }


def _load_turn(data: Mapping[str, Any]) -> TurnDraft:
    plain = {name: value for name, value in data.items() if name not in _TYPED}
    moment, origin = data.get("created_at"), data.get("origin")
    return TurnDraft(
        **plain,
        created_at=datetime.fromisoformat(moment) if moment else None,
        tool_calls=[ToolCall(*call) for call in data.get("tool_calls", ())],
        origin=Origin(*origin) if origin else None,
    )
