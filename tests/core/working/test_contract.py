"""Working memory holds its contract in every form it is used in."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from hiermem_core import ConfigurationError, WorkingMemory, create_working_memory
from hiermem_core.testing.contracts.working import Counting, WorkingMemoryContract, Wrapped


class Awaited:
    """A searcher that can only be awaited."""

    def __init__(self, counting):
        self.search = self._of(counting.search)

    @staticmethod
    def _of(search):
        async def awaited(*args, **kwargs):
            await asyncio.sleep(0)
            return search(*args, **kwargs)

        awaited.__wrapped__ = search
        return awaited


def in_a_loop(method):
    """Return what awaits a coroutine method in a loop of its own."""
    return lambda *args, **kwargs: asyncio.run(method(*args, **kwargs))


class TestSearch(WorkingMemoryContract):
    @pytest.fixture
    def wrapped(self):
        def wrap(searcher, **options):
            memory = WorkingMemory(searcher, **options)
            return Wrapped(memory.search, memory)

        return wrap


class TestSearchAwaited(WorkingMemoryContract):
    @pytest.fixture
    def wrapped(self):
        def wrap(searcher, **options):
            memory = WorkingMemory(searcher, **options)
            return Wrapped(in_a_loop(memory.asearch), memory)

        return wrap


class TestSearchOfAFunction(WorkingMemoryContract):
    @pytest.fixture
    def wrapped(self):
        def wrap(searcher, **options):
            cached = create_working_memory(searcher.search, **options)
            return Wrapped(cached, cached.working_memory)

        return wrap


class TestSearchOfALookalike(WorkingMemoryContract):
    @pytest.fixture
    def wrapped(self):
        def wrap(searcher, **options):
            cached = create_working_memory(searcher, **options)
            return Wrapped(cached.search, cached.working_memory)

        return wrap


class TestSearchOfATool(WorkingMemoryContract):
    @pytest.fixture
    def wrapped(self):
        def wrap(searcher, **options):
            (cached,) = tools = create_working_memory([searcher.search], **options)
            return Wrapped(cached, tools.working_memory)

        return wrap


class AsSync:
    """A working memory of a searcher that can only be awaited, for the contract's sync calls."""

    def __init__(self, memory):
        self._memory = memory
        self.get = in_a_loop(memory.aget)
        self.pin = in_a_loop(memory.apin)
        self.search_with_source = in_a_loop(memory.asearch_with_source)

    def __getattr__(self, name):
        return getattr(self._memory, name)


class TestSearchOfACoroutineFunction(WorkingMemoryContract):
    @pytest.fixture
    def wrapped(self):
        def wrap(searcher, **options):
            memory = AsSync(WorkingMemory(Awaited(searcher), **options))
            return Wrapped(in_a_loop(memory.asearch), memory)

        return wrap


@pytest.mark.anyio
async def test_a_wrapped_coroutine_function_is_one():
    searcher = Counting()

    @create_working_memory
    async def search(query, limit=10):
        """Look things up."""
        return searcher.search(query, limit)

    first, second = await search("tea"), await search("tea", limit=10)

    assert first == second
    assert searcher.loads == 1
    assert (search.__name__, search.__doc__) == ("search", "Look things up.")


@pytest.mark.parametrize("name", ["search", "search_with_source", "get", "pin"])
def test_e3_each_sync_method_that_may_load_has_a_twin(name):
    sync, twin = getattr(WorkingMemory, name), getattr(WorkingMemory, f"a{name}")

    assert inspect.iscoroutinefunction(twin)
    assert str(inspect.signature(twin)) == str(inspect.signature(sync))


def test_what_can_only_be_awaited_says_so():
    memory = WorkingMemory(Awaited(Counting()))

    with pytest.raises(ConfigurationError, match="asearch"):
        memory.search("tea")
