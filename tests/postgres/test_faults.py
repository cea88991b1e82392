"""What servers do to those who use them: killed, cut off, slow, locked, out of connections."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from core.children import finish, start
from postgres_server import running_server
from sqlalchemy import make_url

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.errors import BackendError, BackendUnavailableError
from hiermem_core.testing.contracts.samples import said
from hiermem_core.testing.contracts.threads import assert_batches_are_whole

WRITERS = 4

WRITE_UNTIL_STOPPED = """
import threading
from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.errors import BackendError
location, worker = sys.argv[1:]
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), done.set()), daemon=True).start()
with HierMem.open(location, counter=ApproximateCounter(), local_embedder=False) as hiermem:
    thread = hiermem.tenant("acme").thread("t1")
    print("ready", flush=True)
    number = 0
    while not done.is_set():
        number += 1
        try:
            thread.append([{"role": "user", "content": f"{worker}-{number}.{n}"} for n in range(3)])
        except BackendError as error:
            print("failed", type(error).__name__, flush=True)
        else:
            print(f"{worker}-{number}", flush=True)
"""

FORWARD = """
import socket, threading
target = int(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
pairs, is_open, seconds = [], True, 0.0

def pump(source, sink):
    try:
        while data := source.recv(65536):
            if seconds:
                threading.Event().wait(seconds)
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

def serve():
    while True:
        client, _ = listener.accept()
        if not is_open:
            client.close()
            continue
        server = socket.create_connection(("127.0.0.1", target))
        pairs.append((client, server))
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=pump, args=(source, sink), daemon=True).start()

threading.Thread(target=serve, daemon=True).start()
for line in sys.stdin:
    word, _, value = line.strip().partition(" ")
    if word == "slow":
        seconds = float(value)
    is_open = word != "cut"
    if word == "cut":
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        pairs.clear()
    print("done", flush=True)
