"""The store of the framework's `Memory`: two statuses, in put order, for good or archived."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from blockbuster import blockbuster_ctx
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llamaindex.samples import asking, assistant, exchange, result, takes_a_store, texts, user

from hiermem_core import HierMem
from llamaindex_hiermem import HierMemDBChatStore, HierMemMemoryBlock

ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED
FIVE = [user(str(number)) for number in range(5)]


@pytest.fixture
def store(tenant):
    return HierMemDBChatStore(tenant=tenant)


@pytest.fixture
def make_memory(store):
    """Return a maker of the framework's memory that overflows after four short messages."""

    def make(**options):
        return Memory.from_defaults(
            **{
                "session_id": "trip",
                "chat_store": store,
                "token_limit": 40,
                "chat_history_token_ratio": 0.5,
                "token_flush_size": 5,
                "tokenizer_fn": str.split,
                **options,
            }
        )

    return make


def test_it_is_a_store_of_the_framework():
    assert issubclass(HierMemDBChatStore, AsyncDBChatStore)
    assert HierMemDBChatStore.class_name() == "HierMemDBChatStore"


async def test_messages_come_back_equal_in_put_order_by_status(store):
    await store.add_messages("trip", [user("a"), asking("c1"), result("c1", "22")])
    await store.add_message("trip", assistant("kept beside"), ARCHIVED)
    await store.add_message("trip", assistant("b"))

    assert await store.get_messages("trip") == [
        user("a"),
        asking("c1"),
        result("c1", "22"),
        assistant("b"),
    ]
    assert texts(await store.get_messages("trip", ARCHIVED)) == ["kept beside"]
    assert texts(await store.get_messages("trip", None))[-2:] == ["kept beside", "b"]
    assert [await store.count_messages("trip", s) for s in (ACTIVE, ARCHIVED, None)] == [4, 1, 5]
    assert await store.get_keys() == ["trip"]


async def test_limit_and_offset_apply_to_put_order(store):
    await store.add_messages("trip", FIVE)

    pages = {
        (limit, offset): texts(await store.get_messages("trip", limit=limit, offset=offset))
        for limit, offset in ((2, None), (None, 2), (2, 1), (0, None), (9, 9))
    }

    assert pages == {
        (2, None): ["0", "1"],
        (None, 2): ["2", "3", "4"],
        (2, 1): ["1", "2"],
        (0, None): [],
        (9, 9): [],
    }


async def test_an_unknown_key_is_empty(store, tenant):
    assert await store.get_messages("none") == []
    assert await store.count_messages("none", None) == 0
    assert await store.delete_message("none", 1) is None
    assert await store.delete_oldest_messages("none", 3) == []
    assert await store.archive_oldest_messages("none", 3) == []
    await store.delete_messages("none")
    await store.delete_messages("none", ACTIVE)
    await store.set_messages("none", [])
    await store.add_messages("none", [])

    assert await store.get_keys() == []
    assert tenant.threads() == []


@pytest.mark.parametrize("status", [ACTIVE, ARCHIVED])
async def test_set_replaces_both_statuses_for_good(store, status):
    await store.add_messages("trip", FIVE)
    await store.archive_oldest_messages("trip", 2)

    await store.set_messages("trip", [user("new"), assistant("newer")], status)

    assert texts(await store.get_messages("trip", None)) == ["new", "newer"]
    assert await store.count_messages("trip", status) == 2


async def test_l14_a_set_that_fails_leaves_the_key_as_it_was(store):
    await store.add_messages("trip", FIVE)

    with pytest.raises(ValueError, match=r"."):
        await store.set_messages("trip", [user("new"), "no message"])

    assert await store.get_messages("trip") == FIVE


async def test_a_message_is_deleted_by_its_seq_whatever_its_status(store, tenant):
    await store.add_messages("trip", FIVE)
    await store.add_messages("other", FIVE)
    await store.archive_oldest_messages("trip", 1)
    seqs = [turn.seq for turn in tenant.thread("trip").turns(status=None)]

    removed = [await store.delete_message("trip", seq) for seq in (seqs[0], seqs[3], 99)]

    assert removed == [FIVE[0], FIVE[3], None]
    assert texts(await store.get_messages("trip", None)) == ["1", "2", "4"]
    assert await store.get_messages("other") == FIVE


async def test_deleting_by_status_leaves_the_other(store):
    for key in ("a", "b", "c"):
        await store.add_messages(key, FIVE)
        await store.archive_oldest_messages(key, 2)

    await store.delete_messages("a", ACTIVE)
    await store.delete_messages("b", ARCHIVED)
    await store.delete_messages("c")

    assert texts(await store.get_messages("a", None)) == ["0", "1"]
    assert texts(await store.get_messages("b", None)) == ["2", "3", "4"]
    assert await store.get_messages("c", None) == []
    assert await store.get_keys() == ["a", "b"]


