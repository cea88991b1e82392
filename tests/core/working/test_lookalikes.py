"""What is made of a searcher behaves as the searcher does, and its writes drop the answers."""

from __future__ import annotations

import asyncio
import copy
import functools
import pickle

import pytest

from hiermem_core import ConfigurationError, WorkingMemory, create_working_memory
from hiermem_core.testing.contracts.working import Counting


def test_what_does_not_search_is_refused():
    for thing in (object(), 7, Counting, [], [len], {}):
        with pytest.raises(ConfigurationError):
            create_working_memory(thing)


class Store:
    """A searcher without a generation that writes."""

    def __init__(self):
        self.kept = []
        self.limit = 10
        self.loads = 0

    def search(self, query, limit=None):
        self.loads += 1
        return [text for text in self.kept if query in text][: limit or self.limit]

    def add(self, text):
        self.kept.append(text)
        return len(self.kept)

    def update_all(self, text):
        self.kept = [text for _ in self.kept]
        raise ZeroDivisionError

    def delete(self, text):
        self.kept.remove(text)

    def get_all(self):
        return list(self.kept)

    def __eq__(self, other):
        return isinstance(other, Store) and self.kept == other.kept

    __hash__ = None


def test_d18_a_wrapped_write_drops_the_answers_also_when_it_fails():
    store = create_working_memory(Store())
    store.search("tea")

    store.add("green tea")
    after_add = store.search("tea")
    with pytest.raises(ZeroDivisionError):
        store.update_all("black tea")
    after_failure = store.search("tea")
    store.delete("black tea")

    assert after_add == ["green tea"]
    assert after_failure == ["black tea"]
    assert store.search("tea") == []


@pytest.mark.anyio
async def test_d18_an_awaited_write_drops_the_answers_too():
    class Twins(Store):
        async def asearch(self, query, limit=None):
            return self.search(query, limit)

        async def aadd(self, text):
            await asyncio.sleep(0)
            return self.add(text)

    store = create_working_memory(Twins(), auto_populate=True)
    store.working_memory.pin("tea")

    await store.aadd("green tea")

    assert store.working_memory.get("tea") == await store.asearch("tea") == ["green tea"]


def test_d20_the_original_is_as_before():
    plain, untouched = Store(), Store()
    looks_before = dir(plain), vars(plain).copy()

    cached = create_working_memory(plain)
    for _ in range(3):
        cached.search("tea")
    cached_loads = plain.loads
    for _ in range(3):
        plain.search("tea")

    assert (cached_loads, plain.loads) == (1, 4)
    assert plain == untouched
    assert not hasattr(plain, "working_memory")
    assert (dir(plain), [*vars(plain)]) == (looks_before[0], [*looks_before[1]])
    assert type(plain) is Store


def test_d20_the_lookalike_shows_no_working_memory_and_shares_everything_else():
    plain = Store()

    cached = create_working_memory(plain)
    cached.limit = 3
    plain.kept.append("green tea")

    assert isinstance(cached, Store)
    assert type(cached).__name__ == "Store"
    assert cached == plain
    assert plain.limit == 3
    assert cached.get_all() == ["green tea"]
    assert "working_memory" not in dir(cached)
    assert "working_memory" not in vars(cached)
    assert "working_memory" not in repr(cached).rpartition(".")[2]
    assert not hasattr(copy.copy(cached), "working_memory")
    assert type(pickle.loads(pickle.dumps(cached))) is Store
    with pytest.raises(AttributeError):
        cached.nothing_of_the_kind  # noqa: B018 - it is looked up


def test_d20_a_lookalike_of_tools_shows_no_working_memory():
    def search_memory(query):
        return [query]

    def count():
        return 1

    listed = create_working_memory([search_memory, count])
    named = create_working_memory({"searchMemories": search_memory, "other": count})

    assert (listed[1], named["other"]) == (count, count)
    assert listed == [*listed]
    assert [*named] == ["searchMemories", "other"]
    assert (type(copy.copy(named)), type(copy.copy(listed))) == (dict, list)
    for made in (listed, named):
        assert "working_memory" not in dir(made)
        assert "working_memory" not in repr(type(made)())
        assert made.working_memory.stats().calls == 0


def test_tools_share_one_working_memory_and_writing_ones_drop_its_answers():
    store = Store()

    def search_memories(query):
        return store.search(query)

    def addMemory(content):  # noqa: N802 - as other languages name it
        return store.add(content)

    def forget_memory(content):
        store.delete(content)

    search, add, forget = tools = create_working_memory([search_memories, addMemory, forget_memory])

    empty = search("tea"), search("tea")
    add("green tea")
    full = search("tea")
    forget("green tea")

    assert empty == ([], [])
    assert full == ["green tea"]
    assert search("tea") == []
    assert (tools.working_memory.stats().hits, store.loads) == (1, 3)


