"""A LangChain message becomes a turn, and the turn the same message again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from message_samples import (
    ARGS,
    CALL,
    DEVELOPER,
    LEGACY,
    RAW,
    RAW_CALL,
    RESPONSES_CALL,
    TOOL_USE,
    USAGE,
    after_restart,
    typed,
)

from hiermem_core import FunctionCounter, InvalidInputError, ToolCall, TurnDraft
from langchain_hiermem.messages import merge_chunks, message_to_turn, turn_to_message

CHARACTERS = FunctionCounter(len, id="characters")


V1_CALL: Any = typed("tool_call", **CALL)
UNNAMED_CALL = typed("function_call", name="search", args=ARGS)
CALL_SHAPES = {
    "no content": AIMessage("", tool_calls=[CALL]),
    "empty list": AIMessage([], tool_calls=[CALL]),
    "text only": AIMessage([typed("text", text="")], tool_calls=[CALL]),
    "anthropic block": AIMessage([TOOL_USE], tool_calls=[CALL]),
    "anthropic block twice": AIMessage([TOOL_USE, TOOL_USE], tool_calls=[CALL]),
    "anthropic block alone": AIMessage([TOOL_USE]),
    "v1 block": AIMessage([V1_CALL], tool_calls=[CALL]),
    "v1 block by content_blocks": AIMessage(content_blocks=[V1_CALL]),
    "responses block": AIMessage([RESPONSES_CALL], tool_calls=[CALL]),
    "block without id": AIMessage([UNNAMED_CALL], tool_calls=[CALL]),
    "raw beside": AIMessage("", tool_calls=[CALL], additional_kwargs=RAW),
    "raw alone": AIMessage("", additional_kwargs=RAW),
    "raw of a free role": ChatMessage(content="", role="assistant", additional_kwargs=RAW),
    "legacy beside": AIMessage("", tool_calls=[CALL], additional_kwargs=LEGACY),
    "legacy alone": AIMessage("", additional_kwargs=LEGACY),
    "chunk": AIMessageChunk(
        content="",
        tool_call_chunks=[{"id": "1", "index": 0, "name": "search", "args": json.dumps(ARGS)}],
    ),
}


@pytest.mark.parametrize("shape", CALL_SHAPES)
def test_lc5_a_call_is_one_call_in_every_shape(shape: str) -> None:
    call = ToolCall(None if shape == "legacy alone" else "1", "search", ARGS)

    draft = after_restart(message_to_turn(CALL_SHAPES[shape]))

    assert draft.tool_calls == [call]
    assert {part["index"] for part in draft.parts if part["type"] == "tool_call"} <= {0}
    assert CHARACTERS.count_turn(draft) == CHARACTERS.count_turn(
        TurnDraft(role="assistant", tool_calls=[call])
    )


def test_calls_without_ids_are_paired_in_order() -> None:
    calls = [{"id": None, "name": "search", "args": {"page": page}} for page in (1, 2)]

    draft = message_to_turn(AIMessage([UNNAMED_CALL, UNNAMED_CALL], tool_calls=calls))

    assert [call.args for call in draft.tool_calls] == [{"page": 1}, {"page": 2}]
    assert [part["index"] for part in draft.parts] == [0, 1]


def test_invalid_calls_stand_where_they_were_made() -> None:
    """The order comes from the blocks, or from the provider's own list."""
    invalid = {"id": "0", "name": "search", "args": "{", "error": "cut off"}
    calls = {"tool_calls": [CALL], "invalid_tool_calls": [invalid]}
    by_blocks = AIMessage([typed("tool_use", id="0", name="search"), TOOL_USE], **calls)
    by_raw = AIMessage("", additional_kwargs={"tool_calls": [{"id": "0"}, RAW_CALL]}, **calls)

    drafts = [message_to_turn(by_blocks), message_to_turn(by_raw)]

    expected = (ToolCall("0", "search", "{", "cut off"), ToolCall("1", "search", ARGS))
    assert [draft.tool_calls for draft in drafts] == [expected, expected]
    assert [part["index"] for part in drafts[0].parts] == [0, 1]


ROLES = [
    (HumanMessage("a"), "user", "human"),
    (HumanMessageChunk(content="a"), "user", "human"),
    (AIMessage("a"), "assistant", "ai"),
    (AIMessageChunk(content="a"), "assistant", "ai"),
    (SystemMessage("a"), "system", "system"),
    (SystemMessageChunk(content="a"), "system", "system"),
    (SystemMessage("a", additional_kwargs=DEVELOPER), "developer", "system"),
    (ToolMessage("a", tool_call_id="1"), "tool", "tool"),
    (ToolMessageChunk(content="a", tool_call_id="1"), "tool", "tool"),
    (FunctionMessage(content="a", name="f"), "tool", "function"),
    (FunctionMessageChunk(content="a", name="f"), "tool", "function"),
    (ChatMessage(content="a", role="assistant"), "assistant", "assistant"),
    (ChatMessageChunk(content="a", role="model"), "assistant", "model"),
    (ChatMessage(content="a", role="critic"), "user", "critic"),
]


