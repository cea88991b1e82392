"""What is put is stored, in order, once, and comes back equal: the methods of the buffer."""

from __future__ import annotations

import inspect
from copy import deepcopy

import pytest
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemory, SimpleComposableMemory
from llama_index.core.memory.types import BaseChatStoreMemory
from llamaindex.samples import (
    asking,
    assistant,
    block,
    exchange,
    result,
    system,
    texts,
    thinking,
    user,
)

from hiermem_core import ClosedError, HierMem, InvalidInputError, LimitExceededError
from hiermem_core.models.notes import Mark, ThreadState
from hiermem_core.models.turns import Origin, TurnDraft
from hiermem_core.testing import FakeClock
from hiermem_core.testing.contracts.probes import database_bytes, notes_store, spoil_turn
from llamaindex_hiermem import HierMemChatMemoryBuffer
from llamaindex_hiermem.messages import AS_THE_TURN

METHODS = ("get", "get_context", "get_all", "put", "put_messages", "set", "reset", "close")


def selfish() -> dict:
    """Return a mapping that contains itself."""
    itself: dict = {}
    itself["me"] = itself
    return itself


UNSTORABLE = {
    "a value within itself": lambda: ChatMessage(role="user", additional_kwargs=selfish()),
    "seventeen million characters": lambda: user("x" * (16 * 1024 * 1024 + 1)),
}


def test_it_is_a_memory_of_the_framework():
    assert issubclass(HierMemChatMemoryBuffer, BaseMemory)
    assert not issubclass(HierMemChatMemoryBuffer, BaseChatStoreMemory)
    assert HierMemChatMemoryBuffer.class_name() == "HierMemChatMemoryBuffer"


@pytest.mark.parametrize("name", METHODS)
def test_each_method_has_an_async_twin_with_the_same_arguments(name):
    method = getattr(HierMemChatMemoryBuffer, name)
    twin = vars(HierMemChatMemoryBuffer)[f"a{name}"]

    assert inspect.iscoroutinefunction(twin)
    assert not inspect.iscoroutinefunction(method)
    assert inspect.signature(twin).parameters == inspect.signature(method).parameters


def test_l18_an_empty_memory_is_true_and_has_no_length(memory):
    assert bool(memory) is True
    assert not hasattr(memory, "__len__")
    assert "__bool__" not in dir(type(memory))
    assert (memory or "a default") is memory


async def test_reads_of_a_thread_that_is_not_there_are_empty_lists(hiermem, memory, call):
    before = database_bytes(hiermem)

    assert await call(memory.get) == []
    assert await call(memory.get_all) == []
    assert (await call(memory.get_context)).messages == ()
    assert database_bytes(hiermem) == before


async def test_messages_come_back_equal_and_in_order(make_memory, call):
    messages = [
        system("Be brief."),
        user("Is it warm?"),
        asking("c1", text="Let me see."),
        result("c1", "22"),
        assistant("Yes."),
        ChatMessage(role="user", blocks=[block("image", url="https://example.org/a.png")]),
        ChatMessage(role="assistant", content=None),
        ChatMessage(role="assistant", content=""),
    ]
    memory = make_memory()
    for message in messages[:4]:
        await call(memory.put, message)
    await call(memory.put_messages, messages[4:])

    assert await call(memory.get_all) == messages
    assert await call(memory.get) == messages
    assert await call(make_memory().get_all) == messages


async def test_l11_the_callers_list_and_the_stored_thread_do_not_touch(make_memory, call):
    history = exchange("first")
    memory = make_memory(chat_history=history)
    wanted = deepcopy(history)
    history[0].blocks[0].text = "changed"
    history.append(user("added"))
    returned = await call(memory.get_all)
    returned[0].additional_kwargs["x"] = 1
    returned.clear()

    assert await call(memory.get_all) == wanted
    await call(memory.set, wanted)
    await call(memory.get)
    assert wanted == exchange("first")


@pytest.mark.parametrize("exists", [True, False])
async def test_l13_an_empty_batch_writes_nothing(hiermem, memory, call, exists):
    memory.put_messages(exchange("first") if exists else [])
    before, threads = database_bytes(hiermem), hiermem.tenant("alice").threads()

    await call(memory.put_messages, [])

    assert database_bytes(hiermem) == before
    assert hiermem.tenant("alice").threads() == threads
    assert len(threads) == exists


