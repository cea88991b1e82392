"""LangGraph's own tests of its stores, run on `HierMemStore`.

They ship in source distributions, which are downloaded: set `UPSTREAM_TESTS=1` to run them, where
the group `conformance` is installed. What runs is upstream's file as it is, but for the import of
the store under test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile

import pytest

pytestmark = [
    pytest.mark.skipif(not os.environ.get("UPSTREAM_TESTS"), reason="downloads; ask for it"),
    pytest.mark.timeout(600),
]

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


SqliteStore = InMemoryStore = BaseSqliteStore = Store
AsyncSqliteStore = AsyncStore
SqliteIndexConfig = dict
'''

SETTINGS = """
[pytest]
anyio_mode = auto
addopts = --import-mode=importlib -p no:cacheprovider -p no:asyncio -rfE -q
markers =
    asyncio: an asynchronous test
    flaky: may fail by the clock
pythonpath = .
"""

BACKEND = """
import pytest

@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"
"""

SQLITE = ("langgraph-checkpoint-sqlite", "3.1.2")
CHECKPOINT = ("langgraph-checkpoint", "4.3.2")

IMPORTS = {
    r"from langgraph\.store\.memory import InMemoryStore": "from shim import InMemoryStore",
    r"from langgraph\.store\.sqlite import": "from shim import",
    r"from langgraph\.store\.sqlite\.aio import": "from shim import",
    r"from langgraph\.store\.sqlite\.base import \(\s*NS_MATCH_FUNCTION,\s*BaseSqliteStore,"
    r"\s*SqliteIndexConfig,\s*_escape_glob_literal,\s*_namespace_match_pattern,\s*\)": (
        "from shim import SqliteIndexConfig"
    ),
    r"from langgraph\.store\.sqlite\.base import": "from shim import",
    r"from tests\.": "from ",
}


@pytest.fixture
def upstream(tmp_path):
    """Give what runs a file of a source distribution; returns the outcome of each test."""

    def run(source, name, helpers=()):
        project, version = source
        folder = unpacked(project, version, tmp_path)
        place = tmp_path / "run"
        place.mkdir()
        (place / "shim.py").write_text(SHIM, "utf-8")
        (place / "pytest.ini").write_text(SETTINGS, "utf-8")
        (place / "conftest.py").write_text(BACKEND, "utf-8")
        for file in (name, *helpers):
            text = (folder / "tests" / file).read_text("utf-8")
            for pattern, ours in IMPORTS.items():
                text = re.sub(pattern, ours, text)
            (place / file).write_text(text, "utf-8")
        return outcomes(place, name)

    return run


def unpacked(project, version, folder):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary"]
    options = [":all:", "--no-build-isolation", "--dest", str(folder), f"{project}=={version}"]
    subprocess.run([*command, *options], check=True, timeout=300)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def outcomes(place, name):
    """Return how many tests passed, and the names of the others without their parameters."""
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", name],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    failed = re.findall(r"^(?:FAILED|ERROR) \S+?::(\S+)", ended.stdout, re.MULTILINE)
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed, ended.stdout + ended.stderr
    return int(passed[1]), sorted(one.partition("[")[0] for one in failed), ended.stdout


def test_the_tests_of_the_store_in_memory(upstream):
    passed, failed, told = upstream(CHECKPOINT, "test_store.py", ["embed_test_utils.py"])

    assert failed == [], told
    assert passed == 117


def test_the_tests_of_the_store_in_sqlite(upstream):
    passed, failed, told = upstream(SQLITE, "test_store.py")

    assert sorted(failed) == [
        "test_escape_glob_literal",  # of their SQL
        "test_filter_keys_with_hyphens_and_digits",  # a dot in a key is a path there
        "test_filter_keys_with_hyphens_and_digits",
        "test_list_namespaces_prefix_uses_indexable_condition",  # of their SQL
        "test_namespace_match_pattern",  # of their SQL
        "test_nonnull_migrations",  # of their SQL
        "test_scores",  # a cosine below 0 is a score of 0 here
        "test_scores",
        "test_sql_injection_vulnerability",  # such a key is refused there, a key here
        "test_sql_injection_vulnerability",
        "test_vector_store_initialization",  # looks for their tables
    ], told
    assert passed == 92


def test_the_tests_of_its_times_to_live(upstream):
    passed, failed, told = upstream(SQLITE, "test_ttl.py")

    assert failed == [], told
    assert passed == 11


def test_the_tests_of_its_asynchronous_store(upstream):
    passed, failed, told = upstream(SQLITE, "test_async_store.py", ["test_store.py"])

    assert failed == ["test_no_running_loop"] * 2, told  # ours may be called on a loop
    assert passed == 37
