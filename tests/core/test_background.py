"""Embedding in the background: whose rows, and that it never ends for good."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from hiermem_core import HierMem
from hiermem_core.models.events import IndexCaughtUp
from hiermem_core.testing import FakeClock, FakeEmbedder

SECONDS = 30
MANY = 100


class Waiter:
    """An observer that lets a test wait until a tenant's rows have their vectors."""

    def __init__(self):
        self.caught_up = {name: threading.Event() for name in ("alice", "bob", "carol")}

    def __call__(self, event):
        if isinstance(event, IndexCaughtUp):
            self.caught_up[event.tenant_id].set()


@pytest.fixture
def waiter():
    return Waiter()


@pytest.fixture
def embedder():
    return FakeEmbedder(16)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def hiermem(tmp_path, embedder, waiter, clock):
    options = {"embedder": embedder, "observer": waiter, "clock": clock}
    with HierMem.open(tmp_path / "memory", **options) as opened:
        yield opened


def append_many(hiermem, name):
    turns = [{"role": "user", "content": f"turn {n}"} for n in range(MANY)]
    hiermem.tenant(name).thread("long").append(turns)


def test_tenants_that_write_while_another_is_embedded_get_their_turn(hiermem, embedder, waiter):
    embedder.gate = threading.Event()
    append_many(hiermem, "alice")
    assert embedder.waiting.wait(SECONDS)

    append_many(hiermem, "bob")
    append_many(hiermem, "carol")
    embedder.gate.set()

    assert all(one.wait(SECONDS) for one in waiter.caught_up.values())


def test_a_thread_that_ends_at_once_is_followed_by_another(hiermem, waiter, monkeypatch):
    start = threading.Thread.start

    def start_and_let_end(thread):
        start(thread)
        if thread.name == "hiermem-embed":
            thread.join(1)

    monkeypatch.setattr(threading.Thread, "start", start_and_let_end)
    append_many(hiermem, "alice")
    assert waiter.caught_up["alice"].wait(SECONDS)

    append_many(hiermem, "bob")

    assert waiter.caught_up["bob"].wait(SECONDS)


def test_many_rows_that_wait_are_embedded_in_the_background_of_a_search(
    hiermem, embedder, waiter, clock
):
    alice = hiermem.tenant("alice")
    alice.remember("a first one")
    embedder.failing = lambda text: True
    append_many(hiermem, "alice")
    assert not alice.memory.wait_for_index(SECONDS)
    embedder.failing = ()
    clock.advance(1_000)

    alice.memory.search_semantic("turn 7")

    assert waiter.caught_up["alice"].wait(SECONDS)


def test_many_rows_that_wait_are_embedded_in_the_background_of_a_recall(
    hiermem, embedder, waiter, clock
):
    embedder.failing = lambda text: True
    append_many(hiermem, "alice")
    assert not hiermem.tenant("alice").memory.wait_for_index(SECONDS)
    embedder.failing = ()
    clock.advance(1_000)

    hiermem.tenant("alice").recall("turn 7")

    assert waiter.caught_up["alice"].wait(SECONDS)


def test_closing_while_several_tenants_wait_ends_after_the_running_batch(
    tmp_path, embedder, waiter
):
    hiermem = HierMem.open(tmp_path / "memory", embedder=embedder, observer=waiter)
    embedder.gate = threading.Event()
    append_many(hiermem, "alice")
    append_many(hiermem, "bob")
    assert embedder.waiting.wait(SECONDS)

    closing = threading.Thread(target=hiermem.close)
    closing.start()
    embedder.gate.set()
    closing.join(SECONDS)

    assert not closing.is_alive()
    assert not waiter.caught_up["bob"].is_set()


def test_a_process_that_ends_without_closing_lets_the_running_batch_end():
    script = """
import atexit, threading
from hiermem_core import HierMem
from hiermem_core.testing import FakeEmbedder

class Slow(FakeEmbedder):
    def embed(self, texts):
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            ending.wait(10)
            threading.Event().wait(0.3)  # what native code does when the process ends
            print("embedded", flush=True)
        return super().embed(texts)

begun, ending = threading.Event(), threading.Event()
alice = HierMem.open(":memory:", embedder=Slow(16)).tenant("alice")
said = [{"role": "user", "content": f"Note {number}"} for number in range(200)]
alice.thread("notes").append(said)
alice.recall("note")
assert begun.wait(30)
atexit.register(ending.set)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("embedded\n")
