"""One memory, used from loops, threads and streams at once: nothing blocks, nothing is lost."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from blockbuster import blockbuster_ctx
from llama_index.core.chat_engine import SimpleChatEngine
from llamaindex.models import ListeningLLM
from llamaindex.samples import WATCHDOG_SECONDS, assistant, exchange, texts, user

from hiermem_core import ClosedError, FunctionCounter, HierMem
from hiermem_core.pool import POOL_THREADS
from llamaindex_hiermem import HierMemChatMemoryBuffer

ASYNC_CALLS = {
    "aget": lambda memory: memory.aget(),
    "aget_context": lambda memory: memory.aget_context(),
    "aget_all": lambda memory: memory.aget_all(),
    "aput": lambda memory: memory.aput(user("hi")),
    "aput_messages": lambda memory: memory.aput_messages(exchange("new")),
    "aset": lambda memory: memory.aset(exchange("new")),
    "areset": lambda memory: memory.areset(),
    "areset with purge": lambda memory: memory.areset(purge=True),
    "aclose": lambda memory: memory.aclose(),
}


class Ticks:
    """A tokenizer and counter that wait, off the loop, until the loop has ticked three times."""

    def __init__(self, loop):
        self._loop = loop
        self._waiting = False
        self.turned = []

    def __call__(self, text):
        if self._waiting:
            ticked = threading.Event()
            self._loop.call_soon_threadsafe(self._tick, ticked, 3)
            self.turned.append(ticked.wait(WATCHDOG_SECONDS / 6))
        return text.split()

    def wait_from_now_on(self):
        self._waiting = True

    def _tick(self, ticked, left):
        if left == 0:
            ticked.set()
        else:
            self._loop.call_soon(self._tick, ticked, left - 1)


@pytest.mark.parametrize("mode", ["compat", "core"])
async def test_l19_the_loop_turns_while_a_call_works(location, mode):
    ticks = Ticks(asyncio.get_running_loop())
    counter = FunctionCounter(ticks, id="ticks")
    with HierMem.open(location, counter=counter) as hiermem:
        memory = HierMemChatMemoryBuffer.from_defaults(
            tenant=hiermem.tenant("alice"),
            chat_store_key="trip",
            tokenizer_fn=ticks,
            counting=mode,
        )
        memory.put(user("before"))
        ticks.wait_from_now_on()

        await memory.aput(user("hi"))
        await memory.aset([user("before"), user("hi"), assistant("hello")])
        window = await memory.aget()
        await memory.aclose()

    assert texts(window) == ["before", "hi", "hello"]
    assert len(ticks.turned) > 2
    assert all(ticks.turned)


async def test_l19_sync_calls_inside_a_running_loop_work(memory):
    memory.put(user("hi"))
    memory.put_messages([assistant("hello")])
    memory.set([*memory.get_all(), user("more")])

    assert texts(memory.get()) == ["hi", "hello", "more"]
    memory.reset()
    assert memory.get_context().messages == ()


@pytest.mark.parametrize("call", ASYNC_CALLS.values(), ids=ASYNC_CALLS)
async def test_no_async_method_blocks_the_loop(hiermem, memory, call):
    memory.put_messages(exchange("old"))

    with blockbuster_ctx():
        await call(memory)

    assert not hiermem.is_closed


async def test_closing_a_memory_in_this_process_does_not_block_the_loop():
    memory = HierMemChatMemoryBuffer.from_defaults(exchange("old"))

    with blockbuster_ctx():
        await memory.aget()
        await memory.aclose()

    with pytest.raises(ClosedError):
        memory.get()


def test_no_object_belongs_to_a_loop(memory):
    async def talk(text):
        await memory.aput(user(text))
        return texts(await memory.aget())

    first = asyncio.run(talk("one"))
    with ThreadPoolExecutor(1) as other_thread:
        second = other_thread.submit(asyncio.run, talk("two")).result(WATCHDOG_SECONDS)

    assert (first, second) == (["one"], ["one", "two"])
    assert texts(memory.get()) == ["one", "two"]


async def test_the_callers_context_variables_are_seen_in_the_pool(make_memory):
    name = contextvars.ContextVar("name", default="nobody")
    seen = []
    memory = make_memory(tokenizer_fn=lambda text: [seen.append(name.get()), *text.split()])
    memory.put(user("hi"))
    name.set("alice")

    await memory.aget()

    assert set(seen) == {"alice"}


async def test_a_cancelled_put_is_complete_or_absent(memory):
    tasks = [asyncio.create_task(memory.aput_messages(exchange(f"e{n}"))) for n in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await settled(memory)

    stored = memory.get_all()
    assert [outcome for outcome in outcomes[1::2] if outcome is not None] == []
    assert all(isinstance(o, asyncio.CancelledError | None) for o in outcomes)
    for question, answer in zip(stored[::2], stored[1::2], strict=True):
        assert exchange(question.content.split()[0]) == [question, answer]
    assert {f"e{n}" for n in range(1, 20, 2)} <= {m.content.split()[0] for m in stored}


async def settled(memory):
    """Wait until the pool has done what was begun: its threads are all free again."""
    together = threading.Barrier(POOL_THREADS + 1)
    waiting = [
        asyncio.create_task(memory._tenant.pool.run(together.wait, WATCHDOG_SECONDS))
        for _ in range(POOL_THREADS)
    ]
    await asyncio.to_thread(together.wait, WATCHDOG_SECONDS)
    await asyncio.gather(*waiting)


def test_threads_that_put_at_once_keep_their_order(memory):
    def put_all(worker):
        for n in range(25):
            memory.put(user(f"{worker} {n}"))
            memory.get()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put_all, range(4)))

    for worker in range(4):
        mine = [text for text in texts(memory.get_all()) if text.startswith(f"{worker} ")]
        assert mine == [f"{worker} {n}" for n in range(25)]


async def test_l41_a_soak_of_all_kinds_of_calls_stores_each_acknowledged_put_once(memory):
    failures = []
    acknowledged = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: failures.append(context))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", failures.append)

        await asyncio.gather(
            *(asyncio.to_thread(sync_puts, memory, worker, acknowledged) for worker in range(3)),
            *(cancelled_puts(memory, worker, acknowledged) for worker in range(3)),
            *(asyncio.to_thread(streams, memory, worker, acknowledged) for worker in range(2)),
            *(async_streams(memory, worker, acknowledged) for worker in range(2)),
            reads(memory),
        )
        await settled(memory)

    stored = Counter(texts(memory.get_all()))
    answers = stored.pop("text text text")
    assert failures == []
    assert answers == 2 * 2 * 5
    assert {text: stored[text] for text in acknowledged} == dict.fromkeys(acknowledged, 1)
    assert set(stored.values()) == {1}
    assert len(acknowledged) > 3 * 20 + 2 * 2 * 5


def sync_puts(memory, worker, acknowledged):
    for n in range(20):
        memory.put(user(f"sync {worker} {n}"))
        acknowledged.append(f"sync {worker} {n}")


async def cancelled_puts(memory, worker, acknowledged):
    for n in range(20):
        text = f"async {worker} {n}"
        task = asyncio.create_task(memory.aput(user(text)))
        if n % 3 == 0:
            await asyncio.sleep(0)
            task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        if outcome is None:
            acknowledged.append(text)


def streams(memory, worker, acknowledged):
    engine = SimpleChatEngine.from_defaults(memory=memory, llm=ListeningLLM(max_tokens=3))
    for n in range(5):
        for _ in engine.stream_chat(f"stream {worker} {n}").response_gen:
            pass
        acknowledged.append(f"stream {worker} {n}")


async def async_streams(memory, worker, acknowledged):
    engine = SimpleChatEngine.from_defaults(memory=memory, llm=ListeningLLM(max_tokens=3))
    for n in range(5):
        response = await engine.astream_chat(f"astream {worker} {n}")
        async for _ in response.async_response_gen():
            pass
        acknowledged.append(f"astream {worker} {n}")


async def reads(memory):
    for _ in range(20):
        await memory.aget()
        await memory.aget_all()
