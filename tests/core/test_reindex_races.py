"""Searches and writes that a reindex ends in the middle of."""

from __future__ import annotations

import threading

import pytest
from core.memory_backends import OPTIONS

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.index_probes import PEARS, ROWS, filled, vectors_of

SECONDS = 60

everywhere = pytest.mark.parametrize("backend", ["in_memory", "chroma_indexed", "hybrid"])
lengths = pytest.mark.parametrize("length", [32, 48])


@pytest.fixture
def opened(tmp_path):
    handles = []

    def open_one(backend, embedder):
        counter = ApproximateCounter()
        options = OPTIONS[backend] | {"embedder": embedder, "counter": counter}
        handles.append(HierMem.open(tmp_path / "memory", **options))
        return handles[-1]

    yield open_one
    for handle in handles:
        handle.close()


def held_at_the_gate(embedder, action):
    """Start an action that waits inside the embedder; return it and what collects its result."""
    results = []
    embedder.gate = threading.Event()
    embedder.waiting.clear()
    thread = threading.Thread(target=lambda: results.append(action()))
    thread.start()
    assert embedder.waiting.wait(SECONDS)
    return thread, results


@everywhere
@lengths
def test_a_question_that_was_embedded_before_the_swap_is_embedded_again(opened, backend, length):
    first = FakeEmbedder(32)
    hiermem = opened(backend, first)
    memory, ids = hiermem.tenant("acme").memory, filled(hiermem)
    memory.wait_for_index(SECONDS)

    thread, results = held_at_the_gate(first, lambda: memory.search_semantic("pear number 7", 1))
    hiermem.reindex(FakeEmbedder(length, "another"))
    first.gate.set()
    thread.join(SECONDS)

    assert [hit.id for hit in results[0]] == [ids[7]]
    assert results[0][0].score == pytest.approx(1.0, abs=1e-5)


@everywhere
@lengths
@pytest.mark.parametrize("kind", ["store", "update", "bulk"])
def test_a_vector_that_was_made_before_the_swap_is_not_stored_but_made_again(
    opened, backend, length, kind
):
    first, other = FakeEmbedder(32), FakeEmbedder(length, "another")
    hiermem = opened(backend, first)
    memory, ids = hiermem.tenant("acme").memory, filled(hiermem)
    memory.wait_for_index(SECONDS)
    actions = {
        "store": lambda: memory.store("plum"),
        "update": lambda: memory.update(ids[7], content="plum"),
        "bulk": lambda: memory.bulk_insert(["plum", "quince"]),
    }

    thread, _ = held_at_the_gate(first, actions[kind])
    hiermem.reindex(other)
    first.gate.set()
    thread.join(SECONDS)

    assert set(vectors_of(hiermem)) == {("another", length)}
    assert memory.wait_for_index(SECONDS)
    (hit,) = memory.search_semantic("plum", 1)
    assert hit.content == "plum"
    assert hit.score == pytest.approx(1.0, abs=1e-5)
    assert hiermem.doctor() == type(hiermem.doctor())()


@everywhere
def test_waiting_rows_that_were_embedded_before_the_swap_are_embedded_again(opened, backend):
    first, other = FakeEmbedder(32), FakeEmbedder(32, "another")
    hiermem = opened(backend, first)
    memory = hiermem.tenant("acme").memory
    filled(hiermem)
    memory.wait_for_index(SECONDS)
    hiermem.tenant("acme").thread("t1").append([{"role": "user", "content": "medlar"}])

    thread, results = held_at_the_gate(first, lambda: memory.wait_for_index(SECONDS))
    hiermem.reindex(other)
    first.gate.set()
    thread.join(SECONDS)

    assert results == [True]
    assert vectors_of(hiermem) == {("another", 32): ROWS + 1}
    assert hiermem.doctor().is_sound


@everywhere
def test_many_threads_write_and_search_while_embedders_change(opened, backend):
    hiermem = opened(backend, FakeEmbedder(32))
    memory = hiermem.tenant("acme").memory
    ids, done, failures = filled(hiermem), threading.Event(), []

    def work(worker):
        step = 0
        while not done.is_set():
            step += 1
            try:
                stored = memory.store(f"plum {worker} {step}", key=f"{worker}-{step % 5}")
                number = step % PEARS
                (hit,) = memory.search_semantic(f"pear number {number}", 1)
                assert hit.id == ids[number]
                assert memory.retrieve(stored) is not None
            except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
                failures.append(repr(error))
                return

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for length in (48, 32, 64):
        hiermem.reindex(FakeEmbedder(length, f"model {length}"))
    done.set()
    for worker in workers:
        worker.join(SECONDS)

    assert failures == []
    assert memory.wait_for_index(SECONDS)
    assert hiermem.tenant("other").memory.wait_for_index(SECONDS)
    assert set(vectors_of(hiermem)) == {("model 64", 64)}
    assert hiermem.doctor() == type(hiermem.doctor())()
