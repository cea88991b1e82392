"""The chat store: keys are threads of one tenant, what is deleted is archived."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from blockbuster import blockbuster_ctx
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore
from llama_index.core.storage.chat_store.loading import load_chat_store
from llamaindex.samples import asking, assistant, exchange, result, run_python, texts, user

from hiermem_core import ConfigurationError, HierMem, MissingIdentityError
from llamaindex_hiermem import HierMemChatMemoryBuffer, HierMemChatStore, HierMemDBChatStore

METHODS = [
    "set_messages",
    "get_messages",
    "add_message",
    "delete_messages",
    "delete_message",
    "delete_last_message",
    "get_keys",
]


@pytest.fixture
def store(tenant):
    return HierMemChatStore(tenant=tenant)


@pytest.fixture
def call(request, anyio_backend):
    """Return a caller of a method, in the colour of the test's parameter."""

    async def made(method, *arguments):
        name = method.__name__
        if not request.node.callspec.params["colour"]:
            return method(*arguments)
        twin = "async_add_message" if name == "add_message" else f"a{name}"
        return await getattr(method.__self__, twin)(*arguments)

    return made


colours = pytest.mark.parametrize("colour", [False, True], ids=["sync", "async"])


async def archived(tenant, key):
    return texts(await HierMemDBChatStore(tenant=tenant).get_messages(key, "archived"))


def test_it_is_a_chat_store_with_every_method_in_both_colours():
    assert issubclass(HierMemChatStore, BaseChatStore)
    assert HierMemChatStore.aadd_message is HierMemChatStore.async_add_message
    for name in METHODS:
        twin = "async_add_message" if name == "add_message" else f"a{name}"
        assert name in vars(HierMemChatStore)
        assert inspect.iscoroutinefunction(vars(HierMemChatStore)[twin])


@colours
async def test_messages_come_back_equal_and_fresh_in_the_order_of_their_keys(store, call, colour):
    round_trip = [user("Is it warm?"), asking("c1"), result("c1", "22"), assistant("Yes.")]
    for message in round_trip:
        await call(store.add_message, "trip", message)
    await call(store.set_messages, "other", exchange("old"))

    first, again = await call(store.get_messages, "trip"), await call(store.get_messages, "trip")

    assert first == again == round_trip
    assert first[0] is not again[0]
    assert await call(store.get_keys) == ["trip", "other"]
    assert isinstance(first, list)


@colours
async def test_an_unknown_key_is_empty_and_deletes_nothing(store, call, colour, tenant):
    assert await call(store.get_messages, "none") == []
    assert await call(store.delete_messages, "none") is None
    assert await call(store.delete_message, "none", 0) is None
    assert await call(store.delete_last_message, "none") is None
    assert await call(store.get_keys) == []
    assert tenant.threads() == []


@colours
async def test_deletes_return_what_they_removed_and_archive_it(store, call, colour, tenant):
    await call(store.set_messages, "trip", [user(str(n)) for n in range(5)])

    removed = [
        await call(store.delete_message, "trip", 1),
        await call(store.delete_last_message, "trip"),
        await call(store.delete_message, "trip", -3),
    ]
    missing = [await call(store.delete_message, "trip", place) for place in (2, 7, -3)]
    rest = await call(store.delete_messages, "trip")

    assert texts(removed) == ["1", "4", "0"]
    assert missing == [None] * 3
    assert texts(rest) == ["2", "3"]
    assert await call(store.get_messages, "trip") == []
    assert await call(store.delete_last_message, "trip") is None
    assert await call(store.get_keys) == []
    assert await archived(tenant, "trip") == ["0", "1", "2", "3", "4"]


@colours
async def test_a_store_that_purges_keeps_nothing(tenant, call, colour):
    store = HierMemChatStore(tenant=tenant, on_delete="purge")
    await call(store.set_messages, "trip", [user(str(n)) for n in range(4)])

    await call(store.delete_message, "trip", 0)
    await call(store.set_messages, "trip", [user("5"), user("6")])
    left = await archived(tenant, "trip")
    gone = await call(store.delete_messages, "trip")

    assert left == []
    assert texts(gone) == ["5", "6"]
    assert await archived(tenant, "trip") == []


@colours
async def test_purge_deletes_archived_messages_too(store, call, colour, tenant):
    await call(store.set_messages, "trip", exchange("old"))
    await call(store.delete_messages, "trip")

    assert await call(store.purge, "trip")
    assert not await call(store.purge, "trip")
    assert tenant.threads() == []


@colours
async def test_set_archives_what_it_replaces_and_l34_an_empty_list_empties(
    store, call, colour, tenant
):
    await call(store.set_messages, "trip", exchange("old"))
    await call(store.set_messages, "trip", exchange("new"))
    after = await call(store.get_messages, "trip")
    await call(store.set_messages, "trip", [])

    assert after == exchange("new")
    assert await call(store.get_messages, "trip") == []
    assert await archived(tenant, "trip") == texts([*exchange("old"), *exchange("new")])


@colours
async def test_a_message_put_before_others_leaves_their_ids(store, call, colour, tenant):
    await call(store.set_messages, "trip", [user("1"), user("2"), user("3")])
    ids = [turn.id for turn in tenant.thread("trip").turns()]

    for place, text in ((0, "0"), (2, "1.5"), (99, "4"), (-1, "3.5")):
        await call(store.add_message, "trip", user(text), place)
    turns = tenant.thread("trip").turns()

    assert [turn.content for turn in turns] == ["0", "1", "1.5", "2", "3", "3.5", "4"]
    assert [t.id for t in turns if t.content in {"1", "2", "3"}] == ids
    assert [turn.seq for turn in turns] == sorted({turn.seq for turn in turns})


