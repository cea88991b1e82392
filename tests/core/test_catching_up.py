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


class FirstHeld(FakeEmbedder):
    """Holds its first call for plums, and says when it is called for the fixed texts and again."""

    def __init__(self):
        super().__init__(16)
        self.has_begun, self.is_known, self.has_begun_again = (threading.Event() for _ in range(3))
        self.may_go_on = threading.Event()

    def embed(self, texts):
        if not any("plum" in text for text in texts):
            self.is_known.set()
        elif self.has_begun.is_set():
            self.has_begun_again.set()
        else:
            self.has_begun.set()
            assert self.may_go_on.wait(30)
        return super().embed(texts)


def test_a_reindex_embeds_no_row_that_the_background_embeds(tmp_path):
    embedder = FirstHeld()
    with HierMem.open(tmp_path / "memory", embedder=embedder) as hiermem:
        alice = hiermem.tenant("alice")
        plums = [{"role": "user", "content": f"plum {n}"} for n in range(50)]
        alice.thread("long").append(plums)
        assert embedder.has_begun.wait(30)
        embedder.is_known.clear()
        reindexing = threading.Thread(target=hiermem.reindex)
        reindexing.start()
        assert embedder.is_known.wait(30)

        is_made_twice = embedder.has_begun_again.wait(0.5)

        embedder.may_go_on.set()
        reindexing.join(30)
        assert alice.memory.stats().index.indexed == 50
    assert not is_made_twice