"""
"""A proxy in front of a server: `cut` ends all connections and takes none, `open` takes them again,
`slow SECONDS` holds back what goes either way."""


class Proxy:
    """The way to a server, to be cut and slowed."""

    def __init__(self, url):
        self._child = start(FORWARD, make_url(url).port)
        port = int(self._child.stdout.readline())
        self.url = make_url(url).set(port=port).render_as_string(hide_password=False)

    def tell(self, line):
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        assert self._child.stdout.readline() == "done\n"

    def close(self):
        self._child.kill()
        self._child.communicate()


@pytest.fixture
def proxy(location):
    proxy = Proxy(location)
    yield proxy
    proxy.close()


def opened(location, **options):
    options = {"local_embedder": False, "busy_seconds": 5} | options
    return HierMem.open(location, counter=ApproximateCounter(), **options)


@contextmanager
def holding_all_locks(location):
    """Write something in another session that every writer waits for, while the block runs."""
    with opened(location) as other, other._services.database.write():
        yield


def assert_says_what_to_do(error):
    assert isinstance(error, BackendUnavailableError)
    assert "retry" in str(error)


def acknowledged(printed):
    return [line for line in printed.split("\n") if line and not line.startswith("failed")]


def assert_kept(thread, batches):
    """Hold that what was acknowledged is there, and everything in whole batches, each once."""
    turns = thread.turns()
    names = {turn.content.rpartition(".")[0] for turn in turns}
    assert [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
    assert_batches_are_whole(turns, batches=len(names), size=3)
    assert set(batches) <= names
    assert len(turns) == thread.count()


def test_a_server_killed_amid_writes_of_threads_loses_and_halves_nothing():
    with running_server() as server, opened(server.new_database()) as hiermem:
        thread = hiermem.tenant("acme").thread("t1")
        told, failures, done = [], [], threading.Event()
        wrote = threading.Semaphore(0)

        def write(worker):
            number = 0
            while not done.is_set():
                number += 1
                name = f"{worker}-{number}"
                try:
                    thread.append(said(f"{name}.{place}" for place in range(3)))
                except BackendError as error:
                    failures.append(error)
                    done.wait(0.01)
                else:
                    told.append(name)
                    wrote.release()

        with ThreadPoolExecutor(WRITERS) as workers:
            running = [workers.submit(write, worker) for worker in range(WRITERS)]
            for _ in range(3):
                for _ in range(WRITERS * 3):
                    assert wrote.acquire(timeout=60)
                server.stop("immediate")
                server.start()
            for _ in range(WRITERS * 3):
                assert wrote.acquire(timeout=60)
            done.set()
            for one in running:
                one.result()

        assert failures
        for error in failures:
            assert_says_what_to_do(error)
        assert_kept(thread, told)


def test_a_server_killed_amid_writes_of_processes_loses_and_halves_nothing():
    with running_server() as server:
        url = server.new_database()
        opened(url).close()
        children = [start(WRITE_UNTIL_STOPPED, url, f"process{n}") for n in range(3)]
        told = []
        for child in children:
            assert child.stdout.readline() == "ready\n", finish(child)
        for child in children:
            told += [child.stdout.readline() for _ in range(3)]

        server.stop("immediate")
        server.start()

        for child in children:
            while True:  # each has failed, and goes on by itself
                told.append(child.stdout.readline())
                if told[-1].startswith("failed"):
                    break
            while told[-1].startswith("failed"):
                told.append(child.stdout.readline())
            child.stdin.write("\n")
            child.stdin.flush()
        ends = [finish(child) for child in children]
        printed = "".join(told) + "".join(out for _, out, _ in ends)
        with opened(url) as hiermem:
            assert [status for status, _, _ in ends] == [0, 0, 0], ends
            assert_kept(hiermem.tenant("acme").thread("t1"), acknowledged(printed))


def test_a_connection_that_is_cut_is_told_and_made_anew_without_opening_again(proxy):
    with opened(proxy.url) as hiermem:
        memory = hiermem.tenant("acme").memory
        entry_id = memory.store("before")
        proxy.tell("cut")

        for attempt in (
            lambda: memory.store("meanwhile"),
            lambda: memory.search("before"),
            lambda: hiermem.tenant("acme").thread("t").append(said(["meanwhile"])),
        ):
            with pytest.raises(BackendUnavailableError) as failed:
                attempt()
            assert_says_what_to_do(failed.value)
        assert hiermem.health().status == "unhealthy"
        proxy.tell("open")

        assert memory.retrieve(entry_id).content == "before"
        assert memory.store("after")
        assert sorted(hit.content for hit in memory.search()) == ["after", "before"]
        assert hiermem.health().status == "healthy"


def test_a_session_that_the_server_ends_amid_a_write_leaves_nothing_of_it(location):
    import psycopg

    url = location.replace("+psycopg", "").partition("?")[0]
    with opened(location) as hiermem, closing(psycopg.connect(url, autocommit=True)) as admin:
        tenant = hiermem.tenant("acme")
        tenant.remember("before")

        def end_the_session_amid_a_write():
            with hiermem._services.database.write("acme") as connection:
                connection.exec_driver_sql("DELETE FROM memory_entries")
                pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
                admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
                connection.exec_driver_sql("SELECT 1")

        with pytest.raises(BackendUnavailableError):
            end_the_session_amid_a_write()

        assert [hit.content for hit in tenant.memory.search()] == ["before"]
        tenant.remember("after")
        assert tenant.memory.stats().entries == 2


def test_a_slow_server_gives_right_answers(proxy):
    with opened(proxy.url) as hiermem:
        thread = hiermem.tenant("acme").thread("t1")
        thread.append(said(["one", "two"]))
        proxy.tell("slow 0.05")

        thread.append(said(["three"]))
        context = thread.context(budget_tokens=500, recall=False)

        assert [turn.content for turn in context.messages] == ["one", "two", "three"]


def test_a_writer_that_waits_too_long_for_others_is_told_and_goes_on_later(location):
    with opened(location, busy_seconds=0.2) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.remember("before")
        with holding_all_locks(location):
            with pytest.raises(BackendUnavailableError, match="stays locked") as failed:
                tenant.remember("meanwhile")
            contents = [hit.content for hit in tenant.memory.search()]
        tenant.remember("after")

        assert_says_what_to_do(failed.value)
        assert contents == ["before"]
        assert tenant.memory.stats().entries == 2


def test_a_pool_that_is_used_up_is_told_and_free_again_later(location):
    with opened(location, pool_size=1, busy_seconds=0.1) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.remember("before")
        with ThreadPoolExecutor(1) as other:
            with hiermem._services.database.read():
                failed = other.submit(tenant.remember, "meanwhile").exception()
            other.submit(tenant.remember, "after").result()

        assert isinstance(failed, BackendUnavailableError)
        assert "connections stay in use" in str(failed)
        assert sorted(hit.content for hit in tenant.memory.search()) == ["after", "before"]
