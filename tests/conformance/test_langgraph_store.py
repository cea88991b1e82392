"""LangGraph's own tests of its stores, run on `HierMemStore`."""

from __future__ import annotations

import pytest
from conformance.upstream import Upstream

pytestmark = pytest.mark.timeout(600)

SHIM = '''
"""Stores that are made as upstream makes its own, each on an empty location."""

import asyncio
from contextlib import asynccontextmanager, contextmanager, suppress
from weakref import finalize

from hiermem_core import HierMem
from langchain_hiermem import HierMemStore


def empty():
    return HierMem.open(":memory:", local_embedder=False, dedup="off")


def fields_of(index):
    """Return an index configuration under the names of the interface."""
    if index and "text_fields" in index:
        index = index | {"fields": index["text_fields"]}
    return index


def read_without_refresh(ttl):
    """Upstream's stores refresh on read only where it is asked for."""
    return ttl and {"refresh_on_read": False} | ttl


class Store(HierMemStore):
    """Also made without a location."""

    def __init__(self, *, index=None, ttl=None):
        self.hiermem = empty()
        finalize(self, self.hiermem.close)
        tenant = self.hiermem.tenant("upstream")
        super().__init__(tenant, index=fields_of(index), ttl=read_without_refresh(ttl))

    def setup(self):
        pass

    def start_ttl_sweeper(self, *args, **options):
        pass

    def stop_ttl_sweeper(self, *args, **options):
        pass

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn, *, index=None, ttl=None):
        store = cls(index=index, ttl=ttl)
        with store.hiermem:
            yield store


class AsyncStore(Store):
    """Its odd methods are asynchronous."""

    async def setup(self):
        pass

    async def start_ttl_sweeper(self, *args, **options):
        return asyncio.ensure_future(asyncio.sleep(0))

    async def stop_ttl_sweeper(self, *args, **options):
        return True

    async def sweep_ttl(self):
        return await asyncio.to_thread(HierMemStore.sweep_ttl, self)

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn, *, index=None, ttl=None):
        store = cls(index=index, ttl=ttl)
        try:
            yield store
        finally:
            await asyncio.to_thread(store.hiermem.close)


SqliteStore = InMemoryStore = Store
AsyncSqliteStore = AsyncStore
'''

IMPORTS = {
    r"from langgraph\.store\.memory import InMemoryStore": "from shim import InMemoryStore",
    r"from langgraph\.store\.sqlite import": "from shim import",
    r"from langgraph\.store\.sqlite\.aio import": "from shim import",
    r"from tests\.(unit_tests\.agents\.)?": "from ",
}


AGENTS = Upstream("langchain", "1.5.2", SHIM, IMPORTS, folder="tests/unit_tests/agents")
CHECKPOINT = Upstream("langgraph-checkpoint", "4.3.2", SHIM, IMPORTS)
SQLITE = Upstream("langgraph-checkpoint-sqlite", "3.1.2", SHIM, IMPORTS)


def test_the_tests_of_the_store_in_memory(tmp_path):
    passed, failed, told = CHECKPOINT.run(tmp_path, "test_store.py", ["embed_test_utils.py"])

    assert failed == [], told
    assert passed == 117


def test_the_tests_of_the_store_in_sqlite(tmp_path):
    passed, failed, told = SQLITE.run(tmp_path, "test_store.py")

    assert failed == [
        "test_filter_keys_with_hyphens_and_digits",  # a dot in a key is a path there
        "test_filter_keys_with_hyphens_and_digits",
        "test_nonnull_migrations",  # looks for their migrations
        "test_scores",  # a cosine below 0 is a score of 0 here
        "test_scores",
        "test_sql_injection_vulnerability",  # such a key is refused there, a key here
        "test_sql_injection_vulnerability",
        "test_vector_store_initialization",  # looks for their tables
    ], told
    assert passed == 95


def test_the_tests_of_its_times_to_live(tmp_path):
    passed, failed, told = SQLITE.run(tmp_path, "test_ttl.py")

    assert failed == [], told
    assert passed == 11


def test_the_tests_of_its_asynchronous_store(tmp_path):
    passed, failed, told = SQLITE.run(tmp_path, "test_async_store.py", ["test_store.py"])

    assert failed == ["test_no_running_loop"] * 2, told  # ours may be called on a loop
    assert passed == 37


def test_the_tests_of_what_tools_of_an_agent_find_in_its_store(tmp_path):
    passed, failed, told = AGENTS.run(
        tmp_path, "test_injected_runtime_create_agent.py", ["model.py"]
    )

    assert failed == [], told
    assert passed == 15