@pytest.mark.parametrize(("message", "role", "source_role"), ROLES, ids=repr)
def test_each_kind_has_a_role(message: BaseMessage, role: str, source_role: str) -> None:
    draft = message_to_turn(message, turn_id="t1")

    assert (draft.role, draft.content, draft.id, draft.name) == (role, "a", "t1", message.name)
    assert draft.origin is not None
    assert (draft.origin.framework, draft.origin.role) == ("langchain", source_role)
    assert draft.tool_call_id == getattr(message, "tool_call_id", None)


def test_a_removal_is_no_turn() -> None:
    with pytest.raises(InvalidInputError, match="delete the turn"):
        message_to_turn(RemoveMessage(id="1"))


def test_lc33_a_tool_run_keeps_calls_and_results_paired() -> None:
    run = [
        HumanMessage("find it"),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("nothing", tool_call_id="1", status="error", artifact={"rows": ()}),
        AIMessage("not found"),
    ]

    drafts = [after_restart(message_to_turn(message)) for message in run]

    assert [draft.role for draft in drafts] == ["user", "assistant", "tool", "assistant"]
    assert drafts[1].tool_calls[0].id == drafts[2].tool_call_id
    assert [turn_to_message(draft) for draft in drafts] == run


def stream_chunks() -> list[AIMessageChunk]:
    calls: Any = [
        [{"id": "1", "index": 0, "name": "search", "args": '{"query":'}],
        [{"id": None, "index": 0, "name": None, "args": '"x"}'}],
    ]
    return [
        AIMessageChunk(content="I ", id="run"),
        AIMessageChunk(content="look", id="run", tool_call_chunks=calls[0]),
        AIMessageChunk(content="", id="run", tool_call_chunks=calls[1]),
        AIMessageChunk(content="", id="run", usage_metadata=USAGE, chunk_position="last"),
    ]


def test_lc34_a_stream_is_one_full_message() -> None:
    chunks = stream_chunks()

    (message,) = merge_chunks(chunks)

    read = turn_to_message(after_restart(message_to_turn(message)))
    assert read == AIMessage(
        "I look",
        id="run",
        tool_calls=[{"id": "1", "name": "search", "args": {"query": "x"}}],
        usage_metadata=USAGE,
    )
    assert type(read) is AIMessage
    assert chunks == stream_chunks()


def test_lc34_only_chunks_of_one_stream_are_merged() -> None:
    human = HumanMessage("hi", id="1")
    first, second = AIMessageChunk(content="a", id="1"), AIMessageChunk(content="b", id="2")
    unnamed = AIMessageChunk(content="c")

    merged = merge_chunks([human, first, second, second, unnamed, unnamed, human])

    assert [message.content for message in merged] == ["hi", "a", "bb", "c", "c", "hi"]
    assert merged[0] is merged[-1] is human
    assert {type(message) for message in merged[1:-1]} == {AIMessage}


def test_chunks_that_do_not_add_up_are_refused() -> None:
    chunks = [ToolMessageChunk(content="a", id="1", tool_call_id=call_id) for call_id in "xy"]

    with pytest.raises(InvalidInputError, match="do not add up"):
        merge_chunks(chunks)


def test_lc35_data_that_looks_like_a_constructor_stays_data() -> None:
    shaped = dumpd(HumanMessage("run me"))
    tag = {"$hiermem": "bytes", "value": "QQ=="}
    message = ToolMessage(
        [shaped, tag],
        tool_call_id="1",
        additional_kwargs={"x": shaped, "y": tag},
        response_metadata={"x": shaped},
        artifact=[shaped],
    )

    read = turn_to_message(after_restart(message_to_turn(message)))

    assert read == message
    assert isinstance(read, ToolMessage)
    assert read.artifact == [shaped]
    assert type(read.additional_kwargs["x"]) is dict


def test_a_value_that_no_dump_can_carry_is_named_and_the_message_kept() -> None:
    message = ToolMessage("a", tool_call_id="1", artifact={"rows": [object()]})

    draft = after_restart(message_to_turn(message))

    assert draft.replaced == ("$.artifact.rows[0]",)
    assert turn_to_message(draft) == message.model_copy(
        update={"artifact": {"rows": ["[a value of type object was not stored]"]}}
    )


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    with pytest.raises(InvalidInputError, match="contains itself"):
        message_to_turn(HumanMessage("a", additional_kwargs={"x": endless}))


def test_a_subclass_comes_back_as_the_standard_class_with_its_fields() -> None:
    class Signed(HumanMessage):
        signature: str

    class Piece(AIMessageChunk):
        pass

    human = message_to_turn(Signed(content="a", signature="s"))
    ai = message_to_turn(Piece(content="a"))

    assert (human.role, ai.role) == ("user", "assistant")
    assert turn_to_message(human) == HumanMessage("a", signature="s")
    assert turn_to_message(ai) == AIMessage("a")
