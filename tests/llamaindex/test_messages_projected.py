"""Turns of other frameworks, and neutral forms in general, become the nearest messages."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from llama_index.core.bridge.pydantic import AnyUrl, BaseModel
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.llms.llm import ToolSelection

from hiermem_core import Origin, ToolCall, TurnDraft
from llamaindex_hiermem import blocks
from llamaindex_hiermem.blocks import block_classes
from llamaindex_hiermem.messages import message_to_turn, turn_to_message

if TYPE_CHECKING:
    from collections.abc import Callable

ARGUMENTS = {"city": "Zürich"}


class Function(BaseModel):
    """What a provider's SDK returns for a function."""

    name: str
    arguments: str


class FunctionCall(BaseModel):
    """What a provider's SDK returns for a call."""

    id: str
    function: Function


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


@pytest.mark.parametrize(
    ("role", "canonical"),
    [("model", "assistant"), ("chatbot", "assistant"), ("function", "tool"), ("user", "user")],
)
def test_a_llamaindex_role_has_a_canonical_one(role: str, canonical: str) -> None:
    draft = message_to_turn(ChatMessage(role=MessageRole(role), content="x"))

    assert draft.role == canonical
    assert draft.origin is not None
    assert (draft.origin.framework, draft.origin.role) == ("llamaindex", role)


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


def test_l49_a_llamaindex_tool_result_keeps_call_id_and_name() -> None:
    kwargs = {"tool_call_id": "c1", "name": "weather"}
    message = ChatMessage(role="tool", content="22", additional_kwargs=kwargs)

    draft = message_to_turn(message, turn_id="t1")

    assert (draft.role, draft.tool_call_id, draft.name, draft.id) == ("tool", "c1", "weather", "t1")


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


CALLS: dict[str, Callable[[], Any]] = {
    "an OpenAI mapping": lambda: {
        "id": "c1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Zürich"}'},
    },
    "an OpenAI object": lambda: FunctionCall(
        id="c1", function=Function(name="weather", arguments='{"city": "Zürich"}')
    ),
    "an OpenAI response item": lambda: {
        "id": "fc_9",
        "call_id": "c1",
        "name": "weather",
        "arguments": '{"city": "Zürich"}',
    },
    "a ToolSelection": lambda: ToolSelection(
        tool_id="c1", tool_name="weather", tool_kwargs=ARGUMENTS
    ),
    "an Anthropic mapping": lambda: {"id": "c1", "name": "weather", "input": ARGUMENTS},
    "an Ollama mapping": lambda: {
        "id": "c1",
        "function": {"name": "weather", "arguments": ARGUMENTS},
    },
    "any object": lambda: SimpleNamespace(id="c1", name="weather", args=ARGUMENTS),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_l35_legacy_calls_are_neutral_calls_with_ids(call: Callable[[], Any]) -> None:
    message = ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [call()]})

    draft = message_to_turn(message)

    assert draft.tool_calls == (ToolCall("c1", "weather", ARGUMENTS),)
    assert draft.parts == ()


def test_l35_llamaindex_gets_its_original_legacy_message() -> None:
    kwargs = {"tool_calls": [CALLS["an OpenAI mapping"]()], "refusal": None}
    message = ChatMessage(role="assistant", content="", additional_kwargs=kwargs)

    draft = message_to_turn(message)

    assert turn_to_message(draft) == message
    assert draft.replaced == ()


@pytest.mark.parametrize("legacy", [None, "text", {}, [None, "text", {"id": "c1"}, BytesIO()]])
def test_l35_what_names_no_tool_is_no_call(legacy: Any) -> None:
    message = ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": legacy})

    assert message_to_turn(message).tool_calls == ()


@pytest.mark.parametrize("kind", [kind for kind in block_classes() if kind == "tool_call"])
def test_l35_a_call_in_both_forms_is_one_call(kind: str) -> None:
    call = block_classes()[kind](tool_call_id="c1", tool_name="weather", tool_kwargs=ARGUMENTS)
    kwargs = {"tool_calls": [CALLS["an OpenAI mapping"]()]}
    message = ChatMessage(role="assistant", blocks=[call], additional_kwargs=kwargs)

    draft = message_to_turn(message)

    assert draft.tool_calls == (ToolCall("c1", "weather", ARGUMENTS),)
    assert draft.parts == ({"type": "tool_call", "id": "c1", "index": 0},)
