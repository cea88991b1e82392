"""Turns of other frameworks, and neutral forms in general, become the nearest messages."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.bridge.pydantic import AnyUrl, BaseModel
from llama_index.core.llms import ChatMessage, MessageRole

from hiermem_core import Origin, ToolCall, TurnDraft
from llamaindex_hiermem import blocks
from llamaindex_hiermem.blocks import block_classes
from llamaindex_hiermem.messages import message_to_turn, turn_to_message

ARGUMENTS = {"city": "Zürich"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def media(kind: str, **facts: Any) -> dict[str, Any]:
    return {"type": "media", "kind": kind, **facts}


def facts(value: Any) -> Any:
    """Return a block as a mapping of what is set in it."""
    if isinstance(value, list):
        return [facts(item) for item in value]
    if isinstance(value, BaseModel):
        return {name: facts(item) for name, item in value if item not in (None, {})}
    return str(value) if isinstance(value, AnyUrl) else value


def only_known(*wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the wanted blocks that the installed core has."""
    return [fields for fields in wanted if fields["block_type"] in block_classes()]


PARTS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "text": (text("hi"), [{"block_type": "text", "text": "hi"}]),
    "refusal": ({"type": "refusal", "text": "no"}, [{"block_type": "text", "text": "no"}]),
    "image by base64": (
        media("image", base64="eHl6", mime_type="image/png", detail="low", extras={"a": 1}),
        [{"block_type": "image", "image": b"eHl6", "image_mimetype": "image/png", "detail": "low"}],
    ),
    "image by url": (
        media("image", uri="https://a.example/b"),
        [{"block_type": "image", "url": "https://a.example/b"}],
    ),
    "image by file id": (media("image", file_id="file-1"), []),
    "image of nowhere": (media("image", uri="not a url"), []),
    "audio by format": (
        media("audio", base64="eHl6", format="mp3"),
        [{"block_type": "audio", "audio": b"eHl6", "format": "mp3"}],
    ),
    "audio by type": (
        media("audio", base64="eHl6", mime_type="audio/mpeg"),
        [{"block_type": "audio", "audio": b"eHl6", "format": "mp3"}],
    ),
    "video": (
        media("video", uri="https://a.example/v.mp4", fps=2, mime_type="video/mp4"),
        [
            {
                "block_type": "video",
                "url": "https://a.example/v.mp4",
                "fps": 2,
                "video_mimetype": "video/mp4",
            }
        ],
    ),
    "document by url": (
        media("document", uri="https://a.example/d.pdf", title="D"),
        [{"block_type": "document", "url": "https://a.example/d.pdf", "title": "D"}],
    ),
    "document as text": (
        media("document", text="xyz", title="D"),
        [
            {
                "block_type": "document",
                "data": b"eHl6",
                "document_mimetype": "text/plain",
                "title": "D",
            }
        ],
    ),
    "reasoning": (
        {"type": "reasoning", "text": "hm", "tokens": 3, "extras": {"signature": "s"}},
        [
            {
                "block_type": "thinking",
                "content": "hm",
                "num_tokens": 3,
                "additional_information": {"signature": "s"},
            }
        ],
    ),
    "citable": (
        {"type": "citable", "title": "T", "source": "S", "text": "words"},
        [
            {
                "block_type": "citable",
                "title": "T",
                "source": "S",
                "content": [{"block_type": "text", "text": "words"}],
            }
        ],
    ),
    "citation": (
        {"type": "citation", "text": "words", "locations": {"page": 2, "url": "u"}},
        [
            {
                "block_type": "citation",
                "title": "",
                "source": "",
                "cited_content": {"block_type": "text", "text": "words"},
                "additional_location_info": {"page": 2},
            }
        ],
    ),
    "cache": (
        {"type": "cache", "value": {"type": "ephemeral"}},
        [{"block_type": "cache", "cache_control": {"type": "ephemeral", "ttl": "5m"}}],
    ),
    "cache of Bedrock": (
        {"type": "cache", "value": {"cachePoint": {"type": "default", "ttl": "1h"}}},
        [{"block_type": "cache", "cache_control": {"type": "default", "ttl": "1h"}}],
    ),
    "cache hint in a text": (
        text("hi") | {"extras": {"cache_control": {"type": "ephemeral"}}},
        [
            {"block_type": "text", "text": "hi"},
            {"block_type": "cache", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
        ],
    ),
    "opaque": ({"type": "opaque", "value": {"x": 1}}, []),
    "server tool": ({"type": "server_tool_call", "value": {"name": "search"}}, []),
    "malformed": ({"type": "media"}, []),
}


