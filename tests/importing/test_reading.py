"""Which record each shape of source gives."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core import InvalidInputError
from hiermem_core.importing.lines import line_value, lines_of, may_begin_document
from hiermem_core.importing.records import RecordError
from hiermem_core.importing.report import ImportItem
from hiermem_core.importing.runs import batches
from hiermem_core.importing.sniffing import check_one_thread, records_of
from hiermem_core.importing.times import moment_of

HI = {"role": "user", "content": "hi"}
YO = {"role": "assistant", "content": "yo"}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def read(text, *, stem="talk", thread=None):
    data = text if isinstance(text, bytes) else text.encode()
    return list(records_of(io.BytesIO(data), stem=stem, thread=thread))


def lines(*values):
    return "\n".join(json.dumps(value) for value in values)


def draft(**message):
    (record,) = read(lines({"role": "user", "content": "hi"} | message))
    return record.turn


@pytest.mark.parametrize(
    ("text", "threads"),
    [
        (lines(HI, YO), ["talk", "talk"]),
        (lines(HI), ["talk"]),
        (lines({"messages": [HI, YO]}), ["talk", "talk"]),
        (lines({"messages": [HI]}, {"messages": [YO]}), ["talk/1", "talk/2"]),
        (lines([HI], [YO]), ["talk/1", "talk/2"]),
        (lines([HI, YO]), ["talk", "talk"]),
        (json.dumps({"messages": [HI, YO]}, indent=2), ["talk", "talk"]),
        (json.dumps([HI, YO], indent=2), ["talk", "talk"]),
        ("[\n" + json.dumps(HI) + "\n]", ["talk"]),
        ("\n\n" + lines(HI, YO) + "\n \n", ["talk", "talk"]),
        ("\r\n".join(map(json.dumps, (HI, YO))), ["talk", "talk"]),
        (b"\xef\xbb\xbf" + lines(HI, YO).encode(), ["talk", "talk"]),
        (b"\xef\xbb\xbf" + json.dumps([HI], indent=1).encode(), ["talk"]),
        (lines(HI | {"thread_id": "a"}, YO | {"conversation_id": "b"}), ["a", "b"]),
        (lines(HI | {"session_id": 7}, YO | {"thread_id": ""}), ["7", "talk"]),
        (lines(HI | {"thread_id": "a", "session_id": "b"}), ["a"]),
        ("", []),
        ("[]", []),
        ('{"messages": []}', []),
    ],
)
def test_contents_decide_how_a_source_is_read(text, threads):
    assert [record.thread for record in read(text)] == threads


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "3", '[{"type": "human", "data": {}}]'])
def test_json_of_an_unknown_shape_is_refused_and_the_known_shapes_are_named(text):
    with pytest.raises(InvalidInputError, match="no conversation; give messages one per line"):
        read(text)


def test_a_jsonl_whose_first_line_is_cut_between_words_is_still_read_line_by_line():
    records = read('{"role": "user", "content":\n' + lines(HI, YO))

    assert [type(record).__name__ for record in records] == ["ImportItem", "Message", "Message"]


def test_a_cut_document_is_one_failed_record():
    records = read(json.dumps([HI, YO], indent=2)[:-10])

    assert [(record.ref, record.reason) for record in records] == [("line 1", "invalid_json")]


@given(JSON_VALUES)
def test_only_the_first_line_of_a_document_may_begin_one(value):
    first, *others = json.dumps(value, indent=1).encode().splitlines(keepends=True)
    whole = json.dumps(value).encode()

    assert may_begin_document(first) == bool(others)
    assert not may_begin_document(whole + b"\n")


@pytest.mark.parametrize(
    ("role", "stored"),
    [
        ("user", "user"),
        ("human", "user"),
        ("assistant", "assistant"),
        ("ai", "assistant"),
        ("model", "assistant"),
        ("chatbot", "assistant"),
        ("system", "system"),
        ("developer", "developer"),
        ("tool", "tool"),
        ("function", "tool"),
    ],
)
def test_roles_of_other_systems_are_known(role, stored):
    assert draft(role=role).role == stored


def test_every_field_of_a_message_has_its_place_in_the_turn():
    call = {"id": "c1", "function": {"name": "look", "arguments": '{"at": 1}'}}
    turn = draft(
        role="assistant", name="Bo", user_id=42, tool_calls=[call], metadata={"mood": "good"}
    )

    assert (turn.name, turn.user_id, turn.pinned) == ("Bo", "42", False)
    assert [(c.id, c.name, c.args) for c in turn.tool_calls] == [("c1", "look", {"at": 1})]
    assert turn.metadata == {"mood": "good", "import": {"format": "chat/jsonl"}}
    assert draft(role="tool", tool_call_id="c1").tool_call_id == "c1"
    assert draft(pinned=True).pinned


def test_the_whole_message_is_kept_as_the_dump_with_its_own_id():
    message = {"id": "m1", "role": "human", "content": "hi", "weather": {"sun": True}}
    (record,) = read(lines(message))

    assert record.turn.origin.framework == "openai"
    assert json.loads(record.turn.origin.dump) == message


def test_role_and_text_alone_need_no_dump():
    assert draft().origin is None


def test_a_metadata_key_of_the_import_s_own_name_gives_way():
    assert draft(metadata={"import": 1}).metadata == {
        "import_": 1,
        "import": {"format": "chat/jsonl"},
    }


@pytest.mark.parametrize(
    ("message", "format_", "key"),
    [
        (HI | {"id": "m1"}, "chat/jsonl", "m1"),
        (HI | {"id": 7}, "chat/jsonl", "7"),
        (HI, "chat/jsonl", 1),
        ({"messages": [HI | {"id": "m1"}]}, "openai/messages", "m1"),
        ({"messages": [HI]}, "openai/messages", 0),
    ],
)
def test_a_turn_s_id_follows_from_format_thread_and_id_or_position(message, format_, key):
    (record,) = read(lines(message), stem="Zoë")
    name = json.dumps([format_, "", "turn", "Zoë", key], ensure_ascii=False, separators=(",", ":"))

    namespace = UUID("59349856-e3c6-5c12-a3a8-514548abb095")
    assert record.turn.id == str(uuid5(namespace, name))


def test_an_id_with_a_lone_surrogate_still_gives_a_turn_id():
    (record,) = read('{"role": "user", "content": "x", "id": "\\ud800"}')

    assert UUID(record.turn.id).version == 5
    assert record.ref == "line 1"


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (1796048835, datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)),
        (999999999999, datetime(2001, 9, 9, 1, 46, 39, 999000, tzinfo=UTC)),
        (1796048835000000, datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)),
        (1796048835000000000, datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)),
        ("2026-11-30T14:27:15Z", datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)),
        ("2026-11-30T07:27:15-07:00", datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)),
        ("2026-11-30 14:27:15", datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)),
        *((odd, None) for odd in (None, 0, -1, True, "soon", "", {}, float("inf"), 10**400)),
        ("0001-01-01T00:00:00+14:00", None),
        ("1969-07-20", None),
    ],
)
def test_a_time_is_read_by_its_magnitude_or_as_iso_text_or_left_to_the_clock(value, moment):
    assert moment_of(value) == moment


def test_created_at_wins_over_timestamp_unless_it_cannot_be_read():
    assert draft(created_at=1796048835, timestamp=5).created_at.year == 2026
    assert draft(created_at="soon", timestamp=1796048835).created_at.year == 2026
    assert draft().created_at is None


LINE = st.binary(max_size=20).filter(lambda line: not set(b"\n\xef") & set(line))


@given(st.lists(LINE), st.integers(1, 9))
def test_lines_keep_their_numbers_when_blank_ones_are_left_out_and_long_ones_cut(content, limit):
    found = dict(lines_of(io.BytesIO(b"\n".join(content)), limit=limit))

    cut = {number: line[: limit + 1] for number, line in enumerate(content, 1)}
    assert found == {n: line.rstrip(b"\r\n") for n, line in cut.items() if line.strip()}


def test_a_line_longer_than_the_limit_says_so():
    with pytest.raises(RecordError, match="longer than 5 bytes") as caught:
        line_value(b"123456", limit=5)

    assert caught.value.reason == "limit_exceeded"


@given(st.lists(st.sampled_from("ab"), max_size=30), st.integers(1, 7))
def test_batches_hold_every_record_once_and_in_order(refs, size):
    items = [ImportItem(ref, "failed", "invalid_json") for ref in refs]
    found = list(batches(items, size=size))

    assert [item for batch in found for item in batch] == items
    assert all(len(batch) == size for batch in found[:-1])


def test_a_batch_ends_when_it_holds_much_text():
    records = read(lines(*[HI | {"content": "x" * 40}] * 5))

    assert [len(batch) for batch in batches(records, size=500, characters=100)] == [3, 2]


def test_a_source_of_several_threads_is_not_of_one():
    check_one_thread(iter(read(lines(HI, "bad", YO))))
    with pytest.raises(InvalidInputError, match="several threads"):
        check_one_thread(iter(read(lines(HI, YO | {"thread_id": "b"}))))