@pytest.mark.parametrize("unstorable", UNSTORABLE.values(), ids=UNSTORABLE)
@pytest.mark.parametrize("method", ["set", "put_messages"])
async def test_l14_a_batch_with_a_message_that_cannot_be_stored_changes_nothing(
    hiermem, memory, call, method, unstorable
):
    memory.put_messages(exchange("old"))
    before = database_bytes(hiermem)

    with pytest.raises((InvalidInputError, LimitExceededError)):
        await call(getattr(memory, method), [user("new"), unstorable(), user("newer")])

    assert await call(memory.get_all) == exchange("old")
    assert database_bytes(hiermem) == before


@pytest.mark.parametrize("seconds", [0, -3600])
async def test_l15_order_is_put_order_whatever_the_clock_says(location, call, seconds):
    clock = FakeClock()
    with HierMem.open(location, clock=clock) as hiermem:
        memory = HierMemChatMemoryBuffer.from_defaults(
            tenant=hiermem.tenant("alice"), chat_store_key="trip"
        )
        for n in range(20):
            await call(memory.put, user(f"message {n}"))
            clock.advance(seconds)

        assert texts(await call(memory.get)) == [f"message {n}" for n in range(20)]
        assert texts(await call(memory.get_all)) == [f"message {n}" for n in range(20)]


async def test_l17_two_names_on_one_store_share_nothing(hiermem, make_memory, call):
    memories = {name: make_memory(chat_store_key=name) for name in ("one", "other")}
    memories["foreign"] = make_memory(chat_store_key="one", tenant=hiermem.tenant("bob"))
    for name, memory in memories.items():
        await call(memory.put, user(name))

    await call(memories["other"].reset, purge=True)

    assert [texts(m.get_all()) for m in memories.values()] == [["one"], [], ["foreign"]]


async def test_l22_a_message_of_thinking_and_several_texts_is_stored_in_order(memory, call):
    blocks = [
        *thinking("hm", additional_information={"signature": "s"}),
        block("text", text="First."),
        *thinking("so"),
        block("text", text="Second."),
        block("text", text="Third."),
    ]
    streamed = ChatMessage(role="assistant", blocks=blocks)
    untouched = deepcopy(streamed)

    await call(memory.put, streamed)

    assert await call(memory.get_all) == [untouched]
    assert streamed == untouched


async def test_set_replaces_the_thread_and_archives_what_it_replaced(tenant, memory, call):
    memory.put_messages([*exchange("old"), user("older question")])

    await call(memory.set, exchange("new"))

    archived = tenant.thread("trip").turns(status="archived")
    assert await call(memory.get_all) == exchange("new")
    assert [turn.content for turn in archived] == texts([*exchange("old"), user("older question")])


async def test_a_set_of_what_is_there_writes_nothing(hiermem, memory, call):
    memory.put_messages(exchange("same"))
    before = database_bytes(hiermem)

    await call(memory.set, exchange("same"))

    assert database_bytes(hiermem) == before


async def test_l34_an_explicit_set_of_nothing_empties_the_thread(make_memory, call):
    memory = make_memory(chat_history=exchange("old"))
    kept = make_memory(chat_history=[])
    seen = kept.get_all()

    await call(memory.set, [])

    assert seen == exchange("old")
    assert await call(memory.get_all) == await call(memory.get) == []


@pytest.mark.parametrize("purge", [False, True])
async def test_l32_reset_empties_and_archives_or_purges(tenant, make_memory, call, purge):
    memory = make_memory(chat_history=exchange("old"))

    await call(memory.reset, purge=purge)
    memory.put(user("new"))

    archived = tenant.thread("trip").turns(status="archived")
    assert texts(await call(memory.get)) == texts(await call(memory.get_all)) == ["new"]
    assert [turn.content for turn in archived] == ([] if purge else texts(exchange("old")))


@pytest.mark.parametrize("purge", [False, True])
async def test_reset_clears_the_notes(hiermem, tenant, make_memory, call, purge):
    memory = make_memory(chat_history=exchange("old"))
    thread, notes = tenant.thread("trip"), notes_store(hiermem)
    notes.commit("alice", "trip", ThreadState("They plan a trip.", turn_count=2), onto=Mark())
    learnt = thread.state().summary

    await call(memory.reset, purge=purge)
    memory.put(user("new"))

    assert learnt == "They plan a trip."
    assert thread.state().summary == ""


async def test_reset_of_a_thread_that_is_not_there_does_nothing(hiermem, memory, call):
    before = database_bytes(hiermem)

    await call(memory.reset)
    await call(memory.reset, purge=True)

    assert database_bytes(hiermem) == before