@pytest.mark.parametrize(("part", "wanted"), PARTS.values(), ids=PARTS)
def test_l49_a_part_becomes_the_nearest_block(
    part: dict[str, Any], wanted: list[dict[str, Any]]
) -> None:
    message = turn_to_message(TurnDraft(role="user", parts=[text("first"), part]))

    assert facts(message.blocks[1:]) == only_known(*wanted)


@pytest.mark.parametrize(
    ("role", "origin_role", "expected"),
    [
        ("system", "system", "system"),
        ("developer", "system", "developer"),
        ("user", "human", "user"),
        ("user", "critic", "user"),
        ("assistant", "ai", "assistant"),
        ("assistant", "model", "model"),
        ("assistant", "chatbot", "chatbot"),
        ("assistant", "user", "assistant"),
        ("tool", "tool", "tool"),
        ("tool", "function", "function"),
    ],
)
def test_l49_a_role_becomes_the_nearest_role(role: Any, origin_role: str, expected: str) -> None:
    origin = Origin("langchain", origin_role, "{}")

    message = turn_to_message(TurnDraft(role=role, content="x", origin=origin))

    assert message == ChatMessage(role=MessageRole(expected), content="x")


@pytest.mark.parametrize("content", [None, "", "words"])
def test_plain_content_becomes_one_text_block_or_none(content: str | None) -> None:
    message = turn_to_message(TurnDraft(role="user", content=content))

    assert message.content == content
    assert len(message.blocks) == (content is not None)


def test_l49_a_tool_result_names_its_call() -> None:
    draft = TurnDraft(role="tool", content="22", tool_call_id="c1", name="weather", id="hm-1")

    message = turn_to_message(draft)

    assert message.role is MessageRole.TOOL
    assert message.additional_kwargs == {"tool_call_id": "c1", "name": "weather"}


@pytest.mark.skipif("tool_call" not in block_classes(), reason="calls have the legacy form here")
def test_l49_calls_stand_where_their_parts_stood_and_the_rest_at_the_end() -> None:
    calls = [ToolCall("b", "second", "not json"), ToolCall("c", "third", ARGUMENTS)]
    shown = [
        {"type": "tool_call", "id": "a", "index": 0},
        {"type": "tool_call", "id": "b", "index": 1},
        text("done"),
    ]

    message = turn_to_message(TurnDraft(role="assistant", parts=shown, tool_calls=calls))

    assert facts(message.blocks) == [
        {
            "block_type": "tool_call",
            "tool_call_id": "b",
            "tool_name": "second",
            "tool_kwargs": "not json",
        },
        {"block_type": "text", "text": "done"},
        {
            "block_type": "tool_call",
            "tool_call_id": "c",
            "tool_name": "third",
            "tool_kwargs": ARGUMENTS,
        },
    ]
    assert message.additional_kwargs == {}


def test_l49_typed_values_in_arguments_and_extras_are_restored() -> None:
    data = {"$hiermem": "bytes", "value": "eHl6"}
    thought = {"type": "reasoning", "text": "hm", "extras": {"state": data}}
    call = ToolCall("c1", "send", {"data": data})

    message: Any = turn_to_message(TurnDraft(role="assistant", parts=[thought], tool_calls=[call]))

    wanted = only_known(
        {
            "block_type": "thinking",
            "content": "hm",
            "additional_information": {"state": b"xyz"},
        },
        {
            "block_type": "tool_call",
            "tool_call_id": "c1",
            "tool_name": "send",
            "tool_kwargs": {"data": b"xyz"},
        },
    )
    assert facts(message.blocks) == wanted


def test_l49_calls_take_the_legacy_form_on_a_core_without_call_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {kind: model for kind, model in block_classes().items() if kind != "tool_call"}
    monkeypatch.setattr(blocks, "block_classes", lambda: known)
    calls = [ToolCall("c1", "weather", ARGUMENTS), ToolCall(None, "weather", "not json")]

    message = turn_to_message(TurnDraft(role="assistant", content="wait", tool_calls=calls))

    assert facts(message.blocks) == [{"block_type": "text", "text": "wait"}]
    assert [call["function"] for call in message.additional_kwargs["tool_calls"]] == [
        {"name": "weather", "arguments": '{"city":"Zürich"}'},
        {"name": "weather", "arguments": "not json"},
    ]
    assert list(message_to_turn(message).tool_calls) == calls
