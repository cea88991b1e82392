"""Content blocks of every dialect become neutral parts."""

from __future__ import annotations

import json
from base64 import b64decode
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from message_samples import typed

from hiermem_core import FunctionCounter, ToolCall
from langchain_hiermem.messages import message_to_turn
from langchain_hiermem.parts import call_of_block, parts_of_block

CHARACTERS = FunctionCounter(len, id="characters")
PAYLOAD = "QUJD" * 100_000


def base64_blocks(payload: str) -> dict[str, dict[str, Any]]:
    """Return media with that payload in every dialect, named by dialect and kind."""
    raw = b64decode(payload)
    png_url, pdf_url = (
        f"data:{kind};base64,{payload}" for kind in ("image/png", "application/pdf")
    )
    image = typed("image", source=typed("base64", media_type="image/png", data=payload))
    return {
        "v1 image": typed("image", base64=payload, mime_type="image/png"),
        "v1 data url of image": typed("image", url=png_url),
        "v1 audio": typed("audio", base64=payload, mime_type="audio/wav"),
        "v1 video": typed("video", base64=payload, mime_type="video/mp4"),
        "v1 document": typed("file", base64=payload, mime_type="application/pdf"),
        "v1 plain-text document": typed("text-plain", base64=payload, mime_type="text/plain"),
        "v1 wrapped image": typed("non_standard", value=image),
        "v0 image": typed("image", source_type="base64", data=payload, mime_type="image/png"),
        "v0 audio": typed("audio", source_type="base64", data=payload, mime_type="audio/wav"),
        "v0 document": typed("file", source_type="base64", data=payload),
        "openai image": typed("image_url", image_url={"url": png_url, "detail": "low"}),
        "openai bare image": typed("image_url", image_url=png_url),
        "openai audio": typed("input_audio", input_audio={"data": payload, "format": "wav"}),
        "openai document": typed("file", file={"file_data": pdf_url, "filename": "a.pdf"}),
        "responses image": typed("input_image", image_url=png_url),
        "responses document": typed("input_file", file_data=pdf_url, filename="a.pdf"),
        "responses generated image": typed("image_generation_call", id="ig", result=payload),
        "anthropic image": image,
        "anthropic document": typed("document", source=typed("base64", data=payload)),
        "anthropic document with image": typed(
            "document", source=typed("content", content=[image])
        ),
        "anthropic result with image": typed("tool_result", tool_use_id="1", content=[image]),
        "google image": typed("media", mime_type="image/png", data=payload),
        "google raw audio": typed("media", mime_type="audio/wav", data=raw),
        "google part with video": {"inline_data": {"mime_type": "video/mp4", "data": payload}},
        "google part with document": {
            "inlineData": {"mimeType": "application/pdf", "data": payload}
        },
        "bedrock image": {"image": {"format": "png", "source": {"bytes": raw}}},
        "bedrock document": {"document": {"format": "pdf", "source": {"bytes": raw}}},
        "bedrock video": {"video": {"format": "mp4", "source": {"bytes": raw}}},
    }


@pytest.mark.parametrize("dialect", base64_blocks(""))
def test_lc3_base64_is_one_media_part_at_a_flat_price(dialect: str) -> None:
    kind = dialect.rpartition(" with ")[2].split()[-1]
    message = HumanMessage(["look", base64_blocks(PAYLOAD)[dialect]])

    draft = message_to_turn(message)

    media = [part for part in draft.parts if part["type"] == "media"]
    assert [(part["kind"], part["base64"]) for part in media] == [(kind, PAYLOAD)]
    assert PAYLOAD not in json.dumps([part for part in draft.parts if part not in media])
    assert CHARACTERS.count_turn(draft) < 2_100


