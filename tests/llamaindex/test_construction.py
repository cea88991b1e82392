"""How a memory is made and copied: limits, refusals, and one live thread behind every copy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from llama_index.core.bridge.pydantic import ValidationError
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.utils import get_tokenizer
from llamaindex.samples import assistant, exchange, texts, user

from hiermem_core import HierMem, MissingIdentityError
from llamaindex_hiermem import HierMemChatMemoryBuffer

NO_LIMIT = "Token limit must be set and greater than 0."
WINDOW = MockLLM().metadata.context_window

LIMITS: dict[str, tuple[dict[str, Any], int]] = {
    "nothing given": ({}, 3000),
    "a limit": ({"token_limit": 7}, 7),
    "a model": ({"llm": MockLLM()}, int(WINDOW * 0.75)),
    "a model and a limit": ({"llm": MockLLM(), "token_limit": 7}, 7),
    "a model and nothing": ({"llm": MockLLM(), "token_limit": 0}, int(WINDOW * 0.75)),
}

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda memory: memory.model_copy(),
    "deep model_copy": lambda memory: memory.model_copy(deep=True),
    "deepcopy inside a state": lambda memory: copy.deepcopy({"memory": [memory]})["memory"][0],
}


class PersonalMemory(HierMemChatMemoryBuffer):
    """A durable class for `memory_cls`: tenant and thread are fixed."""

    @classmethod
    def from_defaults(cls, *arguments, **options):
        location, thread_id = cls.place
        tenant = (HierMem.opened(location) or HierMem.open(location)).tenant("alice")
        fixed = {"tenant": tenant, "chat_store_key": thread_id}
        return super().from_defaults(*arguments, **{**options, **fixed})


class LabelledMemory(HierMemChatMemoryBuffer):
    """A class with a field of its own."""

    label: str


@pytest.mark.parametrize(("options", "limit"), LIMITS.values(), ids=LIMITS)
def test_the_limit_is_the_one_upstream_takes(options, limit):
    memory = HierMemChatMemoryBuffer.from_defaults(**options)

    assert memory.token_limit == limit
    assert ChatMemoryBuffer.from_defaults(**options).token_limit == limit


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(make_memory, limit):
    with pytest.raises(ValidationError, match=NO_LIMIT):
        HierMemChatMemoryBuffer.from_defaults(token_limit=limit)
    with pytest.raises(ValidationError, match=NO_LIMIT):
        make_memory(token_limit=limit)


def test_the_class_without_a_limit_is_refused():
    with pytest.raises(ValidationError, match=NO_LIMIT):
        HierMemChatMemoryBuffer()


def test_the_class_with_a_limit_is_a_memory_in_this_process():
    memory = HierMemChatMemoryBuffer(token_limit=5)
    memory.put(user("hi"))

    assert texts(memory.get()) == ["hi"]
    assert memory.token_limit == 5


@pytest.mark.parametrize("llm", [None, MockLLM()])
def test_a_limit_that_is_text_is_a_type_error(llm):
    with pytest.raises(TypeError):
        HierMemChatMemoryBuffer.from_defaults(token_limit="3000", llm=llm)


def test_unknown_keywords_are_named_with_their_values():
    with pytest.raises(ValueError, match=r"^Unexpected kwargs: \{'memory_key': 'x', 'size': 3\}$"):
        HierMemChatMemoryBuffer.from_defaults(memory_key="x", size=3)


def test_a_store_of_the_framework_is_refused_with_the_way_to_move():
    store = SimpleChatStore()
    store.set_messages("trip", exchange("old"))

    with pytest.raises(TypeError, match=r"memory\.set\(.*get_messages\(key\)\)") as refused:
        HierMemChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key="trip")
    memory = HierMemChatMemoryBuffer.from_defaults()
    memory.set(store.get_messages("trip"))

    assert "SimpleChatStore" in str(refused.value)
    assert memory.get_all() == exchange("old")


@pytest.mark.parametrize("key", [None, ""])
def test_l17_a_memory_on_a_shared_store_must_name_its_thread(tenant, key):
    for _ in range(2):
        with pytest.raises(MissingIdentityError) as refused:
            HierMemChatMemoryBuffer.from_defaults(tenant=tenant, chat_store_key=key)

    assert isinstance(refused.value, ValueError)
    assert tenant.threads() == []


def test_memories_in_this_process_share_nothing():
    one, other = (HierMemChatMemoryBuffer.from_defaults() for _ in range(2))
    one.put(user("mine"))

    assert other.get_all() == []
    assert texts(one.get_all()) == ["mine"]


def test_the_arguments_stand_where_upstream_has_them():
    memory = HierMemChatMemoryBuffer.from_defaults(
        exchange("old"), MockLLM(), None, "trip", 7, str.split
    )

    assert memory.get_all() == exchange("old")
    assert (memory.token_limit, memory.tokenizer_fn) == (7, str.split)
    assert memory.to_dict()["thread_id"] == "trip"


@pytest.mark.parametrize("history", [None, []])
def test_l02_making_a_memory_never_wipes_its_thread(make_memory, history):
    make_memory().put_messages(exchange("old"))

    again = make_memory(chat_history=history)

    assert again.get_all() == exchange("old")


def test_a_history_that_is_not_empty_is_a_set(tenant, make_memory):
    make_memory().put_messages(exchange("old"))

    again = make_memory(chat_history=exchange("new"))

    archived = tenant.thread("trip").turns(status="archived")
    assert again.get_all() == exchange("new")
    assert [turn.content for turn in archived] == texts(exchange("old"))


def test_the_default_tokenizer_counts_as_upstreams_does():
    text = "The quick brown fox visits Zürich. 你好!"

    memory = HierMemChatMemoryBuffer.from_defaults(tokenizer_fn=None)

    assert list(memory.tokenizer_fn(text)) == list(get_tokenizer()(text))
    assert "tokenizer_fn" not in memory.model_dump()


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_copy_is_another_object_on_the_same_live_thread(hiermem, make_memory, duplicate):
    memory = make_memory(token_limit=7, counting="core", chat_history=exchange("old", words=2))

    twin = duplicate(memory)
    twin.put(assistant("from the copy"))
    memory.put(user("hi"))

    assert twin is not memory
    assert type(twin) is type(memory)
    assert twin.get_all() == memory.get_all()
    assert texts(twin.get_all())[2:] == ["from the copy", "hi"]
    assert (twin.token_limit, twin.counting, twin.tokenizer_fn) == (7, "core", str.split)
    assert not hiermem.is_closed


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_memory_in_this_process_is_on_the_same_thread(duplicate):
    memory = HierMemChatMemoryBuffer.from_defaults()

    duplicate(memory).put(user("hi"))

    assert texts(memory.get_all()) == ["hi"]


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_subclass_keeps_the_fields_the_subclass_adds(tenant, duplicate):
    memory = LabelledMemory(tenant=tenant, chat_store_key="trip", token_limit=9, label="mine")

    twin = duplicate(memory)

    assert (type(twin), twin.label, twin.token_limit) == (LabelledMemory, "mine", 9)


def test_a_copy_outlives_the_original():
    memory = HierMemChatMemoryBuffer.from_defaults(exchange("old"))
    twin = copy.copy(memory)
    del memory

    assert twin.get_all() == exchange("old")


def test_model_copy_replaces_the_fields_it_is_told_to(make_memory):
    memory = make_memory(chat_history=[user("a b"), user("c d")])

    small = memory.model_copy(update={"token_limit": 2})

    assert texts(small.get()) == ["c d"]
    assert texts(memory.get()) == ["a b", "c d"]


def test_a_durable_subclass_keeps_its_thread_through_every_way_of_making(tmp_path):
    PersonalMemory.place = (str(tmp_path / "memory.db"), "trip")
    memory = PersonalMemory.from_defaults(chat_history=[], token_limit=9)
    memory.put(user("hi"))

    others = [
        PersonalMemory.from_defaults(chat_history=[], token_limit=9),
        copy.deepcopy(memory),
        pickle.loads(pickle.dumps(memory)),
        PersonalMemory.from_dict(memory.to_dict()),
    ]

    assert [texts(other.get_all()) for other in others] == [["hi"]] * 4
    assert {type(other) for other in others} == {PersonalMemory}
    assert {other.token_limit for other in others} == {9}
