"""Embedding what waits: by several threads at once, and after a fork."""

from __future__ import annotations

import os
import threading

from hiermem_core import HierMem
from hiermem_core.testing import FakeEmbedder


class Counting(FakeEmbedder):
    """Counts the texts it embeds, and says when it begins."""

    def __init__(self):
        super().__init__(16)
        self.count = 0
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()

    def embed(self, texts):
        self.count += len(texts)
        self.has_begun.set()
        assert self.may_go_on.wait(30)
        return super().embed(texts)


def turns(count):
    return [{"role": "user", "content": f"turn {n}"} for n in range(count)]


def test_waiting_for_the_index_embeds_no_row_that_the_background_embeds(tmp_path):
    embedder = Counting()
    embedder.may_go_on.set()
    with HierMem.open(tmp_path / "memory", embedder=embedder) as hiermem:
        alice = hiermem.tenant("alice")
        probes = embedder.count
        alice.thread("long").append(turns(400))

        assert alice.memory.wait_for_index()

        stats = alice.memory.stats().index
        identity = embedder.count - probes - 400
    assert (stats.indexed, stats.pending) == (400, 0)
    assert identity < 64  # the fixed texts the embedder is known by


def test_waiting_ends_in_time_while_another_thread_embeds(tmp_path):
    embedder = Counting()
    with HierMem.open(tmp_path / "memory", embedder=embedder) as hiermem:
        alice = hiermem.tenant("alice")
        alice.thread("long").append(turns(100))
        assert embedder.has_begun.wait(30)

        assert alice.memory.wait_for_index(timeout=0.2) is False

        embedder.may_go_on.set()
        assert alice.memory.wait_for_index()


def test_a_child_forked_while_the_parent_embeds_can_embed_itself(tmp_path):
    embedder = Counting()
    with HierMem.open(tmp_path / "memory", embedder=embedder) as hiermem:
        alice = hiermem.tenant("alice")
        alice.thread("long").append(turns(100))
        assert embedder.has_begun.wait(30)

        child = os.fork()
        if not child:
            embedder.may_go_on.set()
            os._exit(0 if alice.memory.wait_for_index(20) else 1)
        _, status = os.waitpid(child, 0)
        embedder.may_go_on.set()

    assert os.waitstatus_to_exitcode(status) == 0
