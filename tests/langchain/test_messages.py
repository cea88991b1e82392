"""A LangChain message becomes a turn, and the turn the same message again."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    message_to_dict,
)

from hiermem_core import FunctionCounter, InvalidInputError, Origin, ToolCall, TurnDraft
from hiermem_core.models.text import TextCleaner
from hiermem_core.threads.drafts import cleaned
from langchain_hiermem.messages import merge_chunks, message_to_turn, turn_to_message

CHARACTERS = FunctionCounter(len, id="characters")


def typed(kind: str, /, **facts: Any) -> dict[str, Any]:
    """Return a block, or a part, of that type."""
    return {"type": kind, **facts}


def after_restart(draft: TurnDraft) -> TurnDraft:
    """Return the draft as the core stores it, after a way through JSON text."""
    body = json.loads(json.dumps(asdict(cleaned(draft, TextCleaner()))))
    body["tool_calls"] = [ToolCall(**call) for call in body["tool_calls"]]
    body["origin"] = body["origin"] and Origin(**body["origin"])
    return TurnDraft(**{**body, "replaced": tuple(body["replaced"])})


ARGS = {"query": "漢" * 400}
CALL = {"id": "1", "name": "search", "args": ARGS}
TOOL_USE = typed("tool_use", id="1", name="search", input=ARGS)
FUNCTION = {"name": "search", "arguments": json.dumps(ARGS)}
RAW_CALL = {"id": "1", "type": "function", "function": FUNCTION}
RAW, LEGACY = {"tool_calls": [RAW_CALL]}, {"function_call": FUNCTION}
V1_CALL: Any = typed("tool_call", **CALL)
UNNAMED_CALL = typed("function_call", name="search", args=ARGS)
RESPONSES_CALL = typed("function_call", id="fc_1", call_id="1", **FUNCTION)
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


DEVELOPER = {"__openai_role__": "developer"}
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


USAGE: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}


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


CLEAN = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
ANY_TEXT = st.text(st.sampled_from("aé漢😀\x00\ud83d\ude00\udfff"), max_size=8)
ROUND_NUMBERS = st.integers() | st.floats(allow_nan=False) | st.decimals(allow_nan=False)
TIMES = st.dates() | st.datetimes() | st.datetimes(timezones=st.just(UTC))
HASHABLE = (
    st.none() | st.booleans() | ROUND_NUMBERS | CLEAN | st.binary(max_size=4) | TIMES | st.uuids()
)
KEYS = CLEAN | st.integers() | st.tuples(CLEAN, st.integers()) | st.just("$hiermem")


def values(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Generate what may be inside additional_kwargs, metadata, artifacts and unknown blocks."""
    sets = st.sets(HASHABLE, max_size=3) | st.frozensets(HASHABLE, max_size=3)

    def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        items = st.lists(inner, max_size=3)
        return items | items.map(tuple) | st.dictionaries(KEYS, inner, max_size=3)

    return st.recursive(leaves | HASHABLE | sets, containers, max_leaves=8)


KNOWN_BLOCKS = [
    typed("image", base64="QUJD", mime_type="image/png"),
    typed("input_audio", input_audio={"data": "QUJD", "format": "wav"}),
    typed("document", source=typed("base64", media_type="application/pdf", data="QUJD")),
    {"image": {"format": "png", "source": {"bytes": b"ABC"}}},
    TOOL_USE,
    RESPONSES_CALL,
    typed("text", text="a", cache_control=typed("ephemeral"), index=0),
    typed("thinking", thinking="hm", signature="s"),
    typed("reasoning", summary=[typed("summary_text", text="hm")], encrypted_content="x"),
    typed("refusal", refusal="no"),
    typed("server_tool_use", id="1", name="web_search", input={}),
]
STATUSES = st.sampled_from(["success", "error"])


