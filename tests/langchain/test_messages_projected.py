"""Turns that did not come from LangChain, or lost their dump, are read by their neutral form."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from message_samples import DEVELOPER, typed

from hiermem_core import Origin, ToolCall, TurnDraft
from langchain_hiermem.blocks import blocks_of_parts
from langchain_hiermem.messages import turn_to_message

ARGS = {"query": "x"}
CALL = {"id": "1", "name": "search", "args": ARGS}


REASONING = typed("reasoning", text="hm", extras={"signature": "s"})
CITATION = typed("citation", url="u", cited_text="c")

BROKEN_DUMPS = [
    "",
    "null",
    "[" * 100_000,
    '{"type":"human","data":{"$hiermem":"datetime","value":"never"}}',
    '{"type":"hologram","data":{"content":"other"}}',
    '{"type":"remove","data":{"id":"1"}}',
    '{"type":"tool","data":{}}',
]


@pytest.mark.parametrize("dump", BROKEN_DUMPS, ids=range(len(BROKEN_DUMPS)))
def test_a_dump_that_cannot_be_read_gives_the_neutral_form(dump: str) -> None:
    turn = TurnDraft(role="user", content="a", id="t1", origin=Origin("langchain", "human", dump))

    assert turn_to_message(turn) == HumanMessage("a", id="t1")


def from_llamaindex(source_role: str, /, **facts: Any) -> TurnDraft:
    return TurnDraft(**facts, id="t1", origin=Origin("llamaindex", source_role, "{}"))


V1 = {"output_version": "v1"}
V1_CALL = typed("tool_call", **CALL)
BAD_CALL = typed("invalid_tool_call", id=None, name="f", args="{", error="cut off")
PROJECTIONS = [
    (
        TurnDraft(role="user", content="a", id="t1", name="Ann"),
        HumanMessage("a", id="t1", name="Ann"),
    ),
    (TurnDraft(role="user"), HumanMessage("")),
    (TurnDraft(role="system", content="a"), SystemMessage("a")),
    (TurnDraft(role="developer", content="a"), SystemMessage("a", additional_kwargs=DEVELOPER)),
    (TurnDraft(role="assistant", content="a"), AIMessage("a")),
    (
        from_llamaindex("chatbot", role="assistant", content="a"),
        AIMessage("a", id="t1", response_metadata={"source_role": "chatbot"}),
    ),
    (
        from_llamaindex("tool", role="tool", content="a", tool_call_id="1", name="f"),
        ToolMessage("a", id="t1", tool_call_id="1", name="f"),
    ),
    (TurnDraft(role="tool", content="a"), ToolMessage("a", tool_call_id="")),
    (
        from_llamaindex("function", role="tool", content="a", name="f"),
        FunctionMessage(content="a", id="t1", name="f"),
    ),
    (
        TurnDraft(
            role="assistant",
            tool_calls=[ToolCall("1", "search", ARGS), ToolCall(None, "f", "{", "cut off")],
        ),
        AIMessage("", tool_calls=[CALL], invalid_tool_calls=[BAD_CALL]),
    ),
    (
        TurnDraft(
            role="assistant",
            parts=[typed("text", text="a"), typed("tool_call", id=None, index=1, extras={"e": 1})],
            tool_calls=[ToolCall("1", "search", ARGS), ToolCall(None, "f", "{", "cut off")],
        ),
        AIMessage(
            [typed("text", text="a"), {**BAD_CALL, "extras": {"e": 1}}, V1_CALL],
            tool_calls=[CALL],
            invalid_tool_calls=[BAD_CALL],
            response_metadata=V1,
        ),
    ),
    (
        TurnDraft(
            role="assistant",
            parts=[typed("tool_call", id="0", index=0), typed("tool_call", id="1", index=1)],
            tool_calls=[ToolCall("1", "search", ARGS)],
        ),
        AIMessage(
            [typed("non_standard", value=typed("tool_call", id="0", index=0)), V1_CALL],
            tool_calls=[CALL],
            response_metadata=V1,
        ),
    ),
]


@pytest.mark.parametrize(("turn", "message"), PROJECTIONS, ids=str)
def test_a_turn_from_elsewhere_is_projected(turn: TurnDraft, message: BaseMessage) -> None:
    before = deepcopy(turn)

    read = turn_to_message(turn)

    assert (type(read), read, turn) == (type(message), message, before)


NOTE = {"source": "s", "locations": [1]}
BLOCKS_OF_PARTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (typed("text", text="a", bare=True), typed("text", text="a")),
    (
        typed(
            "text",
            text="a",
            annotations=[CITATION],
            extras={"b": {"$hiermem": "bytes", "value": "MQ=="}},
        ),
        typed("text", text="a", annotations=[CITATION], extras={"b": b"1"}),
    ),
    (typed("refusal", text="no"), typed("refusal", refusal="no")),
    (REASONING, typed("reasoning", reasoning="hm", extras={"signature": "s"})),
    (
        typed("media", kind="image", base64="QQ==", mime_type="image/png", detail="low"),
        typed("image", base64="QQ==", mime_type="image/png", extras={"detail": "low"}),
    ),
    (
        typed("media", kind="audio", base64="QQ==", format="wav"),
        typed("audio", base64="QQ==", mime_type="audio/wav", extras={"format": "wav"}),
    ),
    (
        typed("media", kind="video", uri="http://v", fps=2),
        typed("video", url="http://v", extras={"fps": 2}),
    ),
    (
        typed("media", kind="document", file_id="f", title="t", extras={"e": 1}),
        typed("file", file_id="f", extras={"e": 1, "title": "t"}),
    ),
    (
        typed("media", kind="document", text="words", title="t", context="c"),
        typed("text-plain", text="words", mime_type="text/plain", title="t", context="c"),
    ),
    (
        typed("media", kind="document", base64="QQ==", format="pdf"),
        typed("file", base64="QQ==", mime_type="application/pdf", extras={"format": "pdf"}),
    ),
    (
        typed("media", kind="image", uri="http://i", text="seen in it"),
        typed("image", url="http://i", extras={"text": "seen in it"}),
    ),
    (typed("opaque", value={"depth": 3}), typed("non_standard", value={"depth": 3})),
    (
        typed("server_tool_call", value=typed("server_tool_call", id="1")),
        typed("server_tool_call", id="1"),
    ),
    (
        typed("server_tool_result", value=typed("web_search_tool_result", content=[])),
        typed("non_standard", value=typed("web_search_tool_result", content=[])),
    ),
    *(
        (part, typed("non_standard", value=part))
        for part in (
            typed("citable", text="a", title="t"),
            typed("cache", value=typed("ephemeral")),
            typed("citation", text="c", **NOTE),
            typed("media", kind="image", path="a.png"),
            typed("opaque", value="text"),
            typed("hologram", depth=3),
            typed("text"),
            typed("text", text="a", annotations=5),
            typed("media", kind=[]),
        )
    ),
]


@pytest.mark.parametrize(("part", "block"), BLOCKS_OF_PARTS, ids=str)
def test_a_part_is_projected_to_a_standard_block(
    part: dict[str, Any], block: dict[str, Any]
) -> None:
    assert blocks_of_parts([part], []) == [block]


def test_a_citation_annotates_the_text_before_it() -> None:
    parts = [typed("text", text="a"), typed("citation", text="c", title="t", **NOTE)]

    blocks = blocks_of_parts(parts, [])

    note = typed("citation", cited_text="c", title="t", extras=NOTE)
    assert blocks == [typed("text", text="a", annotations=[note])]


@pytest.mark.parametrize("origin", [None, Origin("langchain", "ai", "broken")])
def test_what_is_handed_out_shares_nothing_with_the_turn(origin: Origin | None) -> None:
    parts = [typed("text", text="a", extras={"deep": [1]}), typed("opaque", value={"deep": [1]})]
    calls = [ToolCall("1", "search", {"deep": [1]})]
    turn = TurnDraft(role="assistant", parts=parts, tool_calls=calls, origin=origin)
    before = deepcopy(turn)
    message = turn_to_message(turn)
    assert isinstance(message, AIMessage)
    content: Any = message.content

    content[0]["extras"]["deep"].append(2)
    content[1]["value"]["deep"].append(2)
    message.tool_calls[0]["args"]["deep"].append(2)

    assert turn == before
