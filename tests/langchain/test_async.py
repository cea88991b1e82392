"""Sync and async are one behaviour; neither blocks a loop nor waits for one."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psutil
import pytest
from blockbuster import BlockingError, blockbuster_ctx
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from sqlalchemy import event

from hiermem_core import HierMem
from hiermem_core.testing import FakeClock
from langchain_hiermem import HierMemChatMessageHistory, history_factory

PROMPT = ChatPromptTemplate([MessagesPlaceholder("history"), ("human", "{question}")])
TWINS = {
    "messages": "aget_messages",
    "window": "awindow",
    "context": "acontext",
    "add_messages": "aadd_messages",
    "clear": "aclear",
}
CALL = {"id": "c1", "name": "find", "args": {"n": 1}}
SOME_MESSAGES = [
    HumanMessage("hi", id="m1"),
    HumanMessage("hi again", id="m1"),
    HumanMessage("hi"),
    SystemMessage("be brief"),
    AIMessage("", tool_calls=[CALL], id="m2"),
    ToolMessage("found", tool_call_id="c1"),
    AIMessageChunk("so ", id="m3"),
    AIMessageChunk("long", id="m3"),
    AIMessage("word " * 200, id="m4"),
    RemoveMessage(id="m1"),
    RemoveMessage(id="m4"),
    RemoveMessage(id="ghost"),
    RemoveMessage(id="__remove_all__"),
]


def history_of(hiermem, **options):
    return HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id="t1", **options)


def steps():
    """Give one call of a method: its sync name and its arguments."""
    batch = st.lists(st.sampled_from(SOME_MESSAGES), max_size=5)
    return st.one_of(
        batch.map(lambda messages: ("add_messages", [messages])),
        st.integers(-1, 400).map(lambda budget: ("window", [budget])),
        st.sampled_from([("messages", []), ("clear", [])]),
    )


def outcome(call):
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - which error it is is compared
        return type(error), str(error)


async def async_outcome(awaitable):
    try:
        return await awaitable
    except Exception as error:  # noqa: BLE001 - which error it is is compared
        return type(error), str(error)


def sync_call(history, name, arguments):
    if name == "messages":
        return history.messages
    return getattr(history, name)(*arguments)


def rows(hiermem):
    """Return what is stored, without the ids that are fresh in each run."""
    thread = hiermem.tenant("acme").thread("t1")
    if not hiermem.tenant("acme").threads():
        return []
    turns = [*thread.turns(), *thread.turns(status="archived")]
    return [replace(turn, id=None) for turn in turns]


@given(st.lists(steps(), min_size=1, max_size=8))
def test_lc25_sync_and_async_give_equal_results_errors_and_rows(calls):
    with (
        HierMem.open(":memory:", clock=FakeClock()) as one,
        HierMem.open(":memory:", clock=FakeClock()) as other,
    ):
        results = [
            outcome(lambda name=name, given=arguments: sync_call(history_of(one), name, given))
            for name, arguments in calls
        ]

        async def run():
            return [
                await async_outcome(getattr(history_of(other), TWINS[name])(*arguments))
                for name, arguments in calls
            ]

        assert asyncio.run(run()) == results
        assert rows(other) == rows(one)


def test_lc25_every_public_operation_has_an_async_twin_of_equal_signature():
    for name, twin in TWINS.items():
        member = inspect.getattr_static(HierMemChatMessageHistory, name)
        function = member.fget if isinstance(member, property) else member
        awaited = vars(HierMemChatMessageHistory)[twin]
        assert inspect.iscoroutinefunction(awaited)
        assert inspect.signature(awaited) == inspect.signature(function)


def test_lc25_no_operation_is_left_without_a_twin():
    own = {name for name in vars(HierMemChatMessageHistory) if not name.startswith("_")}

    assert own == {*TWINS, *TWINS.values()}


@pytest.mark.files
async def test_lc26_no_async_method_blocks_the_loop(hiermem, history):
    with blockbuster_ctx():
        for _ in range(3):
            await history.aadd_messages([HumanMessage("hi", id="m1"), AIMessage("hello")])
            assert len(await history.aget_messages()) >= 2
            assert await history.awindow(1000)
        await history.aadd_messages([RemoveMessage(id="m1")])
        with pytest.raises(ValueError, match="ghost"):
            await history.aadd_messages([RemoveMessage(id="ghost")])
        await history.aclear()
        assert await history.aget_messages() == []
        with pytest.raises(BlockingError):
            history.messages  # noqa: B018 - reading is what blocks; the detector sees it


async def test_lc26_making_a_history_does_not_block_the_loop(hiermem):
    with blockbuster_ctx():
        factory = history_factory(hiermem, strict=True)
        made = [factory("acme", f"t{number}") for number in range(100)]

    assert len(made) == 100


@pytest.mark.parametrize("method", ["ainvoke", "astream"])
async def test_lc26_an_async_run_does_not_block_the_loop(remembering, configured, history, method):
    chain = remembering(PROMPT | FakeListChatModel(responses=["one", "two"]))
    await chain.ainvoke({"question": "first?"}, configured())

    with blockbuster_ctx():
        if method == "ainvoke":
            await chain.ainvoke({"question": "second?"}, configured())
        else:
            async for _ in chain.astream({"question": "second?"}, configured()):
                pass

    stored = [message.content for message in history.messages]
    assert stored == ["first?", "one", "second?", "two"]


@pytest.mark.timeout(30)
async def test_lc27_sync_methods_return_inside_a_running_coroutine(history):
    history.add_messages([HumanMessage("hi"), AIMessage("hello")])

    assert len(history.messages) == 2
    assert len(history.window(1000)) == 2
    history.clear()
    assert history.messages == []


@pytest.mark.timeout(30)
async def test_lc27_sync_and_async_calls_mix_on_one_loop(remembering, configured, history):
    chain = remembering(PROMPT | FakeListChatModel(responses=["ok"]))

    async def run(number):
        chain.invoke({"question": f"sync {number}"}, configured())
        await chain.ainvoke({"question": f"async {number}"}, configured())
        return len(history.messages), len(await history.aget_messages())

    seen = await asyncio.gather(*(run(number) for number in range(12)))

    assert len(seen) == 12
    assert len(history.messages) == 48


@pytest.mark.timeout(60)
def test_lc27_many_loops_in_many_threads_share_one_hiermem(hiermem, history):
    async def use(number):
        await history.aadd_messages([HumanMessage(f"q{number}"), AIMessage(f"a{number}")])
        history.add_messages([HumanMessage(f"r{number}"), AIMessage(f"b{number}")])
        return await history.aget_messages()

    def loop(start):
        async def run():
            await asyncio.gather(*(use(start + number) for number in range(10)))

        asyncio.run(run())

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(loop, range(0, 40, 10)))

    stored = [message.content for message in history.messages]
    assert sorted(stored[::2]) == sorted(f"{k}{n}" for k in "qr" for n in range(40))
    assert [{"q": "a", "r": "b"}[one[0]] + one[1:] for one in stored[::2]] == stored[1::2]


@pytest.mark.timeout(30)
@pytest.mark.files
async def test_lc27_set_up_and_reads_return_while_another_writer_holds_the_lock(
    hiermem, location, history
):
    history.add_messages([HumanMessage("hi")])
    writer = sqlite3.connect(location / "memory.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        made = history_of(hiermem)
        assert made.messages == await made.aget_messages() == [HumanMessage("hi")]
        assert made.window(1000) == await made.awindow(1000) == [HumanMessage("hi")]
        waiting = asyncio.ensure_future(made.aadd_messages([AIMessage("hello")]))
        assert await made.aget_messages() == [HumanMessage("hi")]
        assert not waiting.done()
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    await waiting

    assert history.messages == [HumanMessage("hi"), AIMessage("hello")]


async def test_an_awaited_add_that_is_cancelled_is_stored_whole_or_not_at_all(history):
    async def add(number):
        await history.aadd_messages([HumanMessage(f"q{number}"), AIMessage(f"a{number}")])

    tasks = [asyncio.ensure_future(add(number)) for number in range(30)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    stored = [message.content for message in await history.aget_messages()]
    assert [one[1:] for one in stored[::2]] == [one[1:] for one in stored[1::2]]
    assert {f"q{number}" for number in range(1, 30, 2)} <= set(stored)


@pytest.mark.files
def test_lc28_ten_thousand_histories_use_the_connections_of_one(hiermem, location):
    opened = []
    event.listen(hiermem._services.database._engine, "connect", lambda *one: opened.append(one))
    history_of(hiermem).add_messages([HumanMessage("hi"), AIMessage("hello")])
    connections, files = len(opened), files_of(location)

    histories = [history_of(hiermem) for _ in range(10_000)]
    for history in histories:
        assert len(history.messages) == 2
    histories[0].add_user_message("still here")

    assert len(histories[-1].window(1000)) == 3
    assert len(opened) == connections
    assert files_of(location) == files


@pytest.mark.files
def test_lc28_histories_used_by_many_threads_share_the_pool(hiermem, location):
    opened = []
    engine = hiermem._services.database._engine
    event.listen(engine, "connect", lambda *one: opened.append(one))

    def use(number):
        history = history_factory(hiermem)("acme", f"t{number % 50}")
        if number % 10 == 0:
            history.add_messages([HumanMessage("hi"), AIMessage("hello")])
        return len(history.messages)

    with ThreadPoolExecutor(32) as threads:
        list(threads.map(use, range(2_000)))

    assert len(opened) <= engine.pool.size()
    watching = 1
    assert 1 <= files_of(location) <= engine.pool.size() + watching


def files_of(location):
    """Return how many handles this process holds on the database of a location."""
    database = location / "memory.db"
    return sum(database.samefile(file.path) for file in psutil.Process().open_files())
