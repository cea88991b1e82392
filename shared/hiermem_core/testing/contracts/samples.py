"""Samples: turns of every shape, and rows that cannot be decoded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hiermem_core.models.turns import Origin, ToolCall, TurnDraft

if TYPE_CHECKING:
    from collections.abc import Iterable

CONSTRUCTOR = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain_core", "messages", "HumanMessage"],
    "kwargs": {"content": "hi", "secret": {"lc": 1, "type": "secret", "id": ["OPENAI_API_KEY"]}},
}
"""What one framework writes for an object it would revive."""

TAGGED = {"$hiermem": "bytes", "value": "aGk="}
"""What this library's own typed encoding looks like."""

WRITTEN = datetime(2025, 3, 4, 5, 6, 7, 891000, UTC)

RICH_TURNS = (
    TurnDraft(role="assistant", content=None, tool_calls=[ToolCall("c1", "find", {"q": "größe"})]),
    TurnDraft(role="assistant", content="", tool_calls=[ToolCall("c2", "find", "{broken", "cut")]),
    TurnDraft(
        role="assistant", tool_calls=[ToolCall(None, "a", {}), ToolCall("c4", "b", {"n": 0})]
    ),
    TurnDraft(role="tool", content="42", tool_call_id="c1", name="find", source="human"),
    TurnDraft(
        role="user",
        content="look",
        parts=[
            {"type": "text", "text": "look"},
            {"type": "media", "kind": "image", "base64": "AAAA", "mime_type": "image/png"},
            {"type": "media", "kind": "audio", "uri": "https://example.org/a.mp3"},
        ],
    ),
    TurnDraft(
        role="assistant",
        content="so",
        parts=[
            {"type": "reasoning", "text": "think", "extras": {"signature": "x=="}},
            {"type": "opaque", "value": {"type": "new_block", "deep": [None, 1, 1.0, True, ""]}},
            {"type": "text", "text": "so"},
        ],
        origin=Origin("langchain", "AIMessage", '{"content": "so", "n": 1.0}'),
    ),
    TurnDraft(role="developer", content="be brief", pinned=True, name="boss"),
    TurnDraft(
        role="user",
        content=" 你好 👩‍👩‍👧 é ",
        metadata={"z": 1, "a": [None, {}, [], "", False, 1.5]},
        id="mine",
        user_id="u1",
        created_at=WRITTEN,
    ),
)

UNDECODABLE: dict[str, dict[str, object]] = {
    "no JSON": {"body": "{broken"},
    "not an object": {"body": '"text"'},
    "a list in place of an object": {"body": "[]"},
    "calls of a wrong type": {"body": '{"tool_calls": 3}'},
    "a call without a name": {"body": '{"tool_calls": [["c1"]]}'},
    "parts that are no objects": {"body": '{"parts": [1]}'},
    "a part without a type": {"body": '{"parts": [{"text": "x"}]}'},
    "a media part without a kind": {"body": '{"parts": [{"type": "media"}]}'},
    "a call whose name is no text": {
        "body": '{"tool_calls": [["c", 7, {}, null]]}',
        "tokens": "{}",
    },
    "call arguments of a wrong type": {"body": '{"tool_calls": [["c", "f", 7, null]]}'},
    "a call id that is no text": {"body": '{"tool_call_id": 7}', "tokens": "{}"},
    "a name that is no text": {"body": '{"name": 7}', "tokens": "{}"},
    "metadata of a wrong type": {"body": '{"metadata": [1]}'},
    "unknown role": {"role": "narrator"},
    "counts that are no JSON": {"tokens": "seven"},
    "counts of a wrong type": {"tokens": "[7]"},
    "no counts at all": {"tokens": "null"},
    "counts that are text": {"tokens": '{"approximate": "7", "o200k_base": "7"}'},
}
"""What can be wrong with a stored turn, by the columns that are."""

MISTYPED: dict[str, dict[str, object]] = {
    "bytes in place of text": {"content": b"\xff\xfe"},
    "a time of a wrong type": {"created_at": "yesterday"},
}
"""What else can be where columns take any type, as SQLite's do."""


ODD_PARTS: tuple[dict[str, Any], ...] = (
    {"type": "media"},
    {"type": "media", "kind": None},
    {"type": "text"},
    {"type": "text", "text": None},
    {"type": "refusal", "text": 7},
    {"type": "reasoning"},
    {"type": "reasoning", "tokens": "many"},
    {"type": "unheard of"},
)


def said(texts: Iterable[str]) -> list[TurnDraft]:
    """Return a user turn of each text."""
    return [TurnDraft(role="user", content=text) for text in texts]


def asked_and_answered(texts: Iterable[str]) -> list[TurnDraft]:
    """Return an exchange of each text: a question and its answer."""
    pairs = ((f"{text}?", f"{text}!") for text in texts)
    return [
        turn
        for asked, answer in pairs
        for turn in (
            TurnDraft(role="user", content=asked),
            TurnDraft(role="assistant", content=answer),
        )
    ]