async def test_the_oldest_are_moved_or_deleted_oldest_first_and_capped(store):
    await store.add_messages("trip", FIVE)

    moved = await store.archive_oldest_messages("trip", 2)
    deleted = await store.delete_oldest_messages("trip", 1)
    none = [await store.delete_oldest_messages("trip", n) for n in (0, -1)]
    rest = await store.archive_oldest_messages("trip", 99)

    assert (texts(moved), texts(deleted), none) == (["0", "1"], ["2"], [[], []])
    assert texts(rest) == ["3", "4"]
    assert texts(await store.get_messages("trip", ARCHIVED)) == ["0", "1", "3", "4"]


async def test_l16_another_tenant_has_none_of_it(hiermem, store):
    await store.add_messages("trip", FIVE)
    other = HierMemDBChatStore(tenant=hiermem.tenant("bob"))

    await other.delete_messages("trip")

    assert await other.get_messages("trip", None) == []
    assert await other.get_keys() == []
    assert await store.get_messages("trip") == FIVE


async def test_no_method_blocks_the_loop(store):
    with blockbuster_ctx():
        await store.add_messages("trip", FIVE)
        await store.get_messages("trip", None)
        await store.archive_oldest_messages("trip", 1)
        await store.delete_message("trip", 2)
        await store.set_messages("trip", FIVE)
        await store.delete_messages("trip")


async def test_two_that_archive_at_once_move_each_message_once(store):
    await store.add_messages("trip", [user(str(n)) for n in range(40)])

    moved = await asyncio.gather(*(store.archive_oldest_messages("trip", 5) for _ in range(8)))

    archived = texts(await store.get_messages("trip", ARCHIVED))
    assert len(archived) == len(set(archived))
    assert set(archived) == {text for some in moved for text in texts(some)}


@takes_a_store
async def test_l37_what_overflows_is_archived_and_given_to_the_blocks(make_memory, store, tenant):
    block = HierMemMemoryBlock(tenant=tenant, k=2)
    memory = make_memory(memory_blocks=[block])
    for number in range(6):
        await memory.aput(user(f"boat {number} sails to the island"))
        await memory.aput(assistant(f"noted boat {number} and its island"))

    active, archived = await store.get_messages("trip"), await store.get_messages("trip", ARCHIVED)
    kept = {hit.content for hit in tenant.memory.search(namespace="chat", limit=100)}
    messages = await memory.aget("where does boat 0 sail?")

    assert len(active) + len(archived) == 12
    assert active[0].role.value == "user"
    assert kept == set(texts(archived))
    assert "boat 0 sails" in messages[0].content
    assert [m.content for m in messages[1:]] == texts(active)


@takes_a_store
@pytest.mark.filterwarnings("ignore:There is no current event loop:DeprecationWarning")
def test_l37_sync_calls_of_a_memory_work_from_several_loops(make_memory):
    memory = make_memory(token_limit=4000)

    async def inside(number):
        memory.put(user(f"in {number}"))
        await memory.aput(user(f"awaited {number}"))
        return len(memory.get_all())

    memory.put(user("outside"))
    with ThreadPoolExecutor(2) as workers:
        list(workers.map(lambda number: asyncio.run(inside(number)), range(2)))
    asyncio.run(inside(2))

    assert sorted(texts(memory.get())) == sorted(
        ["outside", *(f"{way} {n}" for way in ("in", "awaited") for n in range(3))]
    )


@takes_a_store
async def test_l13_a_memory_that_is_given_an_empty_batch_writes_nothing(make_memory, tenant):
    await make_memory().aput_messages([])

    assert tenant.threads() == []


@takes_a_store
async def test_a_reset_of_the_memory_leaves_nothing(make_memory, store):
    memory = make_memory()
    for number in range(8):
        await memory.aput(user(f"a few words for number {number}"))

    await memory.areset()

    assert await store.get_messages("trip", None) == []


@takes_a_store
async def test_l32_another_memory_on_the_same_session_goes_on(durable_location):
    for number in range(2):
        with HierMem.open(durable_location) as hiermem:
            store = HierMemDBChatStore(tenant=hiermem.tenant("alice"))
            memory = Memory.from_defaults(session_id="trip", chat_store=store)
            await memory.aput(user(f"message {number}"))
            stored = await memory.aget_all()

    assert texts(stored) == ["message 0", "message 1"]


DUMPS = {
    "to_dict": lambda store: HierMemDBChatStore.from_dict(json.loads(json.dumps(store.to_dict()))),
    "pickle": lambda store: pickle.loads(pickle.dumps(store)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda store: store.model_copy(deep=True),
}


@pytest.mark.parametrize("load", DUMPS.values(), ids=DUMPS)
async def test_dumps_and_copies_have_the_same_messages(store, load):
    await store.add_messages("trip", exchange("old"))

    loaded = load(store)

    assert type(loaded) is HierMemDBChatStore
    assert await loaded.get_messages("trip") == exchange("old")


async def test_a_store_is_made_by_its_place_or_in_this_process(durable_location):
    for _ in range(2):
        store = HierMemDBChatStore(location=str(durable_location), tenant_id="alice")
        await store.add_message("trip", user("hi"))

    assert texts(await store.get_messages("trip")) == ["hi", "hi"]
    assert await HierMemDBChatStore().get_keys() == []
    HierMem.opened(durable_location).close()