def messages(texts: st.SearchStrategy[str], leaves: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Return for each kind of message what generates it."""
    inner = values(leaves)
    mappings = st.dictionaries(KEYS, inner, max_size=3)
    unknown = st.builds(typed, CLEAN, x=inner) | mappings
    ids = st.none() | texts
    fields = {
        "content": texts | st.lists(texts | st.sampled_from(KNOWN_BLOCKS) | unknown, max_size=4),
        "id": ids,
        "name": ids,
        "additional_kwargs": mappings,
        "response_metadata": mappings,
    }
    calls: Any = st.builds(dict, id=ids, name=texts, args=st.dictionaries(CLEAN, inner, max_size=2))
    invalid: Any = st.builds(dict, id=ids, name=ids, args=ids, error=ids)
    tokens = dict.fromkeys(USAGE, st.integers(0, 99))
    details = {"input_token_details": st.dictionaries(CLEAN, st.integers(0, 99), max_size=2)}
    ai = {
        "tool_calls": st.lists(calls, max_size=3),
        "invalid_tool_calls": st.lists(invalid, max_size=2),
        "usage_metadata": st.none() | st.fixed_dictionaries(tokens, optional=details),
    }
    raw = fields | {"additional_kwargs": st.just(RAW)}
    developer = fields | {"additional_kwargs": st.just(DEVELOPER)}
    result = {"tool_call_id": texts, "artifact": inner, "status": STATUSES}
    return {
        "human": st.builds(HumanMessage, **fields, extra_field=inner),
        "ai": st.builds(AIMessage, **fields, **ai),
        "ai with raw calls": st.builds(AIMessage, **raw),
        "system": st.builds(SystemMessage, **fields),
        "developer": st.builds(SystemMessage, **developer),
        "tool": st.builds(ToolMessage, **fields, **result),
        "function": st.builds(FunctionMessage, **fields | {"name": texts}),
        "chat": st.builds(ChatMessage, **fields, role=texts | st.just("assistant")),
    }


CLEAN_MESSAGES = messages(CLEAN, CLEAN)
ANY_MESSAGES = messages(ANY_TEXT, ANY_TEXT | st.just(math.nan))


@pytest.mark.parametrize("kind", CLEAN_MESSAGES)
@given(data=st.data())
def test_lc49_storing_and_reading_is_the_identity(kind: str, data: st.DataObject) -> None:
    message = data.draw(CLEAN_MESSAGES[kind])
    before = deepcopy(message)

    read = turn_to_message(after_restart(message_to_turn(message, turn_id="t1")))

    assert type(read) is type(message)
    assert read == message
    assert read.model_dump() == message.model_dump()
    assert message == before


def comparable(value: Any) -> Any:
    """Return a value with its texts cleaned as the core does it, and NaN equal to itself."""
    if isinstance(value, str):
        return TextCleaner().text(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {comparable(key): comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(comparable, value))
    return value


@pytest.mark.parametrize("kind", ANY_MESSAGES)
@given(data=st.data())
def test_lc49_only_what_no_store_holds_is_replaced(kind: str, data: st.DataObject) -> None:
    """Lone surrogates and NUL become U+FFFD, by the core's rule; NaN stays NaN."""
    message = data.draw(ANY_MESSAGES[kind])

    read = turn_to_message(after_restart(message_to_turn(message)))

    assert type(read) is type(message)
    assert comparable(read.model_dump()) == comparable(message.model_dump())


@pytest.mark.parametrize("kind", CLEAN_MESSAGES)
@given(data=st.data())
def test_a_turn_whose_dump_is_lost_still_reads(kind: str, data: st.DataObject) -> None:
    draft = after_restart(message_to_turn(data.draw(CLEAN_MESSAGES[kind]), turn_id="t1"))

    read = turn_to_message(replace(draft, origin=None))

    assert read.id == "t1"
    assert message_to_turn(read).role == draft.role


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("hello", id="m1"),
        AIMessage("hello", id="m1"),
        SystemMessage("", id="m1"),
        HumanMessage("hello"),
    ],
)
def test_of_a_message_that_is_a_text_alone_the_text_is_stored_once(message: BaseMessage) -> None:
    turn = message_to_turn(message)

    assert turn.origin is not None
    assert json.loads(turn.origin.dump) == {"id": message.id}
    assert turn_to_message(turn) == message


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("hello", id="m1", name="ada"),
        HumanMessage("hello", id="m1", example=True),
        HumanMessage([{"type": "text", "text": "hello"}], id="m1"),
        AIMessage("hello", id="m1", response_metadata={"model_name": "m"}),
        AIMessage(
            "hello", usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        ),
        SystemMessage("hello", additional_kwargs={"a": 1}),
    ],
)
def test_a_message_that_says_more_has_its_whole_dump(message: BaseMessage) -> None:
    turn = message_to_turn(message)

    assert turn.origin is not None
    assert json.loads(turn.origin.dump)["data"]["content"] == message.content
    assert turn_to_message(turn) == message


def test_a_whole_dump_of_a_message_that_is_a_text_alone_is_read_too() -> None:
    message = HumanMessage("hello", id="m1")
    dump = json.dumps(message_to_dict(message))
    turn = TurnDraft(role="user", content="hello", origin=Origin("langchain", "human", dump))

    assert turn_to_message(turn) == message