async def test_l36_the_application_sees_every_turn_with_id_seq_time_and_source(
    tenant, make_memory, call
):
    memory = make_memory(token_limit=10)
    await call(memory.put_messages, [*exchange("old"), asking("c1"), result("c1", "22")])
    await call(memory.put, user("one " * 9))

    turns = tenant.thread("trip").turns()

    assert len(await call(memory.get)) == 1
    assert [turn.seq for turn in turns] == [1, 2, 3, 4, 5]
    assert len({turn.id for turn in turns}) == 5
    assert all(turn.created_at.tzinfo for turn in turns)
    assert [turn.source for turn in turns] == ["human", "model", "model", "tool", "human"]
    assert {turn.origin.framework for turn in turns} == {"llamaindex"}


def newer_core(turn: TurnDraft) -> dict[str, str]:
    return {"dump": str(turn.origin.dump).replace('"block_type":"text"', '"block_type":"smell"')}


def newer_role_of_text(turn: TurnDraft) -> dict[str, str]:
    return {"body": '{"origin":["llamaindex","critic"]}', "dump": AS_THE_TURN}


def newer_role(turn: TurnDraft) -> dict[str, str]:
    return {"dump": str(turn.origin.dump).replace('"role":"user"', '"role":"critic"')}


DAMAGE = {
    "a role that this core lacks": newer_role,
    "a role that this core lacks, of text alone": newer_role_of_text,
    "a block kind that this core lacks": newer_core,
    "a row that is no JSON": lambda turn: {"body": "{broken"},
    "a role that nobody knows": lambda turn: {"role": "critic"},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("mode", ["compat", "core"])
async def test_l46_what_this_core_cannot_read_is_a_placeholder_and_a_warning(
    hiermem, make_memory, call, mode, damage
):
    memory = make_memory(counting=mode)
    read_me = ChatMessage(role="user", content="read me", additional_kwargs={"n": 1})
    memory.put_messages([*exchange("first"), read_me, assistant("and me")])
    thread = hiermem.tenant("alice").thread("trip")
    spoil_turn(thread, 3, **damage(thread.turns()[2]))
    before = database_bytes(hiermem)

    messages = await call(memory.get_all)
    context = await call(memory.get_context)

    unreadable = [w for w in context.warnings if w.code == "turn_unreadable"]
    assert messages[:2] == exchange("first")
    assert messages[3] == assistant("and me")
    assert "read me" in str(messages[2].content)
    assert context.messages[-1] == assistant("and me")
    assert [(w.count, w.ids) for w in unreadable] == [(1, (thread.turns()[2].id,))]
    assert database_bytes(hiermem) == before


async def test_what_can_be_read_gives_no_warning(make_memory, tenant, call):
    memory = make_memory(chat_history=exchange("first"))
    origin = Origin("langchain", "human", '{"of": "another framework"}')
    tenant.thread("trip").append([TurnDraft(role="user", content="hi", origin=origin)])

    context = await call(memory.get_context)

    assert context.warnings == ()
    assert context.messages[-1] == user("hi")


async def test_l47_a_composed_memory_that_edits_messages_does_not_edit_the_thread(
    make_memory, call
):
    memory = make_memory(chat_history=[system("Be brief."), *exchange("first")])
    secondary = make_memory(chat_store_key="facts", chat_history=[user("Oslo is cold.")])
    composed = SimpleComposableMemory.from_defaults(
        primary_memory=memory, secondary_memory_sources=[secondary]
    )

    shown = await call(composed.get)
    shown[1].blocks[0].text = "edited"

    assert "Oslo is cold." in shown[0].content
    assert memory.get_all() == [system("Be brief."), *exchange("first")]
    assert composed.primary_memory is memory


async def test_another_object_and_the_core_see_each_write_at_once(tenant, make_memory, call):
    memory, other = make_memory(), make_memory()
    await call(memory.put, user("hi"))
    tenant.thread("trip").append([TurnDraft(role="assistant", content="hello")])

    assert await call(other.get_all) == [user("hi"), assistant("hello")]
    assert await call(other.get) == await call(memory.get) == [user("hi"), assistant("hello")]


async def test_close_ends_what_the_memory_opened_and_nothing_else(hiermem, memory, call):
    private = HierMemChatMemoryBuffer.from_defaults()
    private.put(user("hi"))

    await call(private.close)
    await call(private.close)
    await call(memory.close)

    for method, arguments in (("get", ()), ("get_all", ()), ("put", (user("x"),)), ("reset", ())):
        with pytest.raises(ClosedError):
            await call(getattr(private, method), *arguments)
    assert not hiermem.is_closed
    memory.put(user("still open"))
    assert texts(memory.get()) == ["still open"]


def test_roles_come_back_as_the_frameworks_own(memory):
    memory.put_messages([ChatMessage(role=role, content=role.value) for role in MessageRole])

    assert [message.role for message in memory.get_all()] == list(MessageRole)
