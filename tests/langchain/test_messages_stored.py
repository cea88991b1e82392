"""Whatever a LangChain message holds, it is the same message after it was stored."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
)
from message_samples import DEVELOPER, RAW, RESPONSES_CALL, TOOL_USE, USAGE, after_restart, typed

from hiermem_core import Origin, TurnDraft
from hiermem_core.models.text import TextCleaner
from langchain_hiermem.messages import message_to_turn, turn_to_message

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
