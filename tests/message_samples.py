"""Parts of LangChain messages, and what a turn is after it was stored and read again."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hiermem_core import Origin, ToolCall, TurnDraft
from hiermem_core.models.text import TextCleaner
from hiermem_core.threads.drafts import cleaned


def typed(kind: str, /, **facts: Any) -> dict[str, Any]:
    """Return a block, or a part, of that type."""
    return {"type": kind, **facts}


ARGS = {"query": "漢" * 400}
CALL = {"id": "1", "name": "search", "args": ARGS}
TOOL_USE = typed("tool_use", id="1", name="search", input=ARGS)
FUNCTION = {"name": "search", "arguments": json.dumps(ARGS)}
RAW_CALL = {"id": "1", "type": "function", "function": FUNCTION}
RAW, LEGACY = {"tool_calls": [RAW_CALL]}, {"function_call": FUNCTION}
RESPONSES_CALL = typed("function_call", id="fc_1", call_id="1", **FUNCTION)
DEVELOPER = {"__openai_role__": "developer"}
USAGE: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}


def after_restart(draft: TurnDraft) -> TurnDraft:
    """Return the draft as the core stores it, after a way through JSON text."""
    body = json.loads(json.dumps(asdict(cleaned(draft, TextCleaner()))))
    body["tool_calls"] = [ToolCall(**call) for call in body["tool_calls"]]
    body["origin"] = body["origin"] and Origin(**body["origin"])
    return TurnDraft(**{**body, "replaced": tuple(body["replaced"])})