REASONING = typed("reasoning", text="hm", extras={"signature": "s"})
SUMMARY = [typed("summary_text", text="a"), typed("summary_text", text="b")]
CITATION = typed("citation", url="u", cited_text="c")
PARTS_OF_BLOCKS: list[tuple[Any, list[dict[str, Any]]]] = [
    ("bare", [typed("text", text="bare", bare=True)]),
    ({"text": "untyped"}, [typed("text", text="untyped")]),
    (
        typed("text", text="a", cache_control=typed("ephemeral")),
        [typed("text", text="a", extras={"cache_control": typed("ephemeral")})],
    ),
    (
        typed("text", text="a", annotations=[CITATION], index=0, extras={"b": b"1"}),
        [
            typed(
                "text",
                text="a",
                annotations=[CITATION],
                extras={"b": {"$hiermem": "bytes", "value": "MQ=="}, "index": 0},
            )
        ],
    ),
    (
        typed("text", text="a", citations=[typed("char_location", cited_text="c")]),
        [typed("text", text="a", annotations=[typed("char_location", cited_text="c")])],
    ),
    (typed("refusal", refusal="no"), [typed("refusal", text="no")]),
    (typed("thinking", thinking="hm", signature="s"), [REASONING]),
    (typed("reasoning", reasoning="hm", extras={"signature": "s"}), [REASONING]),
    (
        typed("reasoning_content", reasoning_content={"text": "hm", "signature": "s"}),
        [REASONING],
    ),
    (
        typed("thinking", thinking=[typed("text", text="hm")]),
        [typed("reasoning", text="hm")],
    ),
    (
        typed("redacted_thinking", data="x"),
        [typed("reasoning", text="", extras={"data": "x"})],
    ),
    (
        typed("reasoning", summary=SUMMARY, encrypted_content="x"),
        [typed("reasoning", text="a\nb", extras={"encrypted_content": "x"})],
    ),
    (
        typed("image_url", image_url={"url": "http://u", "detail": "low"}),
        [typed("media", kind="image", uri="http://u", detail="low")],
    ),
    (
        typed("image", url="data:;base64,QQ=="),
        [typed("media", kind="image", base64="QQ==")],
    ),
    (
        typed("image", source_type="id", id="f"),
        [typed("media", kind="image", file_id="f")],
    ),
    (
        typed("file", source_type="text", url="words"),
        [typed("media", kind="document", text="words")],
    ),
    (
        typed("document", source=typed("text", data="words"), title="t", context="c", other=1),
        [
            typed(
                "media", kind="document", text="words", title="t", context="c", extras={"other": 1}
            )
        ],
    ),
    (
        typed("media", mime_type="video/mp4", file_uri="gs://v"),
        [typed("media", kind="video", mime_type="video/mp4", uri="gs://v")],
    ),
    (
        typed("video", url="http://v", file_id="f", fps=2, id=None),
        [typed("media", kind="video", uri="http://v", fps=2, extras={"file_id": "f"})],
    ),
    (
        {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://v"}}}},
        [typed("media", kind="video", format="mp4", uri="s3://v")],
    ),
    (
        typed("search_result", title="t", source="s", content=[typed("text", text="a")]),
        [typed("citable", title="t", source="s", text="a")],
    ),
    (
        typed("tool_result", tool_use_id="1", content=[typed("text", text="a")]),
        [typed("text", text="a", extras={"tool_result": {"tool_use_id": "1"}})],
    ),
    ({"cachePoint": {}}, [typed("cache", value={"cachePoint": {}})]),
]
SERVER_BLOCKS = [
    ("server_tool_call", typed("server_tool_call", id="1", name="search", args={})),
    ("server_tool_call", typed("server_tool_use", id="1", name="web_search", input={})),
    ("server_tool_call", typed("web_search_call", id="1", status="completed")),
    ("server_tool_result", typed("server_tool_result", tool_call_id="1", status="success")),
    ("server_tool_result", typed("web_search_tool_result", tool_use_id="1", content=[])),
]
OPAQUE_BLOCKS: list[dict[str, Any]] = [
    {},
    typed("hologram", depth=3),
    typed("text", text=None),
    typed("refusal"),
    typed("image", image="nowhere"),
    typed("tool_use", id="1", name="f", input={}),
    typed("tool_call", id="1", name="f", args={}),
]
PARTS_OF_BLOCKS += [(block, [typed(kind, value=block)]) for kind, block in SERVER_BLOCKS]
PARTS_OF_BLOCKS += [(block, [typed("opaque", value=block)]) for block in OPAQUE_BLOCKS]


@pytest.mark.parametrize(("block", "parts"), PARTS_OF_BLOCKS, ids=str)
def test_a_block_becomes_neutral_parts(block: object, parts: list[dict[str, Any]]) -> None:
    assert parts_of_block(block) == parts


def test_a_block_alone_tells_its_call() -> None:
    blocks = [
        typed("invalid_tool_call", id="1", name="f", args="{", error="cut off"),
        typed("custom_tool_call", call_id="2", name="g", input="free text"),
        typed("tool_use", name=None),
        typed("text", text="a"),
    ]

    calls = [call_of_block(block) for block in blocks]

    assert calls == [
        ToolCall("1", "f", "{", "cut off"),
        ToolCall("2", "g", "free text"),
        ToolCall(None, "", {}),
        None,
    ]


def test_a_turn_shares_nothing_with_the_message_it_was_made_from() -> None:
    block = typed("hologram", layers=[1])
    message = AIMessage(
        [block, typed("text", text="a", annotations=[{"deep": [1]}], extras={"deep": [1]})],
        tool_calls=[{"id": "1", "name": "search", "args": {"deep": [1]}}],
    )
    turn = message_to_turn(message)
    before = deepcopy(turn)
    content: Any = message.content

    content[0]["layers"].append(2)
    content[1]["annotations"][0]["deep"].append(2)
    content[1]["extras"]["deep"].append(2)
    message.tool_calls[0]["args"]["deep"].append(2)

    assert turn == before
