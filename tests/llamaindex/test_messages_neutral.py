"""What messages say in the neutral form: roles, parts, tool calls and their results."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.llms.llm import ToolSelection

from hiermem_core import ToolCall
from llamaindex_hiermem.blocks import block_classes
from llamaindex_hiermem.messages import message_to_turn, turn_to_message

if TYPE_CHECKING:
    from collections.abc import Callable

ARGUMENTS = {"city": "Zürich"}
PNG_URL = "data:image/png;base64,eHl6"
XYZ = {"$hiermem": "bytes", "value": "eHl6"}
IMAGE = {"block_type": "image", "image": b"xyz", "image_mimetype": "image/png"}
IMAGE_PART = {"type": "media", "kind": "image", "base64": "eHl6", "mime_type": "image/png"}
TEXT = {"block_type": "text", "text": "words"}
SOURCE = {"title": "T", "source": "S"}


class Function(BaseModel):
    """What a provider's SDK returns for a function."""

    name: str
    arguments: str


class FunctionCall(BaseModel):
    """What a provider's SDK returns for a call."""

    id: str
    function: Function


BLOCKS: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({"block_type": "text", "text": ""}, [{"type": "text", "text": ""}]),
    (IMAGE | {"detail": "low"}, [IMAGE_PART | {"detail": "low"}]),
    ({"block_type": "image", "url": PNG_URL}, [IMAGE_PART]),
    (
        {"block_type": "image", "url": "https://a.example/b"},
        [{"type": "media", "kind": "image", "uri": "https://a.example/b"}],
    ),
    ({"block_type": "image"}, [{"type": "media", "kind": "image"}]),
    (
        {"block_type": "audio", "audio": b"xyz", "format": "mp3"},
        [{"type": "media", "kind": "audio", "base64": "eHl6", "format": "mp3"}],
    ),
    (
        {"block_type": "video", "video": b"xyz", "video_mimetype": "video/mp4", "fps": 2},
        [
            {
                "type": "media",
                "kind": "video",
                "base64": "eHl6",
                "mime_type": "video/mp4",
                "fps": 2,
            }
        ],
    ),
    (
        {"block_type": "document", "data": b"xyz", "document_mimetype": "a/b", "title": "D"},
        [
            {
                "type": "media",
                "kind": "document",
                "base64": "eHl6",
                "mime_type": "a/b",
                "title": "D",
            }
        ],
    ),
    ({"block_type": "thinking"}, [{"type": "reasoning", "text": ""}]),
    (
        {
            "block_type": "thinking",
            "content": "hm",
            "num_tokens": 0,
            "additional_information": {"signature": b"xyz"},
        },
        [{"type": "reasoning", "text": "hm", "tokens": 0, "extras": {"signature": XYZ}}],
    ),
    (
        {"block_type": "citable", **SOURCE, "content": [TEXT, IMAGE, TEXT]},
        [{"type": "citable", **SOURCE, "text": "words\nwords"}, IMAGE_PART],
    ),
    (
        {
            "block_type": "citation",
            **SOURCE,
            "cited_content": TEXT,
            "additional_location_info": {"page": 2},
        },
        [{"type": "citation", **SOURCE, "text": "words", "locations": {"page": 2}}],
    ),
    (
        {
            "block_type": "citation",
            **SOURCE,
            "cited_content": IMAGE,
            "additional_location_info": {},
        },
        [{"type": "citation", **SOURCE, "text": "", "locations": {}}, IMAGE_PART],
    ),
    (
        {"block_type": "cache", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        [{"type": "cache", "value": {"type": "ephemeral", "ttl": "1h"}}],
    ),
]


@pytest.mark.parametrize(
    ("fields", "wanted"), [row for row in BLOCKS if row[0]["block_type"] in block_classes()]
)
def test_l49_a_block_becomes_its_parts(
    fields: dict[str, Any], wanted: list[dict[str, Any]]
) -> None:
    draft = message_to_turn(ChatMessage(role="user", blocks=[TEXT, fields]))

    assert list(draft.parts) == [{"type": "text", "text": "words"}, *wanted]


@pytest.mark.parametrize(
    ("role", "canonical"),
    [("model", "assistant"), ("chatbot", "assistant"), ("function", "tool"), ("user", "user")],
)
def test_a_llamaindex_role_has_a_canonical_one(role: str, canonical: str) -> None:
    draft = message_to_turn(ChatMessage(role=MessageRole(role), content="x"))

    assert draft.role == canonical
    assert draft.origin is not None
    assert (draft.origin.framework, draft.origin.role) == ("llamaindex", role)


def test_l49_a_llamaindex_tool_result_keeps_call_id_and_name() -> None:
    kwargs = {"tool_call_id": "c1", "name": "weather"}
    message = ChatMessage(role="tool", content="22", additional_kwargs=kwargs)

    draft = message_to_turn(message, turn_id="t1")

    assert (draft.role, draft.tool_call_id, draft.name, draft.id) == ("tool", "c1", "weather", "t1")


@pytest.mark.parametrize("kind", [kind for kind in block_classes() if kind == "tool_call"])
def test_l49_call_blocks_are_numbered_where_they_stand(kind: str) -> None:
    calls = [
        {
            "block_type": kind,
            "tool_call_id": "c1",
            "tool_name": "send",
            "tool_kwargs": {"b": b"xyz"},
        },
        TEXT,
        {"block_type": kind, "tool_name": "look", "tool_kwargs": "not json"},
    ]

    draft = message_to_turn(ChatMessage(role="assistant", blocks=calls))

    assert draft.tool_calls == (
        ToolCall("c1", "send", {"b": XYZ}),
        ToolCall(None, "look", "not json"),
    )
    assert draft.parts == (
        {"type": "tool_call", "id": "c1", "index": 0},
        {"type": "text", "text": "words"},
        {"type": "tool_call", "id": None, "index": 1},
    )


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


@pytest.mark.parametrize("legacy", [None, 5, "text", {}, [None, "text", {"id": "c1"}, BytesIO()]])
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
