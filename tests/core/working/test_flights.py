"""One load for all who ask alike."""

from __future__ import annotations

import asyncio
import logging

import pytest
from core.working.gated import AsyncGated, Gated, auntil, in_tasks, until

from hiermem_core import WorkingMemory, create_working_memory
from hiermem_core.errors import ConfigurationError


@pytest.mark.parametrize(
    ("kind", "threads", "tasks"),
    [
        (Gated, 20, 0),
        (Gated, 0, 20),
        (Gated, 10, 10),
        (Gated, 100, 100),
        (AsyncGated, 0, 20),
        (AsyncGated, 0, 200),
    ],
)
def test_d2_equal_calls_at_once_share_one_load(callers, kind, threads, tasks):
    searcher = kind()
    memory = WorkingMemory(searcher)
    for _ in range(threads):
        callers.start(lambda: memory.search("tea"))
    for _ in range(2 if tasks else 0):
        callers.start(in_tasks(memory, tasks // 2))

    until(lambda: memory.stats().calls == threads + tasks)
    in_flight = memory.stats().in_flight
    searcher.go.set()
    outcomes = callers.ends()

    answers = [a for o in outcomes for a in ([o] if o and o[0] == "tea" else o)]
    assert answers == [["tea", "tea"]] * (threads + tasks)
    assert len({id(answer) for answer in answers}) == threads + tasks
    assert searcher.loads == in_flight == 1
    assert memory.stats().joined == threads + tasks - 1
    assert memory.stats().in_flight == 0


def test_d2_one_searcher_in_both_colours_shares_its_flights(callers):
    class Both(Gated):
        async def asearch(self, query):
            return await asyncio.to_thread(self.search, query)

    for first_is_awaited in (True, False):
        searcher = Both()
        memory = WorkingMemory(searcher)
        starts = [in_tasks(memory, 5), lambda m=memory: [m.search("tea")]]
        for start in starts if first_is_awaited else reversed(starts):
            callers.start(start)
            searcher.begun.acquire(timeout=1)
        until(lambda m=memory: m.stats().calls == 6)
        searcher.go.set()
        callers.ends()

        assert searcher.loads == 1
        assert memory.stats().joined == 5


def test_d2_callers_of_other_keys_do_not_wait(callers):
    searcher = Gated()
    slow = WorkingMemory(lambda query: searcher.search(query) if query == "slow" else query)
    callers.start(lambda: slow.search("slow"))
    searcher.begun.acquire()

    quick = [slow.search("quick"), slow.search("quick")]
    awaited = asyncio.run(slow.asearch("another"))
    was_held = not searcher.go.is_set()
    searcher.go.set()

    assert quick == ["quick", "quick"]
    assert awaited == "another"
    assert was_held


def test_d7_all_who_joined_get_the_error_and_it_is_not_kept(callers):
    error = ZeroDivisionError("no tea")
    searcher = Gated(error)
    memory = WorkingMemory(searcher)
    for _ in range(10):
        callers.start(lambda: memory.search("tea"))
    callers.start(in_tasks(memory, 10))
    until(lambda: memory.stats().calls == 20)

    searcher.go.set()
    outcomes = callers.ends()
    searcher.answer = ("tea",)

    raised = [e for o in outcomes for e in (o if isinstance(o, list) else [o])]
    assert len(raised) == 20
    assert all(one is error for one in raised)
    assert (memory.stats().misses, memory.stats().failures) == (1, 1)
    assert memory.search("tea") == ["tea", "tea"]


@pytest.mark.parametrize("kind", [Gated, AsyncGated])
def test_d15_a_cancelled_caller_leaves_alone(kind):
    searcher = kind()
    memory = WorkingMemory(searcher)

    async def cancel_the_first():
        tasks = [asyncio.ensure_future(memory.asearch("tea")) for _ in range(20)]
        await auntil(lambda: memory.stats().calls == 20)
        tasks[0].cancel()
        await asyncio.wait([tasks[0]])
        searcher.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, *others = asyncio.run(cancel_the_first())

    assert isinstance(first, asyncio.CancelledError)
    assert others == [["tea", "tea"]] * 19
    assert searcher.loads == 1


@pytest.mark.parametrize("kind", [Gated, AsyncGated])
@pytest.mark.parametrize("answer", [("tea",), ZeroDivisionError("no tea")])
def test_d15_when_all_are_cancelled_the_load_still_ends_and_nothing_is_logged(kind, answer, caplog):
    searcher = kind(answer)
    memory = WorkingMemory(searcher)
    caplog.set_level(logging.DEBUG, logger="asyncio")
    caplog.clear()

    async def cancel_all():
        asyncio.get_running_loop().set_debug(False)
        tasks = [asyncio.ensure_future(memory.asearch("tea")) for _ in range(20)]
        await auntil(lambda: memory.stats().calls == 20)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        searcher.go.set()
        await auntil(lambda: memory.stats().in_flight == 0)
        return [task.cancelled() for task in tasks]

    cancelled = asyncio.run(cancel_all())

    assert all(cancelled)
    assert (searcher.loads, searcher.ended) == (1, 1)
    assert memory.stats().entries == (answer == ("tea",))
    assert [record for record in caplog.records if "selector" not in record.message] == []


def test_d15_a_caller_whose_time_is_up_leaves_alone():
    searcher = AsyncGated()
    memory = WorkingMemory(searcher)

    async def time_out():
        patient = asyncio.ensure_future(memory.asearch("tea"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(memory.asearch("tea"), 0.01)
        searcher.go.set()
        return await patient

    assert asyncio.run(time_out()) == ["tea", "tea"]
    assert searcher.loads == 1


@pytest.mark.parametrize("kind", [Gated, AsyncGated])
def test_d16_what_was_invalidated_during_its_load_answers_early_callers_only(kind):
    searcher = kind()
    memory = WorkingMemory(searcher)

    async def invalidate_amid():
        early = [asyncio.ensure_future(memory.asearch("tea")) for _ in range(3)]
        await auntil(lambda: memory.stats().calls == 3)
        dropped = memory.invalidate("tea")
        late = [asyncio.ensure_future(memory.asearch("tea")) for _ in range(3)]
        await auntil(lambda: memory.stats().calls == 6)
        loads, in_flight = searcher.loads, memory.stats().in_flight
        await auntil(lambda: searcher.loads == 2)
        searcher.go.set()
        answers = await asyncio.gather(*early, *late)
        return dropped, loads, in_flight, answers

    dropped, _, in_flight, answers = asyncio.run(invalidate_amid())

    assert dropped == 0
    assert in_flight == 2
    assert answers == [["tea", "tea"]] * 6
    assert searcher.loads == 2
    assert memory.stats().entries == 1


def test_d16_an_invalidated_load_is_not_kept(callers):
    searcher = Gated()
    memory = WorkingMemory(searcher)
    callers.start(lambda: memory.search("tea"))
    searcher.begun.acquire()

    memory.invalidate()
    searcher.go.set()
    outcomes = callers.ends()

    assert outcomes == [["tea", "tea"]]
    assert memory.stats().entries == 0


def test_d18_a_load_that_a_write_overtook_is_not_kept(callers):
    class Store(Gated):
        def add(self, text):
            return text

    searcher = Store()
    store = create_working_memory(searcher)
    callers.start(lambda: store.search("tea"))
    searcher.begun.acquire()

    store.add("green tea")
    searcher.go.set()
    callers.ends()

    assert store.working_memory.stats().entries == 0


def test_d24_with_ttl_0_calls_at_once_share_a_load(callers):
    searcher = Gated()
    memory = WorkingMemory(searcher, ttl_seconds=0)
    for _ in range(20):
        callers.start(lambda: memory.search("tea"))
    until(lambda: memory.stats().calls == 20)

    searcher.go.set()
    callers.ends()

    assert searcher.loads == 1
    assert memory.stats().entries == 0


def test_d25_who_joined_is_told_so(callers):
    searcher = Gated()
    memory = WorkingMemory(searcher)
    for _ in range(2):
        callers.start(lambda: memory.search_with_source("tea"))
    until(lambda: memory.stats().calls == 2)

    searcher.go.set()
    served = callers.ends()

    assert sorted(one.source for one in served) == ["backend", "flight"]
    assert served[0].result == served[1].result


def test_an_answer_that_cannot_be_copied_is_not_shared(callers):
    searcher = Gated()
    memory = WorkingMemory(lambda query: (part for part in searcher.search(query)))
    for _ in range(5):
        callers.start(lambda: list(memory.search("tea")))
    until(lambda: memory.stats().calls == 5)

    searcher.go.set()

    assert callers.ends() == [["tea", "tea"]] * 5
    assert (memory.stats().misses, memory.stats().bypassed, memory.stats().joined) == (1, 4, 0)


def test_an_error_of_the_generation_reaches_the_caller_and_is_counted():
    closed = WorkingMemory(lambda query: [query], generation=raising)

    with pytest.raises(ConfigurationError):
        closed.search("tea")

    assert (closed.stats().calls, closed.stats().failures) == (1, 1)


def raising():
    raise ConfigurationError("location", "is closed; open it")
