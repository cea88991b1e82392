"""The vector index on a Chroma server, with the rows on PostgreSQL."""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack

import psutil
import pytest
from chroma_server import running_chroma
from core.memory_backends import on

from hiermem_core import HierMem
from hiermem_core.errors import ConfigurationError
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts import HybridContract, SemanticContract
from hiermem_core.testing.contracts.forgetting import ForgettingContract
from hiermem_core.testing.contracts.indexing import IndexContract


class TestSemantic(SemanticContract):
    opened = on("postgres_chroma")


class TestHybrid(HybridContract):
    opened = on("postgres_chroma")


class TestIndex(IndexContract):
    opened = on("postgres_chroma")


class TestForgetting(ForgettingContract):
    opened = on("postgres_chroma")


@pytest.fixture
def opened(location):
    """Return what opens the location with vectors in an index, whatever their number."""
    with ExitStack() as stack:

        def open_one(url, **options):
            return stack.enter_context(
                HierMem.open(
                    location,
                    chroma=url,
                    embedder=FakeEmbedder(16),
                    index_threshold=0,
                    exact_limit=0,
                    generation_check_seconds=0,
                    **options,
                )
            )

        yield open_one


def indexed(hiermem, count=60):
    """Store pears and have them indexed; return the memory."""
    memory = hiermem.tenant("acme").memory
    memory.bulk_insert(f"pear {number}" for number in range(count))
    drain(hiermem)
    return memory


def drain(hiermem):
    assert hiermem._services.memories.indexer.drain()


def look(hiermem):
    """Have a handle open the index that another keeps."""
    indexer = hiermem._services.memories.indexer
    indexer.nudge("acme")
    indexer._work.background.join(30)


def engine_of(hiermem):
    return hiermem.tenant("acme").memory.stats().engines["semantic"]


def nearest(memory, number):
    return memory.search_semantic(f"pear {number}", 1)[0].content


def collections_of(url):
    """Return the names of all collections on a server."""
    where = "api/v2/tenants/default_tenant/databases/default_database/collections?limit=1000"
    with urllib.request.urlopen(f"{url}/{where}") as answer:
        return {one["name"] for one in json.load(answer)}


def test_a_second_handle_asks_the_index_that_another_keeps(opened, chroma_server):
    keeper, reader = opened(chroma_server.url), opened(chroma_server.url)
    indexed(keeper)
    look(reader)

    found = [nearest(reader.tenant("acme").memory, number) for number in (0, 30, 59)]

    assert engine_of(reader) == "chroma, 60 of 60 vectors"
    assert found == ["pear 0", "pear 30", "pear 59"]


def test_what_a_reader_stores_is_found_at_once_and_indexed_by_the_keeper(opened, chroma_server):
    keeper, reader = opened(chroma_server.url), opened(chroma_server.url)
    indexed(keeper)
    look(reader)

    reader.tenant("acme").memory.store("pear 1000")

    assert nearest(reader.tenant("acme").memory, 1000) == "pear 1000"
    drain(keeper)
    assert engine_of(reader) == "chroma, 61 of 61 vectors"
    assert nearest(reader.tenant("acme").memory, 1000) == "pear 1000"


def test_the_next_keeps_the_index_when_its_keeper_is_gone(opened, chroma_server):
    keeper, heir = opened(chroma_server.url), opened(chroma_server.url)
    indexed(keeper)
    keeper.close()

    heir.tenant("acme").memory.store("pear 60")
    drain(heir)

    assert engine_of(heir) == "chroma, 61 of 61 vectors"


def test_locations_on_one_server_are_apart(opened, chroma_server, tmp_path):
    ours = opened(chroma_server.url)
    indexed(ours)
    with HierMem.open(
        tmp_path / "memory",
        chroma=chroma_server.url,
        embedder=FakeEmbedder(16),
        index_threshold=0,
        exact_limit=0,
    ) as theirs:
        other = theirs.tenant("acme").memory
        other.bulk_insert(f"plum {number}" for number in range(60))
        drain(theirs)

        found = {hit.content.split()[0] for hit in other.search_semantic("pear 7", 60)}

        assert theirs.tenant("acme").memory.stats().index.indexed == 60
    assert found == {"plum"}
    assert nearest(ours.tenant("acme").memory, 7) == "pear 7"


def test_a_server_that_is_down_costs_no_answer_and_is_caught_up_with(opened):
    with running_chroma() as server:
        hiermem = opened(server.url)
        memory = indexed(hiermem)
        server.kill()

        memory.store("pear 60")
        down = [nearest(memory, number) for number in (7, 60)]
        state = hiermem.health()
        server.start()
        drain(hiermem)

        assert down == ["pear 7", "pear 60"]
        assert state.status == "degraded"
        assert hiermem.health().status == "healthy"
        assert engine_of(hiermem) == "chroma, 61 of 61 vectors"
        assert [nearest(memory, number) for number in (7, 60)] == ["pear 7", "pear 60"]


def test_a_server_that_lost_everything_is_filled_again(opened):
    with running_chroma() as first:
        before = opened(first.url)
        indexed(before).store("pear 60")
        before.close()
    with running_chroma() as empty:
        hiermem = opened(empty.url)
        memory = hiermem.tenant("acme").memory
        hiermem._services.memories.indexer.repair("acme")

        assert engine_of(hiermem) == "chroma, 61 of 61 vectors"
        assert nearest(memory, 60) == "pear 60"


def test_what_is_closed_holds_no_connection_to_the_server(opened, chroma_server):
    def connections():
        held = psutil.Process().net_connections()
        return sum(bool(one.raddr) and one.raddr.port == chroma_server.port for one in held)

    before = connections()
    hiermem = opened(chroma_server.url)
    indexed(hiermem).search("pear", mode="semantic")
    while_open = connections()

    hiermem.close()

    assert connections() == before < while_open


def test_forgetting_leaves_no_collection_of_what_was_there(opened):
    with running_chroma() as server:
        hiermem = opened(server.url)
        indexed(hiermem)
        before = collections_of(server.url)

        hiermem.tenant("acme").forget(everything=True)

        assert len(before) >= 1
        assert not before & collections_of(server.url)


@pytest.mark.parametrize("url", ["chroma", "ftp://host", "http://host/path", "http://h?colour=red"])
def test_a_url_of_no_chroma_server_is_refused(tmp_path, url):
    with pytest.raises(ConfigurationError, match="chroma"):
        HierMem.open(tmp_path, chroma=url)


def test_a_password_of_the_chroma_server_is_shown_nowhere(tmp_path):
    url = "http://me:hunter2-s3cr3t@127.0.0.1:9"
    with HierMem.open(tmp_path, chroma=url, embedder=FakeEmbedder(4), index_threshold=0) as hiermem:
        memory = hiermem.tenant("acme").memory
        memory.store("a pear")
        hiermem._services.memories.indexer.drain(timeout=5)

        shown = [hiermem, hiermem.health(), memory.stats(), hiermem._services]

    assert "hunter2" not in "".join(map(repr, shown))