async def test_l13_an_empty_batch_writes_nothing(store, tenant):
    store.set_messages("trip", [])
    await store.aset_messages("trip", [])

    assert tenant.threads() == []


def test_l11_a_list_is_neither_kept_nor_shared(store):
    given = exchange("old")
    store.set_messages("trip", given)
    given.append(user("more"))
    given[0].additional_kwargs["mark"] = 1
    store.get_messages("trip").clear()

    assert store.get_messages("trip") == exchange("old")


def test_l16_stores_of_two_tenants_share_nothing(hiermem):
    alice, bob = (HierMemChatStore(tenant=hiermem.tenant(name)) for name in ("alice", "bob"))
    alice.set_messages("trip", exchange("hers"))

    assert bob.get_messages("trip") == []
    assert bob.get_keys() == []
    assert bob.delete_messages("trip") is None
    assert alice.get_messages("trip") == exchange("hers")


def test_a_store_is_made_by_its_place(tmp_path):
    location = str(tmp_path / "memory.db")
    store = HierMemChatStore(location=location, tenant_id="alice")
    store.set_messages("trip", exchange("old"))

    again = HierMemChatStore(location=location, tenant_id="alice")

    assert again.get_messages("trip") == exchange("old")
    with pytest.raises(MissingIdentityError):
        HierMemChatStore(location=location)
    HierMem.opened(location).close()


def test_stores_in_this_process_share_nothing():
    one, other = HierMemChatStore(), HierMemChatStore()
    one.add_message("trip", user("mine"))

    assert other.get_keys() == []


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda store: store.model_copy(deep=True)],
    ids=["copy", "deepcopy", "model_copy"],
)
def test_a_copy_is_on_the_same_threads(store, duplicate):
    twin = duplicate(store)
    twin.add_message("trip", user("hi"))

    assert store.get_messages("trip") == [user("hi")]
    assert twin.on_delete == store.on_delete


LOADS = {
    "from_dict": lambda store: HierMemChatStore.from_dict(store.to_dict()),
    "the framework's loader": lambda store: load_chat_store(
        json.loads(json.dumps(store.to_dict()))
    ),
    "pickle": lambda store: pickle.loads(pickle.dumps(store)),
    "its JSON": lambda store: HierMemChatStore.from_json(store.to_json()),
}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_dump_leads_back_to_the_same_threads(hiermem, tenant, load):
    store = HierMemChatStore(tenant=tenant, on_delete="purge")
    store.set_messages("trip", [asking("c1", text="Let me see."), result("c1", "22")])
    dump = store.to_dict()

    loaded = load(store)

    assert ("threads" in dump) == (hiermem.location == ":memory:")
    assert loaded.get_messages("trip") == store.get_messages("trip")
    assert (loaded.get_keys(), loaded.on_delete) == (["trip"], "purge")


def test_a_dump_of_a_place_that_is_gone_is_refused(tmp_path):
    with HierMem.open(tmp_path / "memory.db") as hiermem:
        dump = HierMemChatStore(tenant=hiermem.tenant("alice")).to_dict()
    (tmp_path / "memory.db").unlink()

    with pytest.raises(ConfigurationError):
        HierMemChatStore.from_dict(dump)


def test_the_frameworks_buffer_works_on_it_and_loads_again(store):
    memory = ChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key="trip")
    memory.put(user("Is it warm?"))
    memory.put(assistant("Yes."))

    loaded = ChatMemoryBuffer.from_dict(json.loads(json.dumps(memory.to_dict())))

    assert loaded.get() == memory.get() == store.get_messages("trip")
    assert type(loaded.chat_store) is HierMemChatStore
    memory.reset()
    assert store.get_messages("trip") == []


def test_a_buffer_takes_the_store_and_shows_it(store):
    memory = HierMemChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key="trip")
    memory.put(user("hi"))

    assert store.get_messages("trip") == [user("hi")]
    assert memory.chat_store.get_messages("trip") == [user("hi")]
    assert memory.chat_store_key == "trip"
    with pytest.raises(MissingIdentityError):
        HierMemChatMemoryBuffer.from_defaults(chat_store=store)


def test_a_store_of_the_framework_moves_key_by_key(store):
    theirs = SimpleChatStore(store={"a": exchange("one"), "b": exchange("two")})

    for key in theirs.get_keys():
        store.set_messages(key, theirs.get_messages(key))

    assert {key: store.get_messages(key) for key in store.get_keys()} == theirs.store


async def test_no_async_method_blocks_the_loop(store):
    with blockbuster_ctx():
        await store.aset_messages("trip", exchange("old"))
        await store.async_add_message("trip", user("more"), 0)
        await store.aget_messages("trip")
        await store.adelete_message("trip", 0)
        await store.adelete_last_message("trip")
        await store.aget_keys()
        await store.adelete_messages("trip")
        await store.apurge("trip")


def test_threads_and_loops_that_add_and_insert_lose_nothing(store):
    def work(worker):
        async def add(number):
            await store.async_add_message("trip", user(f"{worker}.{number}"), number % 2 or None)

        for number in range(8):
            asyncio.run(add(number))

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(work, range(4)))

    assert sorted(texts(store.get_messages("trip"))) == sorted(
        f"{worker}.{number}" for worker in range(4) for number in range(8)
    )


def test_importing_the_module_makes_it_known_to_the_frameworks_loader():
    printed = run_python(
        """
        import llamaindex_hiermem
        from llama_index.core.storage.chat_store.loading import RECOGNIZED_CHAT_STORES
        print(sorted(RECOGNIZED_CHAT_STORES))
        """
    )

    assert printed == "['HierMemChatStore', 'SimpleChatStore']\n"
