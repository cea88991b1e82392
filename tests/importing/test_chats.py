"""Histories of LangChain and LlamaIndex, memories of mem0."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from importing import shapes
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
    messages_to_dict,
)
from llama_index.core.llms import ChatMessage as LlamaMessage

from hiermem_core import InvalidInputError
from langchain_hiermem.messages import turn_to_message as langchain_message
from llamaindex_hiermem.messages import turn_to_message as llamaindex_message


def dumped(*messages):
    return messages_to_dict(list(messages))


def talk():
    call = {"name": "look", "args": {"at": "sky"}, "id": "c1", "type": "tool_call"}
    blocks = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
    ]
    return [
        SystemMessage("Be kind"),
        HumanMessage(blocks, id="m1", name="Mara"),
        AIMessage("", tool_calls=[call], response_metadata={"model": "x"}),
        ToolMessage("blue", tool_call_id="c1", artifact={"a": 1}),
        AIMessageChunk("It is blue", id="run-1"),
        ChatMessage("and so on", role="user"),
    ]


def turns(place, thread):
    return place.tenant.thread(thread).turns()


def test_i44_langchain_gets_equal_messages_back(place):
    path = place.write("history.json", dumped(*talk()))

    report = place.load(path)

    assert (report.imported, report.stores[0].format) == (6, "langchain/messages")
    stored = turns(place, "history")
    full = [
        message_chunk_to_message(one) if isinstance(one, BaseMessageChunk) else one
        for one in talk()
    ]
    assert [langchain_message(turn) for turn in stored] == full
    assert [turn.role for turn in stored] == [
        *("system", "user", "assistant", "tool", "assistant", "user")
    ]
    assert stored[1].content == "see"
    assert [part["type"] for part in stored[1].parts] == ["text", "media", "opaque"]
    assert [call.name for call in stored[2].tool_calls] == ["look"]
    assert (stored[3].tool_call_id, stored[3].call_seq) == ("c1", 3)
    assert place.load(path).reasons == {"unchanged": 6}


def test_a_serialised_constructor_is_read_as_data(place):
    value = [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", name],
            "kwargs": {"content": "hi", "type": "human"},
        }
        for name in ("HumanMessage", "AIMessageChunk")
    ]

    place.load(place.write("old.json", value))

    assert [(turn.role, turn.content) for turn in turns(place, "old")] == [
        *(("user", "hi"), ("assistant", "hi"))
    ]


def test_i45_another_class_is_never_loaded(place):
    evil = {"lc": 1, "id": ["subprocess", "Popen"], "kwargs": {"args": "touch x", "content": "x"}}
    value = [evil, {"type": "human", "data": {"content": "hi", "example": evil}}]

    report = place.load(place.write("evil.json", value))

    assert [item.reason for item in report.items] == ["unknown_role"]
    (turn,) = turns(place, "evil")
    assert json.loads(turn.origin.dump)["data"]["example"] == evil


def test_a_removal_is_no_turn_and_an_unknown_role_fails(place):
    value = [
        {"type": "remove", "data": {"id": "m1", "content": ""}},
        {"type": "chat", "data": {"content": "x", "role": "narrator"}},
    ]

    report = place.load(place.write("talk.json", value))

    assert [item.reason for item in report.items] == ["not_a_turn", "unknown_role"]


def test_i49_interleaved_sessions_become_threads_in_the_order_of_their_rows(place):
    def message(text):
        return json.dumps({"type": "human", "data": {"content": text}})

    rows = [(f"s{n % 40}", message(f"{n % 40}/{n // 40}")) for n in range(200)]
    put = "INSERT INTO message_store (session_id, message) VALUES (?, ?)"
    path = place.database("chat.db", shapes.LANGCHAIN, rows=[(put, rows)])

    report = place.load(path, batch_size=30)

    assert (len(report.threads), report.imported) == (40, 200)
    for n in range(40):
        assert [turn.content for turn in turns(place, f"s{n}")] == [f"{n}/{k}" for k in range(5)]
    assert place.load(path).reasons == {"unchanged": 200}


def message(role, text):
    blocks = [{"block_type": "text", "text": text}]
    return {"role": role, "additional_kwargs": {}, "blocks": blocks}


def test_rows_of_llamaindexs_sqlite_store_arrive_in_order_and_bad_ones_are_told(place):
    message = '{"role": "%s", "blocks": [{"block_type": "text", "text": "%s"}]}'
    rows = [
        ("k1", message % ("user", "Bonjour")),
        ("k2", message % ("user", "昨日は雨でした")),
        ("k1", message % ("assistant", "Salut")),
        ("k1", "{"),
        ("k1", '"no message"'),
        ("k1", None),
    ]
    path = place.database(
        "chat.db",
        "CREATE TABLE data_chatstore (id INTEGER PRIMARY KEY, key VARCHAR, value JSON)",
        "CREATE TABLE data_cache (id INTEGER, key TEXT, value TEXT, expires REAL)",
        rows=[("INSERT INTO data_chatstore (key, value) VALUES (?, ?)", rows)],
    )

    report = place.load(path)

    assert [store.format for store in report.stores] == ["llamaindex/sql"]
    assert (report.imported, place.load(path).imported) == (3, 0)
    reasons = [item.reason for item in report.items]
    assert reasons == ["invalid_json", "invalid_record", "missing_field"]
    turns = place.tenant.thread("k1").turns()
    assert [(turn.role, turn.content) for turn in turns] == [
        ("user", "Bonjour"),
        ("assistant", "Salut"),
    ]


def test_i46_a_chat_store_in_a_string_and_archived_rows_arrive_in_order(place):
    old = [{"role": "user", "content": "hi", "additional_kwargs": {}}, message("assistant", "yo")]
    store = {"store": {"k1": old, "k2": [message("user", "other")]}, "class_name": "x"}
    report = place.load(place.write("chat_store.json", json.dumps(store)))
    assert report.threads == ("k1", "k2")
    assert [turn.content for turn in turns(place, "k1")] == ["hi", "yo"]

    rows = [
        (n + 1, "k", 1796048835000000000 + n, "user", status, json.dumps(message("user", str(n))))
        for n, status in enumerate(["archived", "archived", "active", "archived", "active"])
    ]
    put = "INSERT INTO llama_index_memory VALUES (?,?,?,?,?,?)"
    path = place.database("llama.db", shapes.LLAMAINDEX, rows=[(put, rows)])
    report = place.load(path)
    assert report.imported == 5
    found = place.tenant.thread("k").turns(status=None)
    assert [(turn.content, turn.status) for turn in found] == [
        *(("0", "archived"), ("1", "archived"), ("2", "active")),
        *(("3", "archived"), ("4", "active")),
    ]
    assert found[0].created_at == datetime(2026, 11, 30, 14, 27, 15, tzinfo=UTC)
    assert place.load(path).reasons == {"unchanged": 5}
    assert place.load(path, dry_run=True).reasons == {"unchanged": 5}


def test_llamaindex_gets_equal_messages_back(place):
    call = {"block_type": "tool_call", "tool_call_id": "c", "tool_name": "f", "tool_kwargs": {}}
    image = {"block_type": "image", "url": "https://x.test/a.png", "image_mimetype": "image/png"}
    kinds = [
        message("user", "hi"),
        {"role": "assistant", "additional_kwargs": {"a": 1}, "blocks": [call]},
        {"role": "user", "additional_kwargs": {}, "blocks": [*message("", "a")["blocks"], image]},
    ]
    path = place.write("chat.json", {"chat_history": kinds})

    place.load(path)

    found = turns(place, "chat")
    assert [llamaindex_message(turn) for turn in found] == [
        LlamaMessage.model_validate(kind) for kind in kinds
    ]
    assert [call.name for call in found[1].tool_calls] == ["f"]


def export(*memories):
    return {"results": list(memories)}


def test_i41_memories_of_two_users_need_a_choice(place):
    path = place.write(
        "mem0.json",
        export(
            shapes.memory("1", "likes tea", user_id="ann"),
            shapes.memory("2", "likes rum", user_id="bob"),
        ),
    )

    with pytest.raises(InvalidInputError, match="memories of 2 users"):
        place.load(path)
    assert place.entries() == {}
    assert place.load(path, only={"user_id": "ann"}).imported == 1
    assert list(place.contents().values()) == ["likes tea"]
    assert place.load(path, all_users=True).reasons == {"unchanged": 1}
    assert {one.user_id for one in place.entries().values()} == {"ann", "bob"}


def test_lines_are_chosen_by_their_fields_and_what_has_none_is_refused(place):
    lines = [{"role": "user", "content": name, "user_id": name} for name in ("ann", "bob")]
    path = place.write("log.jsonl", "\n".join(map(json.dumps, lines)).encode())

    assert place.load(path, only={"user_id": "ann"}).imported == 1
    assert [turn.content for turn in turns(place, "log")] == ["ann"]
    with pytest.raises(InvalidInputError, match="no fields to choose by"):
        place.load(place.write("talk.json", dumped(*talk())), only={"user_id": "ann"})


def test_a_memory_of_mem0_keeps_what_it_says(place):
    one = shapes.memory(
        "1",
        "likes tea",
        hash="h",
        metadata={"categories": ["drinks"], "memory_type": "procedural_memory"},
    )

    place.load(place.write("mem0.json", [one]))

    (entry,) = place.entries().values()
    assert (entry.namespace, entry.key, entry.type) == ("mem0", None, "procedural")
    assert entry.tags == ("drinks",)
    assert entry.created_at == datetime(2026, 11, 30, 15, tzinfo=UTC)
    assert entry.metadata["import"]["fields"] == {"hash": "h"}


def test_i42_a_day_of_expiry_ends_with_it_in_utc(place):
    path = place.write("mem0.json", [shapes.memory("1", "x", expiration_date="2026-11-30")])
    place.clock.advance(8 * 3600 + 59 * 60)

    assert place.load(path).imported == 1
    assert len(place.entries()) == 1
    place.clock.advance(60)
    assert place.load(path).reasons == {"expired": 1}
    assert place.entries() == {}


def test_i43_the_last_event_of_a_memory_decides(place):
    first, second = "2026-11-30 10:00:00", "2026-11-30 11:00:00"
    rows = [
        ("h1", "a", None, "one", "ADD", first, None, 0),
        ("h2", "a", "one", "one!", "UPDATE", first, second, 0),
        ("h3", "b", None, "two", "ADD", first, None, 0),
        ("h4", "b", "two", "two!", "UPDATE", first, second, 0),
        ("h5", "a", "one!", None, "DELETE", None, None, 1),
    ]
    said = {"created_at": "2026-11-30T10:00:00Z", "updated_at": "2026-11-30T11:00:00Z"}
    memories = [shapes.memory("a", "one!", **said), shapes.memory("b", "two!", hash="h", **said)]
    path = place.database(
        "history.db",
        *(shapes.MEM0, shapes.MEM0_MESSAGES),
        rows=[
            (shapes.MEM0_PUT, rows),
            (
                "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)",
                [("m1", "user_id=ann", "user", "I like tea", None, first)],
            ),
        ],
    )
    place.load(place.write("mem0.json", memories))

    with pytest.raises(InvalidInputError, match="--all-users"):
        place.load(path)
    report = place.load(path, all_users=True)

    assert [(item.ref, item.reason) for item in report.items] == [
        *(("a", "deleted"), ("b", "unchanged"))
    ]
    assert sorted(place.contents().values()) == ["one!", "two!"]
    assert report.threads == ("user_id=ann",)


def test_a_dry_run_of_turns_tells_what_a_run_does(place):
    def lines(count, start=0):
        return "".join(
            json.dumps({"role": "user", "content": f"turn {n + start}"}) + "\n"
            for n in range(count)
        ).encode()

    path = place.write("talk.jsonl", lines(3))
    assert place.load(path, dry_run=True).imported == 3
    assert place.tenant.threads() == []
    place.load(path)
    place.tenant.thread("talk").append([{"role": "user", "content": "local"}])
    path = place.write("talk.jsonl", lines(2) + lines(3, start=9))

    dry, real = place.load(path, dry_run=True), place.load(path)

    assert dry.to_dict() | {"dry_run": False} == real.to_dict()
    assert real.reasons == {"unchanged": 2, "conflict": 3}
