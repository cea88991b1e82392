"""Memories of both kinds, and calls of both colours."""

from __future__ import annotations

import pytest
from llamaindex.samples import FACT
from servers import ON_SERVERS

from hiermem_core import FunctionCounter, HierMem
from hiermem_core.models.events import SearchServed
from llamaindex_hiermem import HierMemChatMemoryBuffer


@pytest.fixture
def counter():
    """Count words, so that figures in tests can be read."""
    return FunctionCounter(str.split, id="words")


@pytest.fixture(params=["durable"] if ON_SERVERS else ["in_memory", "durable"])
def location(request):
    return (
        ":memory:"
        if request.param == "in_memory"
        else str(request.getfixturevalue("durable_location"))
    )


@pytest.fixture
def events():
    """Give what was told to the observer so far."""
    return []


@pytest.fixture
def searches(events):
    """Return how often something was searched so far."""
    return lambda: sum(isinstance(event, SearchServed) for event in events)


@pytest.fixture
def hiermem(location, counter, events):
    with HierMem.open(location, counter=counter, observer=events.append) as hiermem:
        yield hiermem


@pytest.fixture
def tenant(hiermem):
    return hiermem.tenant("alice")


@pytest.fixture
def make_memory(tenant):
    """Return a maker of memories on one tenant; each call makes a new object."""

    def make(chat_store_key="trip", **options):
        return HierMemChatMemoryBuffer.from_defaults(
            **{"tenant": tenant, "tokenizer_fn": str.split, **options},
            chat_store_key=chat_store_key,
        )

    return make


@pytest.fixture
def knowing(tenant, make_memory):
    """Return a maker of memories that recall, on a tenant that knows when meetings start."""
    tenant.remember(FACT)

    def make(**options):
        return make_memory(**{"recall_k": 3, **options})

    return make


@pytest.fixture
def memory(make_memory):
    return make_memory()


@pytest.fixture(params=["sync", "async"])
def call(request):
    """Return a caller of a method, or of its async twin."""

    async def sync_call(method, *arguments, **options):
        return method(*arguments, **options)

    async def async_call(method, *arguments, **options):
        twin = getattr(method.__self__, f"a{method.__name__}")
        return await twin(*arguments, **options)

    return sync_call if request.param == "sync" else async_call