def test_tools_of_other_names_can_be_named():
    store = Store()
    tools = create_working_memory(
        {"ask": store.search, "tell": store.add}, searches=["ask"], writes=["tell"]
    )

    tools["ask"]("tea")
    tools["tell"]("green tea")

    assert tools["ask"]("tea") == ["green tea"]
    with pytest.raises(ConfigurationError):
        create_working_memory([store.search], searches=["nothing"])


def test_d21_by_default_an_added_memory_adds_no_answer():
    store = create_working_memory(Store())

    store.add("green tea")

    assert store.working_memory.stats().entries == 0
    assert store.working_memory.stats().calls == 0


def test_d21_auto_populate_asks_pinned_queries_and_the_new_content_again():
    plain = Store()
    store = create_working_memory(plain, auto_populate=True)
    store.working_memory.pin("tea")

    store.add("green tea")
    loads = plain.loads
    answers = store.search("tea"), store.search("green tea")

    assert answers == (["green tea"], ["green tea"]) == (plain.search("tea"),) * 2
    assert plain.loads == loads + 1
    assert store.working_memory.stats().hits == 2


def test_d21_a_search_that_fails_after_a_write_does_not_fail_the_write():
    class Failing(Store):
        def search(self, query, limit=None):
            raise ZeroDivisionError

    store = create_working_memory(Failing(), auto_populate=True)

    assert store.add("green tea") == 1


def test_d13_scopes_share_no_answer_however_their_parts_are_cut():
    searcher = Counting()
    scopes = iter([("a", "b:c"), ("a:b", "c"), ("a", "b:c")])
    memory = WorkingMemory(searcher, scope=lambda: next(scopes))

    for _ in range(3):
        memory.search("tea")

    assert searcher.loads == 2


def test_the_scope_names_the_tenant_in_events():
    told = []

    WorkingMemory(Counting(), scope=("acme", 7), observer=told.append).search("tea")

    assert told[0].tenant_id == "acme"


def test_a_write_drops_the_answers_of_its_own_scope_only():
    tenant = ["a"]
    store = create_working_memory(Store(), scope=lambda: tuple(tenant))
    store.search("tea")
    tenant[0] = "b"
    store.search("tea")

    store.add("green tea")
    tenant[0] = "a"
    store.search("tea")

    assert store.working_memory.stats().hits == 1


def test_what_is_made_of_a_lookalike_answers_by_its_own_state():
    cached = create_working_memory(Store())
    cached.kept += ["green tea", "black tea"]
    cached.search("tea")

    other = type(cached)()
    other.kept = ["plum"]

    assert other.search("plum") == ["plum"]
    assert cached.working_memory.stats().calls == 1


def test_d12_to_ask_nothing_asks_for_the_default_and_none_for_none():
    memory = WorkingMemory(lambda query="all": [query])

    answers = [memory.search(), memory.search(None), memory.search("all"), memory.search()]

    assert answers == [["all"], [None], ["all"], ["all"]]
    assert memory.stats().misses == 2
    assert memory.invalidate("all") == 1


def test_d12_a_query_that_is_needed_and_not_given_is_refused_as_by_the_searcher():
    memory = WorkingMemory(lambda query, limit=5: [query], normalize=str)
    memory.search(None)

    for ask in (memory.search, lambda: asyncio.run(memory.asearch(limit=5)), memory.pin):
        with pytest.raises(TypeError, match="query"):
            ask()
    assert memory.get() is None


@pytest.mark.parametrize(
    "option", ["clock", "scope", "normalize", "observer", "is_failure", "generation"]
)
def test_an_option_that_cannot_work_is_refused_at_once(option):
    for wrap in (WorkingMemory, create_working_memory):
        with pytest.raises(ConfigurationError, match=option):
            wrap(Counting(), **{option: 5})
    with pytest.raises(ConfigurationError, match=option):
        create_working_memory({"search": Counting().search}, **{option: 5})


class Versioned:
    """A searcher whose every change is seen, by each of its methods."""

    def __init__(self):
        self.version = 0
        self.loads = 0

    def generation(self):
        return self.version

    def search(self, query, limit=3):
        self.loads += 1
        return [query, limit, self.version]

    find = search


@pytest.mark.parametrize(
    "way",
    [
        lambda thing: thing.search,
        lambda thing: thing.find,
        lambda thing: functools.partial(thing.search, limit=4),
    ],
)
@pytest.mark.parametrize("wrap", [create_working_memory, lambda way: WorkingMemory(way).search])
def test_d17_a_method_has_the_generation_of_its_object(way, wrap):
    thing = Versioned()
    search = wrap(way(thing))

    first = [search("tea"), search("tea")]
    thing.version = 1
    changed = search("tea")

    assert first[0] == first[1]
    assert changed[2] == 1
    assert thing.loads == 2


def test_d17_a_tool_made_of_a_method_has_the_generation_of_its_object():
    thing = Versioned()
    tools = create_working_memory({"search": thing.search})
    tools["search"]("tea")

    thing.version = 1

    assert tools["search"]("tea") == ["tea", 3, 1]
