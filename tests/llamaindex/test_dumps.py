"""Dumps: plain JSON that leads back to the same thread, and the dumps of upstream."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.workflow import JsonPickleSerializer, JsonSerializer
from llamaindex.samples import (
    asking,
    assistant,
    block,
    exchange,
    json_serializer,
    result,
    run_python,
    system,
    texts,
    thinking,
    user,
)

from hiermem_core import ConfigurationError, HierMem
from hiermem_core.testing.contracts.probes import database_bytes
from hiermem_core.testing.contracts.transcripts import transcripts
from llamaindex_hiermem import HierMemChatMemoryBuffer

RICH = [
    system("Be brief."),
    user("Is it warm in Zürich? 👩‍👩‍👧 "),
    asking("c1", text="Let me see."),
    result("c1", "22"),
    ChatMessage(role="user", blocks=[block("image", image=b"\x89PNG not really")]),
    ChatMessage(
        role="assistant",
        blocks=thinking("hm", additional_information={"signature": "s"}),
        additional_kwargs={
            "raw": b"\x00\xff",
            "pair": (1, 2),
            "by number": {3: {"set"}},
            "most": float("inf"),
        },
    ),
    ChatMessage(role="model", content=None),
    ChatMessage(role="function", content="", additional_kwargs={"name": "weather"}),
]

WAYS: dict[str, Any] = {
    "to_dict": lambda memory: type(memory).from_dict(memory.to_dict()),
    "to_string": lambda memory: type(memory).from_string(memory.to_string()),
    "to_json": lambda memory: type(memory).from_json(memory.to_json()),
    "JSON text": lambda memory: type(memory).from_dict(json.loads(json.dumps(memory.to_dict()))),
    "pickle": lambda memory: pickle.loads(pickle.dumps(memory)),
    "workflow JSON": lambda memory: json_serializer().deserialize(
        JsonSerializer().serialize(memory)
    ),
    "workflow pickle": lambda memory: JsonPickleSerializer().deserialize(
        JsonPickleSerializer().serialize({"memory": memory})
    )["memory"],
}

UPSTREAM = """{
  "chat_store": {
    "store": {
      "support-7": [
        {"role": "system", "additional_kwargs": {},
         "blocks": [{"block_type": "text", "text": "Be brief."}]},
        {"role": "user", "additional_kwargs": {},
         "blocks": [{"block_type": "text", "text": "Is it warm?"},
                    {"block_type": "image", "image": null, "path": null,
                     "url": "https://example.org/a.png", "image_mimetype": "image/png",
                     "detail": null}]},
        {"role": "assistant",
         "additional_kwargs": {"tool_calls": [{"id": "c1", "type": "function",
           "function": {"name": "weather", "arguments": "{}"}}], "logprob": NaN},
         "blocks": []},
        {"role": "tool", "additional_kwargs": {"tool_call_id": "c1"},
         "blocks": [{"block_type": "text", "text": "22"}]}
      ],
      "another": [
        {"role": "user", "additional_kwargs": {},
         "blocks": [{"block_type": "text", "text": "not this one"}]}
      ]
    },
    "class_name": "SimpleChatStore"
  },
  "chat_store_key": "support-7",
  "token_limit": 41,
  "class_name": "ChatMemoryBuffer"
}"""
"""As `ChatMemoryBuffer.to_string` writes it on pydantic 2.12."""

LEGACY = {
    "token_limit": 41,
    "chat_history": [
        {"role": "user", "content": "Is it warm?", "additional_kwargs": {}},
        {"role": "assistant", "content": "It is.", "additional_kwargs": {}},
    ],
}
"""As buffers without a chat store wrote it."""


@pytest.mark.parametrize("again", WAYS.values(), ids=WAYS)
def test_l05_a_dump_leads_back_to_an_equal_memory(make_memory, again):
    memory = make_memory(token_limit=77, counting="core", chat_history=RICH)

    loaded = again(memory)

    assert type(loaded) is HierMemChatMemoryBuffer
    assert loaded is not memory
    assert loaded.get_all() == RICH
    assert (loaded.token_limit, loaded.counting) == (77, "core")
    assert loaded.to_dict() == memory.to_dict()


@pytest.mark.parametrize("again", WAYS.values(), ids=WAYS)
def test_l44_a_memory_without_tenant_is_loaded_with_all_its_messages(again):
    memory = HierMemChatMemoryBuffer.from_defaults(RICH, token_limit=5)

    loaded = again(memory)
    loaded.put(user("only here"))

    assert loaded.get_all() == [*RICH, user("only here")]
    assert memory.get_all() == RICH
    assert loaded.token_limit == 5


def test_l44_a_pickle_is_loaded_in_another_process(make_memory):
    memory = make_memory(chat_history=exchange("old"))

    printed = run_python(
        "import json, pickle, sys\n"
        "memory = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "print(json.dumps([type(memory).__name__, *(m.content for m in memory.get_all())]))",
        pickle.dumps(memory).hex(),
    )

    assert json.loads(printed) == ["HierMemChatMemoryBuffer", *texts(exchange("old"))]


def test_an_empty_memory_is_dumped_and_loaded_too(make_memory):
    for memory in (make_memory(), HierMemChatMemoryBuffer.from_defaults()):
        loaded = HierMemChatMemoryBuffer.from_string(memory.to_string())
        assert loaded.get_all() == []
        assert loaded.to_dict() == memory.to_dict()


def test_a_dump_names_the_thread_and_holds_turns_of_this_process_only(
    location, hiermem, make_memory
):
    memory = make_memory(token_limit=77, chat_history=exchange("old"))

    dump = memory.to_dict(unknown="argument")

    messages = dump.pop("messages", None)
    assert dump == {
        "class_name": "HierMemChatMemoryBuffer",
        "version": 1,
        "location": None if location == ":memory:" else hiermem.location,
        "tenant": "alice",
        "thread_id": "trip",
        "token_limit": 77,
        "counting": "compat",
        "recall_k": 0,
    }
    assert [turn["content"] for turn in messages or []] == (
        texts(exchange("old")) if location == ":memory:" else []
    )


def test_a_dump_is_plain_json(make_memory):
    dump = make_memory(chat_history=RICH).to_dict()

    assert json.loads(json.dumps(dump, allow_nan=False)) == dump


@given(turns=transcripts())
def test_a_dump_carries_turns_of_every_kind(turns):
    with HierMem.open(":memory:") as hiermem:
        thread = hiermem.tenant("alice").thread("trip")
        thread.append(turns)
        memory = HierMemChatMemoryBuffer(
            tenant=hiermem.tenant("alice"), chat_store_key="trip", token_limit=9
        )

        loaded = HierMemChatMemoryBuffer.from_string(memory.to_string())

        assert loaded.get_all() == memory.get_all()
        assert loaded.to_dict() == memory.to_dict()
        loaded.close()


def test_a_location_in_a_dump_is_absolute_and_holds_no_password(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with HierMem.open("sqlite://alice:secret@localhost/memory.db") as hiermem:
        memory = HierMemChatMemoryBuffer.from_defaults(
            exchange("old"), tenant=hiermem.tenant("alice"), chat_store_key="trip"
        )

        assert memory.to_dict()["location"] == str(tmp_path / "memory.db")
        assert "secret" not in memory.to_string()


def test_loading_changes_neither_the_dump_nor_what_is_stored(hiermem, make_memory):
    dump = make_memory(chat_history=exchange("old")).to_dict()
    dump["class_name"] = "AnythingElse"
    before, copy = database_bytes(hiermem), deepcopy(dump)

    loaded = HierMemChatMemoryBuffer.from_dict(dump)
    loaded.get()

    assert dump == copy
    assert database_bytes(hiermem) == before


@pytest.fixture
def dump_of_a_file(tmp_path):
    with HierMem.open(tmp_path / "memory.db") as hiermem:
        yield HierMemChatMemoryBuffer.from_defaults(
            exchange("old"), tenant=hiermem.tenant("alice"), chat_store_key="trip"
        ).to_dict()


def test_a_dump_of_an_open_location_uses_what_is_open(tmp_path, dump_of_a_file):
    loaded = HierMemChatMemoryBuffer.from_dict(dump_of_a_file)
    loaded.close()

    assert loaded._owned is None
    assert loaded.get_all() == exchange("old")
    opened = HierMem.opened(tmp_path / "memory.db")
    assert loaded._tenant.pool is opened.pool


def test_a_dump_of_a_closed_location_opens_it_for_all_who_load_it(tmp_path, dump_of_a_file):
    HierMem.opened(tmp_path / "memory.db").close()

    loaded = HierMemChatMemoryBuffer.from_dict(dump_of_a_file)

    assert loaded.get_all() == exchange("old")
    assert HierMem.opened(tmp_path / "memory.db").location == dump_of_a_file["location"]
    other = HierMemChatMemoryBuffer.from_dict(dump_of_a_file)
    loaded.close()
    assert other.get_all() == exchange("old")


def test_a_dump_of_a_location_that_does_not_exist_raises_and_creates_nothing(
    tmp_path, dump_of_a_file
):
    moved = {**dump_of_a_file, "location": str(tmp_path / "elsewhere" / "memory.db")}

    with pytest.raises(ConfigurationError, match="elsewhere"):
        HierMemChatMemoryBuffer.from_dict(moved)

    assert not (tmp_path / "elsewhere").exists()


def test_a_handle_given_with_a_dump_is_used_in_its_place(tmp_path, dump_of_a_file):
    moved = {**dump_of_a_file, "location": str(tmp_path / "elsewhere" / "memory.db")}
    with HierMem.open(":memory:") as hiermem:
        loaded = HierMemChatMemoryBuffer.from_dict(
            moved, tenant=hiermem.tenant("bob"), tokenizer_fn=str.split
        )
        loaded.put(user("hi"))

        assert texts(hiermem.tenant("bob").thread("trip").turns()) == ["hi"]
        assert loaded.tokenizer_fn is str.split


def test_loading_never_wipes_or_mixes_a_thread_that_goes_on(tenant):
    dump = HierMemChatMemoryBuffer.from_defaults(exchange("old"), chat_store_key="trip").to_dict()
    first = HierMemChatMemoryBuffer.from_dict(dump, tenant=tenant)
    moved = first.get_all()
    tenant.thread("trip").edit_turn(tenant.thread("trip").turns()[0].id, "edited")
    first.put_messages(exchange("new"))

    second = HierMemChatMemoryBuffer.from_dict(dump, tenant=tenant)

    assert moved == exchange("old")
    assert second.get_all() == [user("edited"), exchange("old")[1], *exchange("new")]


@pytest.mark.parametrize("from_text", [True, False])
def test_l45_a_dump_of_upstream_gives_its_messages_limit_and_key(from_text):
    dump = json.loads(UPSTREAM)
    untouched = deepcopy(dump)

    memory = (
        HierMemChatMemoryBuffer.from_string(UPSTREAM, tokenizer_fn=str.split)
        if from_text
        else HierMemChatMemoryBuffer.from_dict(dump, tokenizer_fn=str.split)
    )

    stored = memory.get_all()
    image = block("image", url="https://example.org/a.png")
    assert [message.role for message in stored] == [
        MessageRole.SYSTEM,
        MessageRole.USER,
        MessageRole.ASSISTANT,
        MessageRole.TOOL,
    ]
    assert texts(stored) == ["Be brief.", "Is it warm?", None, "22"]
    assert stored[1].blocks[1] == image
    assert stored[2].additional_kwargs["tool_calls"][0]["id"] == "c1"
    assert stored[3].additional_kwargs == {"tool_call_id": "c1"}
    assert (memory.token_limit, memory.to_dict()["thread_id"]) == (41, "support-7")
    assert memory.to_dict()["location"] is None
    assert repr(dump) == repr(untouched)


def test_l45_a_dump_of_an_upstream_without_chat_store_loads():
    memory = HierMemChatMemoryBuffer.from_dict(deepcopy(LEGACY))

    assert memory.get_all() == [user("Is it warm?"), assistant("It is.")]
    assert (memory.token_limit, memory.to_dict()["thread_id"]) == (41, "chat_history")


def test_l45_a_dump_of_an_empty_upstream_buffer_loads():
    empty = {**json.loads(UPSTREAM), "chat_store": {"store": {}, "class_name": "SimpleChatStore"}}

    memory = HierMemChatMemoryBuffer.from_dict(empty)

    assert memory.get_all() == []
    assert memory.token_limit == 41


def test_l45_upstream_messages_become_durable_by_giving_a_tenant(tenant):
    memory = HierMemChatMemoryBuffer.from_string(UPSTREAM, tenant=tenant)

    again = HierMemChatMemoryBuffer.from_defaults(tenant=tenant, chat_store_key="support-7")
    moved = again.get_all()
    HierMemChatMemoryBuffer.from_string(UPSTREAM, tenant=tenant)

    assert texts(moved) == texts(memory.get_all()) == ["Be brief.", "Is it warm?", None, "22"]
    assert len(again.get_all()) == 4


@pytest.mark.parametrize("text", ["", "no JSON", "[", "{"])
def test_a_text_that_is_no_dump_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        HierMemChatMemoryBuffer.from_string(text)
